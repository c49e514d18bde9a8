#include "sim/profile/step_operations.hpp"

#include <algorithm>
#include <numeric>

#include "sim/layers/expert_ops.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/layer_prices.hpp"
#include "sim/layers/op.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/stage_prices.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

std::string product_sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
}

std::string sizes_of(const Op& op) {
  switch (op.kind) {
    case Op::Kind::gemm:
      return product_sizes(op.m, op.n, op.k);
    case Op::Kind::batched_gemm:
      return std::to_string(op.batch) + " of " + product_sizes(op.m, op.n, op.k);
    case Op::Kind::grouped_gemm: {
      const auto rows = std::accumulate(op.rows.begin(), op.rows.end(), std::int64_t{0});
      return std::to_string(op.rows.size()) + " experts, " +
             product_sizes(rows / std::max<std::int64_t>(1, std::ssize(op.rows)), op.n, op.k);
    }
    case Op::Kind::attention:
      return std::to_string(op.batch) + " of " + std::to_string(op.queries) +
             (op.queries == op.keys ? "" : " x " + std::to_string(op.keys)) + ", heads " +
             std::to_string(op.heads) + "/" + std::to_string(op.kv_heads) + " of " +
             std::to_string(op.head_dim) +
             (op.window > 0 ? ", window " + std::to_string(op.window) : "");
    case Op::Kind::scan:
      return std::to_string(op.batch) + " of " + std::to_string(op.queries) + ", " +
             std::to_string(op.scan.heads) + " states of " + std::to_string(op.scan.keys) + " x " +
             std::to_string(op.scan.values);
    case Op::Kind::memory:
    case Op::Kind::wait:
    case Op::Kind::collective:
      break;
  }
  return "";
}

std::string kind_of(const Op& op) {
  switch (op.kind) {
    case Op::Kind::gemm:
      return "gemm";
    case Op::Kind::grouped_gemm:
      return "experts";
    case Op::Kind::batched_gemm:
    case Op::Kind::attention:
      return "attention";
    case Op::Kind::scan:
      return "scan";
    case Op::Kind::memory:
      return "vector";
    case Op::Kind::wait:
      return "wait";
    case Op::Kind::collective:
      break;
  }
  return "network";
}

// Adds up what a rank of one stage runs.
class Collector {
 public:
  Collector(const Scenario& scenario, EstimateContext& context, const GroupShapes& shapes)
      : scenario_{scenario},
        sizes_{scenario, scenario.expert_shape()},
        kernels_{context.kernels(scenario.plan.dtype)},
        errors_{context.price_errors(scenario)},
        pricer_{kernels_, context.collectives(scenario.plan), shapes, scenario.software,
                scenario.system.gpu},
        layers_{scenario, pricer_, shapes} {}

  // Of embedding and head.
  void add(const Ops& ops, const char* when, double count) { add(ops, when, count, sizes_); }

  // A layer, `count` times.
  void add_layer(LayerKind kind, double count) {
    const LayerPattern* pattern = scenario_.model.pattern.get();
    if (pattern && pattern->has_several_kinds())
      kind_ = pattern->short_name_of(pattern->kind_of_shape[static_cast<std::size_t>(kind.shape)]);
    add_parts_of_layer(kind, count);
    kind_.clear();
  }

