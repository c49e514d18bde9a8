#include "sim/layers/shard_units.hpp"

#include <algorithm>

#include "sim/layers/adapters.hpp"
#include "sim/layers/contention.hpp"
#include "sim/layers/layer_ops.hpp"

namespace orrery {
namespace {

// Ops of a layer up to the next product with another weight matrix, and the matrix's parameters.
struct Module {
  Ops ops;
  std::int64_t parameters = 0;
  std::int64_t sides = 0;    // Rows and columns of the matrix together.
  std::string_view product;  // Its product.
};

// Splits before each product of `pass`; ops before the first belong to it.
std::vector<Module> modules(const Ops& ops, GemmPass pass) {
  std::vector<Module> all(1);
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::gemm && op.pass == pass) {
      if (all.back().parameters > 0) all.emplace_back();
      all.back().parameters = op.n * op.k;
      all.back().sides = op.n + op.k;
      all.back().product = op.name;
    }
    all.back().ops.push_back(op);
  }
  return all;
}

class UnitCutter {
 public:
  UnitCutter(const Scenario& scenario, const Pricer& pricer, const LayerPrice& prediction,
             const PriceOfLayer& price_of, int stage)
      : scenario_{scenario},
        software_{scenario.software},
        pricer_{pricer},
        prediction_{prediction},
        price_of_{price_of},
        parts_{parts_on_rank(scenario, stage)},
        first_layer_{scenario.first_layer(stage)},
        layers_{scenario.layers_of[static_cast<std::size_t>(stage)]} {}

  std::vector<Bucket> by_layer() const {
    std::vector<Bucket> units;
    const auto add = [&](const PassCost& forward, const PassCost& backward,
                         const RankParameters& parameters, bool again, int layer = -1) {
      const RankParameters all = gathered(scenario_, parameters);
      const RankParameters regathered = again ? all : RankParameters{};
      Bucket unit{unsharded(all.sum()), unsharded(regathered.sum()), parameters, all, regathered};
      unit.forward.append_layer(forward, layer);
      unit.backward.append_layer(backward, layer);
      unit.backward.append(reduced(parameters.sum()));
      units.push_back(std::move(unit));
    };
    if (parts_.embedding.held() > 0)
      add(pricer_.price(embedding_forward(scenario_)), pricer_.price(embedding_backward(scenario_)),
          parts_.embedding, false);
    const bool predicts = parts_.prediction.held() > 0;
    for (int l = 0; l < layers_; ++l) {
      const bool kept = !scenario_.plan.reshard || (l == layers_ - 1 && !predicts);
      const LayerPrice& layer = price_of_(first_layer_ + l);
      const RankParameters& parameters = parts_.layers[static_cast<std::size_t>(l)];
      add(layer.forward, layer.backward, parameters, !kept, first_layer_ + l);
    }
    if (predicts) add(prediction_.forward, prediction_.backward, parts_.prediction, false);
    if (parts_.head.held() > 0)
      add(pricer_.price(head_forward(scenario_)), pricer_.price(head_backward(scenario_)),
          parts_.head, false);
    return units;
  }

  std::vector<Bucket> by_tensor_forward() const {
    std::vector<Bucket> units;
    const auto add = [&](const Ops& ops, const RankParameters& parameters) {
      const RankParameters all = gathered(scenario_, parameters);
      Bucket unit{unsharded(all.dense), {}, parameters, all};
      unit.forward.append(pricer_.price(ops));
      units.push_back(std::move(unit));
    };
    if (parts_.embedding.held() > 0) add(embedding_forward(scenario_), parts_.embedding);
    for (int l = 0; l < layers_; ++l)
      for (const Module& module : modules(layer_forward(scenario_, kind(l)), GemmPass::forward))
        add(module.ops, parameters_of(module));
    if (parts_.head.held() > 0) add(head_forward(scenario_), parts_.head);
    prefetch(units, &Bucket::forward, [](const Bucket& unit) { return unit.gathered.dense; });
    return units;
  }

  std::vector<Bucket> by_tensor_backward() const {
    std::vector<Bucket> units;
    const auto add = [&](const Ops& ops, const RankParameters& again,
                         const RankParameters& reduced_here) {
      const RankParameters all = gathered(scenario_, again);
      Bucket unit{{}, unsharded(all.dense), reduced_here, {}, all};
      unit.backward.append(pricer_.price(ops));
      unit.backward.append(reduced(reduced_here.dense));
      if (reduced_here.dense > 0)
        unit.backward.append(waiting(shard_host_time(scenario_), "wait for the host"));
      units.push_back(std::move(unit));
    };
    if (parts_.head.held() > 0) add(head_backward(scenario_), {}, parts_.head);
    const bool again = scenario_.plan.reshard;
    for (int l = layers_ - 1; l >= 0; --l) {
      std::int64_t kept = 0;
      if (scenario_.plan.recompute.kind == Recompute::full)
        for (const Module& module :
             modules(layer_recompute(scenario_, kind(l)), GemmPass::forward)) {
          add(module.ops, again ? parameters_of(module) : RankParameters{}, {});
          units.back().backward.mark_recomputed();
          kept = module.parameters;
        }
      Ops ops = layer_backward(scenario_, kind(l));
      TimeByWork recomputed;  // Part of the first module, without a weight matrix.
      if (scenario_.plan.recompute.kind == Recompute::selective) {
        const Ops core = layer_recompute(scenario_, kind(l));
        ops.insert(ops.begin(), core.begin(), core.end());
        recomputed = pricer_.price(core).work;
        recomputed.at(Work::host) = Seconds{};
      }
      for (const Module& module : modules(ops, GemmPass::dgrad)) {
        const RankParameters own = parameters_of(module);
        add(module.ops, again && module.parameters != kept ? own : RankParameters{}, own);
        units.back().backward.recomputed.add(recomputed);
        recomputed = {};
        kept = 0;
      }
    }
    if (parts_.embedding.held() > 0) add(embedding_backward(scenario_), {}, parts_.embedding);
    prefetch(units, &Bucket::backward, [](const Bucket& unit) { return unit.regathered.dense; });
    return units;
  }

