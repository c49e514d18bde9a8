#include "sim/calibration/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/layers/layer_ops.hpp"

namespace orrery {
namespace {

using calibration::Case;
using calibration::make_case;

// Rows of a copy of bf16 in this width that reads and writes `bytes` together.
constexpr std::int64_t copy_width = 8192;
std::int64_t copy_rows(Bytes bytes) {
  return std::max<std::int64_t>(1, std::llround(bytes.si() / (4.0 * copy_width)));
}

// Experts' tokens differ from batch to batch; the same number is measured, spread evenly.
void add_grouped(std::vector<Case>& cases, const Op& op, const Plan& plan, double weight) {
  const auto experts = static_cast<std::int64_t>(op.rows.size());
  const std::int64_t tokens = std::accumulate(op.rows.begin(), op.rows.end(), std::int64_t{0});
  if (is_narrow(plan.dtype) || is_wide(plan.dtype) || experts == 0 || tokens < experts) return;
  merge_shapes(cases, {make_case("grouped_gemm", {name(op.pass), name(plan.dtype), "even"},
                                 {tokens, experts, op.n, op.k}, weight)});
}

}  // namespace

void add_shape(std::vector<Case>& cases, const Op& op, const Plan& plan, double weight) {
  switch (op.kind) {
    case Op::Kind::gemm:
      if (plan.dtype == Dtype::fp32) break;  // Records hold no fp32 products.
      merge_shapes(cases, {make_case("gemm", {name(op.pass), name(plan.dtype)}, {op.m, op.n, op.k},
                                     weight)});
      break;
    case Op::Kind::grouped_gemm:
      add_grouped(cases, op, plan, weight);
      break;
    case Op::Kind::attention:
      if (!op.causal || op.queries != op.keys || op.window > 0) break;
      merge_shapes(cases,
                   {make_case("attention", {op.backward ? "backward" : "forward", "bf16"},
                              {op.batch, op.queries, op.heads, op.kv_heads, op.head_dim}, weight)});
      break;
    case Op::Kind::scan:
    case Op::Kind::wait:
      break;  // Records hold neither.
    case Op::Kind::memory:
      merge_shapes(cases,
                   {make_case("memory", {"copy"}, {copy_rows(op.bytes), copy_width}, weight)});
      break;
    case Op::Kind::collective:
      if (op.group != GroupKind::tensor || facts(op.collective).rooted) break;
      merge_shapes(
          cases,
          {make_case("collective", {std::string{name(op.collective)}},
                     {plan.tp, std::max<std::int64_t>(4, std::llround(op.bytes.si()))}, weight)});
      break;
    case Op::Kind::batched_gemm:
      break;
  }
}

void merge_shapes(std::vector<Case>& cases, const std::vector<Case>& more) {
  for (const Case& one : more) {
    const auto known = std::find_if(cases.begin(), cases.end(),
                                    [&](const Case& other) { return other.id() == one.id(); });
    if (known == cases.end())
      cases.push_back(one);
    else
      known->weight += one.weight;
  }
}

void visit_layer_ops(const Scenario& scenario, LayerKind kind, const OpVisitor& visit) {
  for (const Ops& ops : {layer_forward(scenario, kind), layer_recompute(scenario, kind),
                         layer_backward(scenario, kind)})
    for (const Op& op : ops) visit(op);
}

void visit_end_ops(const Scenario& scenario, bool first, bool last, const OpVisitor& visit) {
  for (const auto& [here, ops] :
       {std::pair{first, embedding_forward(scenario)}, std::pair{last, head_forward(scenario)},
        std::pair{last, head_backward(scenario)}, std::pair{first, embedding_backward(scenario)}})
    if (here)
      for (const Op& op : ops) visit(op);
}

std::vector<Case> shapes_of(const Scenario& scenario) {
  std::vector<Case> cases;
  for (const LayerKind kind : scenario.kinds()) {
    double layers = 0.0;
    for (int layer = 0; layer < scenario.model.layers; ++layer)
      layers += scenario.kind_of(layer) == kind;
    visit_layer_ops(scenario, kind,
                    [&](const Op& op) { add_shape(cases, op, scenario.plan, layers); });
  }
  visit_end_ops(scenario, true, true,
                [&](const Op& op) { add_shape(cases, op, scenario.plan, 1.0); });
  return cases;
}

namespace {

bool is_measured(const PricedOp& priced, const KernelModel& kernels) {
  const Op& op = priced.op;
  if (op.kind == Op::Kind::gemm) return kernels.has_measured(op.m, op.n, op.k);
  // A copy's rate is measured by any one copy.
  if (op.kind == Op::Kind::memory) return priced.tag != Tag::default_value;
  return priced.tag == Tag::measured;
}

}  // namespace

std::vector<calibration::Case> missing_shapes(const Scenario& scenario, const KernelModel& kernels,
                                              const Pricer& pricer, int stage) {
  const Plan& plan = scenario.plan;
  std::vector<calibration::Case> missing;
  const auto add = [&](double times) {
    return [&, times](const Op& op) {
      const PricedOp priced = pricer.price(op);
      if (priced.time > Seconds{} && !is_measured(priced, kernels))
        add_shape(missing, op, plan, times * plan.microbatches * priced.time.si());
    };
  };
  for (const LayerKind kind : scenario.kinds()) {
    const int layers = scenario.layers_of_kind(kind, stage);
    if (layers > 0) visit_layer_ops(scenario, kind, add(layers));
  }
  visit_end_ops(scenario, plan.holds(stage, 0), plan.holds(stage, plan.virtual_stages() - 1),
                add(1.0));
  std::stable_sort(
      missing.begin(), missing.end(),
      [](const calibration::Case& a, const calibration::Case& b) { return a.weight > b.weight; });
  return missing;
}

}  // namespace orrery
