#include "sim/calibration/missing_shapes.hpp"

#include <algorithm>

#include "sim/calibration/shapes.hpp"

namespace orrery {
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
    double layers = 0.0;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const int part = plan.virtual_stage(stage, chunk);
      const int first = scenario.first_layer(part);
      for (int l = 0; l < scenario.layers_of[static_cast<std::size_t>(part)]; ++l)
        layers += scenario.kind_of(first + l) == kind;
    }
    if (layers > 0.0) visit_layer_ops(scenario, kind, add(layers));
  }
  visit_end_ops(scenario, plan.holds(stage, 0), plan.holds(stage, plan.virtual_stages() - 1),
                add(1.0));
  std::stable_sort(
      missing.begin(), missing.end(),
      [](const calibration::Case& a, const calibration::Case& b) { return a.weight > b.weight; });
  return missing;
}

}  // namespace orrery