 private:
  LayerKind kind(int l) const { return scenario_.kind_of(first_layer_ + l); }
  RankParameters parameters_of(const Module& module) const {
    const Plan& plan = scenario_.plan;
    if (plan.trains_weights()) return {module.parameters, 0};
    const bool adapted = module.parameters > 0 && plan.adapts(lora_target(module.product));
    return {adapted ? plan.lora_rank * module.sides : 0, 0, {module.parameters, 0, 0}};
  }
  PassCost copied(double bytes, std::int64_t parameters) const {
    if (bytes <= 0.0 || parameters == 0) return {};
    return pricer_.price(Ops{memory("copy", bytes * static_cast<double>(parameters))});
  }
  PassCost unsharded(std::int64_t parameters) const {
    return copied(software_.unshard_bytes, parameters);
  }
  PassCost reduced(std::int64_t parameters) const {
    return copied(software_.reduce_copy_bytes, parameters);
  }

  // The host requests the next unit's weights before it launches a unit.
  template <class Gathered>
  void prefetch(std::vector<Bucket>& units, PassCost Bucket::*pass,
                const Gathered& gathered) const {
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (gathered(units[i]) == 0) continue;
      units[i].gathered_ahead =
          scenario_.plan.dp_overlap && i > 0 &&
          static_cast<double>(whole_while(units[i - 1])) < software_.live_parameters;
      if (units[i].gathered_ahead)
        (units[i - 1].*pass).append(waiting(shard_host_time(scenario_), "wait for the host"));
    }
  }
  static std::int64_t whole_while(const Bucket& unit) {
    return std::max({unit.parameters.dense, unit.gathered.dense, unit.regathered.dense});
  }

  const Scenario& scenario_;
  const Software& software_;
  const Pricer& pricer_;
  const LayerPrice& prediction_;
  const PriceOfLayer& price_of_;
  StageParts parts_;
  int first_layer_;
  int layers_;
};

}  // namespace

namespace {

// Losses of each unit's kernels to the gather of the next unit and the reduction of the previous
// one, if these come with every micro-batch.
void slow_down(const Scenario& scenario, HiddenTraffic& traffic, bool forward, StageCost& cost) {
  const Plan& plan = scenario.plan;
  const bool gathers = plan.reshard || (forward && plan.pp == 1);
  const bool reduces = !forward && plan.shards_gradients();
  const std::size_t count = cost.count(forward);
  for (std::size_t i = 0; i < count; ++i) {
    Bucket& unit = cost.bucket(forward, i);
    PassCost& pass = forward ? unit.forward : unit.backward;
    PassCost lost;
    const auto add_loss = [&](CollectiveKind kind, double bytes_each, const RankParameters& moved) {
      for (GroupKind group : {GroupKind::data, GroupKind::expert_data})
        lost.append(
            traffic.lost(pass, kind, bytes_each * static_cast<double>(moved.of(group)), group));
    };
    if (gathers && i + 1 < count) {
      const Bucket& next = cost.bucket(forward, i + 1);
      if (next.gathered_ahead)
        add_loss(CollectiveKind::all_gather, scenario.software.weight_bytes,
                 forward ? next.gathered : next.regathered);
    }
    if (reduces && i > 0)
      lost.append(traffic.lost_to_gradients(scenario, pass, cost.bucket(false, i - 1).parameters));
    pass.append(lost);
  }
}

}  // namespace

Seconds shard_host_time(const Scenario& scenario) {
  const Software& software = scenario.software;
  return software.shard_calls * scenario.plan.shard_ranks() * software.host_launch;
}

void cut_shard_units(const Scenario& scenario, const Pricer& pricer, const LayerPrice& prediction,
                     const PriceOfLayer& price_of, int stage, StageCost& cost) {
  const UnitCutter cutter{scenario, pricer, prediction, price_of, stage};
  if (scenario.software.shards_by_tensor) {
    cost.buckets = cutter.by_tensor_forward();
    cost.backward_buckets = cutter.by_tensor_backward();
  } else {
    cost.buckets = cutter.by_layer();
  }
  if (!scenario.plan.dp_overlap) return;
  HiddenTraffic traffic{pricer};
  slow_down(scenario, traffic, true, cost);
  slow_down(scenario, traffic, false, cost);
}

double two_shard_units(const Scenario& scenario, int stage) {
  double layer = 0.0;
  double table = 0.0;
  for (int chunk = 0; chunk < scenario.plan.chunks(); ++chunk) {
    const StageParts parts = parts_on_rank(scenario, scenario.plan.virtual_stage(stage, chunk));
    const auto whole = [&](const RankParameters& of) {
      return static_cast<double>(gathered(scenario, of).sum());
    };
    for (const RankParameters& of : parts.layers) layer = std::max(layer, whole(of));
    layer = std::max(layer, whole(parts.prediction));
    table = std::max({table, whole(parts.embedding), whole(parts.head)});
  }
  if (scenario.software.shards_by_tensor) {
    layer = 0.0;
    for (const LayerKind kind : scenario.kinds())
      for (const Module& module : modules(layer_forward(scenario, kind), GemmPass::forward))
        layer = std::max(layer, static_cast<double>(module.parameters));
  }
  return layer + std::max(layer, table);
}

}  // namespace orrery