  void add_optimizer(int stage) {
    double own = 0.0, held = 0.0;
    const Plan& plan = scenario_.plan;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const RankParameters part = parameters_on_rank(scenario_, plan.virtual_stage(stage, chunk));
      own += static_cast<double>(part.dense) / plan.optimizer_shards() +
             static_cast<double>(part.experts) / plan.expert_optimizer_shards();
      held += static_cast<double>(part.sum());
    }
    OperationPrice price = blank("optimizer", "vector", "once a step");
    price.format = "fp32";
    price.roofs = {Flop{adam_flop * own},
                   optimizer_traffic(scenario_.software, plan.dtype, own, held), vector_peak(),
                   scenario_.system.gpu.memory_bandwidth};
    price.time = optimizer_times(scenario_, kernels_)[static_cast<std::size_t>(stage)];
    price.tag = kernels_.memory(Bytes{}).tag;
    set_range(price, PriceKind::memory, errors_);
    operations_.push_back(std::move(price));
  }

  std::vector<OperationPrice> operations() && { return std::move(operations_); }

 private:
  OperationPrice blank(std::string_view name, const char* kind, const char* when) const {
    OperationPrice price;
    price.name = name;
    price.kind = kind;
    price.when = when;
    return price;
  }

  FlopPerSecond vector_peak() const { return scenario_.system.gpu.peak(Dtype::fp32, {}); }

  void add_parts_of_layer(LayerKind kind, double count) {
    const LayerSizes own{scenario_, kind};
    if (!kind.has_experts) {
      add(layer_forward(scenario_, kind), "forward", count, own);
      add(layer_recompute(scenario_, kind), "recomputed", count, own);
      add(layer_backward(scenario_, kind), "backward", count, own);
      return;
    }
    const std::vector<std::int64_t> rows = even_rows(sizes_);
    add_experts(layer_ends_forward(scenario_, kind), of_experts_forward(own, rows), "forward",
                count, own);
    add_recomputed_experts(kind, rows, count, own);
    add_experts(layer_ends_backward(scenario_, kind), of_experts_backward(own, rows), "backward",
                count, own);
  }

  void add_experts(const LayerEnds& ends, const Ops& experts, const char* when, double count,
                   const LayerSizes& own) {
    const bool backward = std::string_view{when} == "backward";
    add(ends.before, when, count, own);
    add_exchange(backward ? "combine_bwd" : "dispatch", layers_.even_exchange().dispatch, when,
                 count);
    add(ends.during_dispatch, when, count, own);
    add(experts, when, count);
    add_exchange(backward ? "dispatch_bwd" : "combine", layers_.even_exchange().combine, when,
                 count);
    add(ends.during_combine, when, count, own);
    add(ends.after, when, count, own);
  }

  // Mirrors LayerPrices.
  void add_recomputed_experts(LayerKind kind, const std::vector<std::int64_t>& rows, double count,
                              const LayerSizes& own) {
    const RecomputeChoice& choice = scenario_.plan.recompute;
    if (choice.kind == Recompute::none || kind.kept) return;
    const char* when = "recomputed";
    if (choice.kind == Recompute::full)
      return add_experts(layer_ends_forward(scenario_, kind), of_experts_forward(own, rows), when,
                         count, own);
    add(recompute_without_exchange(scenario_, kind, rows), when, count, own);
    if (!choice.selects(RecomputeModule::moe)) return;
    const SharedOps shared = shared_overlap_forward(own);
    LayerEnds ends{before_experts_forward(own), shared.during_dispatch, shared.during_combine,
                   after_experts_forward(own)};
    append(ends.before, shared.before);
    append(ends.after, shared.after);
    add_experts(ends, of_experts_forward(own, rows), when, count, own);
  }

  void add_exchange(std::string_view name, const CollectiveCost& cost, const char* when,
                    double count) {
    if (cost.time() <= Seconds{}) return;
    OperationPrice price = blank(name, "network", when);
    price.on_network = true;
    price.roofs = wire_roofs(cost, scenario_.system);
    price.count = count;
    price.time = cost.time();
    price.tag = cost.tag;
    set_range(price, PriceKind::exchange, errors_);
    merge(std::move(price));
  }

  void add(const Ops& ops, const char* when, double count, const LayerSizes& sizes) {
    for (const Op& op : ops) add(op, when, count, sizes);
  }

  void add(const Op& op, const char* when, double count, const LayerSizes& sizes) {
    const PricedOp priced = pricer_.price(op);
    if (priced.time <= Seconds{}) return;
    OperationPrice price = blank(op.name, "", when);
    price.kind = kind_of(op);
    price.sizes = sizes_of(op);
    price.count = count;
    price.time = priced.time;
    price.tag = priced.tag;
    if (op.kind == Op::Kind::collective) {
      const GroupCollective collective = pricer_.collective(op);
      price.on_network = true;
      price.roofs = wire_roofs(collective.cost, scenario_.system);
      set_range(price, collective);
    } else {
      const auto format = multiplies_in(op, scenario_.plan.dtype);
      const Flop flop =
          op.kind == Op::Kind::memory ? vector_flop(op, sizes).value_or(Flop{}) : op.flop();
      price.format = format ? name(*format) : flop > Flop{} ? "fp32" : "";
      price.roofs = {flop, traffic(op, scenario_.plan.dtype),
                     format ? scenario_.system.gpu.peak(*format, {}) : vector_peak(),
                     scenario_.system.gpu.memory_bandwidth};
      orrery::set_range(price, price_kind(op), errors_);
    }
    merge(std::move(price));
  }

  void set_range(OperationPrice& price, const GroupCollective& collective) const {
    StepRange range;
    range.step = price.time;
    range.path.add(collective);
    range.errors = errors_;
    range.errors.published.reset();
    price.low = range.low();
    price.high = range.high();
  }
  void set_range(OperationPrice& price, PriceKind kind, const PriceErrors& errors) const {
    orrery::set_range(price, kind, errors);
  }

  // Alike in all that is shown: one line.
  void merge(OperationPrice price) {
    if (!kind_.empty()) price.kinds = {{kind_, price.count}};
    const auto known =
        std::find_if(operations_.begin(), operations_.end(), [&](const OperationPrice& one) {
          return one.name == price.name && one.when == price.when && one.sizes == price.sizes &&
                 one.time == price.time;
        });
    if (known == operations_.end()) {
      operations_.push_back(std::move(price));
      return;
    }
    known->count += price.count;
    if (kind_.empty()) return;
    const auto of = std::find_if(known->kinds.begin(), known->kinds.end(),
                                 [&](const auto& one) { return one.kind == kind_; });
    if (of == known->kinds.end())
      known->kinds.push_back(price.kinds.front());
    else
      of->count += price.count;
  }

  const Scenario& scenario_;
  LayerSizes sizes_;  ///< Of layers with experts, which are alike.
  const KernelModel& kernels_;
  PriceErrors errors_;
  Pricer pricer_;
  LayerPrices layers_;
  std::string kind_;  ///< Of the layer that is being added; "": none, or all layers are alike.
  std::vector<OperationPrice> operations_;
};

std::vector<OperationPrice> of_stage(const Scenario& scenario, EstimateContext& context,
                                     const GroupShapes& shapes, int stage) {
  const Plan& plan = scenario.plan;
  Collector all{scenario, context, shapes};
  const double batches = plan.microbatches;
  for (const LayerKind kind : scenario.kinds()) {
    const int layers = scenario.layers_of_kind(kind, stage);
    if (layers > 0) all.add_layer(kind, batches * layers);
  }
  if (plan.holds(stage, 0)) {
    all.add(embedding_forward(scenario), "forward", batches);
    all.add(embedding_backward(scenario), "backward", batches);
  }
  if (plan.holds(stage, plan.virtual_stages() - 1)) {
    const int modules = scenario.model.prediction_layers;
    all.add(head_forward(scenario), "forward", batches * (1 + modules));
    all.add(head_backward(scenario), "backward", batches * (1 + modules));
    if (modules > 0) {
      all.add(prediction_forward(scenario), "forward", batches * modules);
      all.add(prediction_backward(scenario), "backward", batches * modules);
      for (const LayerKind kind : scenario.prediction_kinds())
        all.add_layer(kind, batches * modules);
    }
  }
  all.add_optimizer(stage);
  return std::move(all).operations();
}

Seconds kernel_time(const std::vector<OperationPrice>& operations) {
  Seconds sum;
  for (const OperationPrice& one : operations)
    if (!one.on_network) sum += one.all_time();
  return sum;
}

}  // namespace

OperationList step_operations(const Scenario& scenario, EstimateContext& context,
                              std::optional<int> stage) {
  const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
  OperationList list;
  list.roofs = roofs_of(scenario.system.gpu);
  Seconds longest;
  for (int one = 0; one < scenario.plan.pp; ++one) {
    if (stage && *stage != one) continue;
    std::vector<OperationPrice> operations = of_stage(scenario, context, layout.shapes, one);
    const Seconds time = kernel_time(operations);
    if (!list.operations.empty() && time <= longest) continue;
    longest = time;
    list.stage = one;
    list.operations = std::move(operations);
  }
  sort_by_time(list.operations);
  for (const OperationPrice& one : list.operations) list.whole += one.all_time();
  return list;
}

OperationList iteration_operations(const ServingStep& step) {
  const Gpu& gpu = step.setup.system.gpu;
  OperationList list;
  list.roofs = roofs_of(gpu);
  list.whole = step.price.step;
  for (const IterationPart& part : step.price.parts) {
    if (part.count == 0 || part.time <= Seconds{}) continue;
    OperationPrice price;
    price.name = part.op;
    price.count = part.count;
    const double share = 1.0 / part.count;
    price.time = share * part.time;
    price.tag = part.tag;
    price.on_network = bound_of(part, gpu.memory_bandwidth) == Bound::network;
    price.kind = price.on_network                                 ? "network"
                 : part.op == "experts"                           ? "experts"
                 : part.op.find("attention") != std::string::npos ? "attention"
                 : part.peak > FlopPerSecond{}                    ? "gemm"
                                                                  : "vector";
    price.roofs = {share * part.flop, share * part.bytes, part.peak,
                   price.on_network ? step.setup.system.scale_up : gpu.memory_bandwidth};
    for (const MachineRoofs::Format& format : list.roofs.formats)
      if (format.peak == part.peak) price.format = format.name;
    list.operations.push_back(std::move(price));
  }
  sort_by_time(list.operations);
  return list;
}

}  // namespace orrery
