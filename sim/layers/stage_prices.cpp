#include "sim/layers/stage_prices.hpp"

#include <algorithm>

#include "sim/layers/host_optimizer.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/layer_prices.hpp"
#include "sim/layers/rank_parameters.hpp"

namespace orrery {

PassCost gather_received(const Scenario& scenario, const Pricer& pricer) {
  const Plan& plan = scenario.plan;
  if (plan.tp == 1 || plan.sp || !scenario.software.scatter_gather) return {};
  const double bytes =
      unquantised_bytes(plan.dtype) *
      static_cast<double>(scenario.tokens_per_microbatch() * scenario.model.hidden);
  return pricer.price(Ops{collective("pp_gather", CollectiveKind::all_gather, bytes)});
}

LayerLengths price_layers(const Scenario& scenario, const KernelModel& kernels,
                          const CollectiveTime& collectives, const GroupShapes& shapes,
                          double speed) {
  const Pricer pricer{kernels, collectives, shapes, scenario.software, scenario.system.gpu};
  const LayerPrices layers{scenario, pricer, shapes};
  const auto length = [&](const PassCost& pass) {
    PassLength of;
    of.add(pass, speed);
    return of;
  };
  const auto lengths = [&](const LayerPrice& price) {
    return StageLengths{length(price.forward), length(price.backward)};
  };
  LayerLengths all;
  for (const LayerKind kind : scenario.kinds())
    all.kinds.emplace_back(kind, lengths(layers.of(kind)));
  all.received = length(gather_received(scenario, pricer));
  all.embedding = {length(pricer.price(embedding_forward(scenario))),
                   length(pricer.price(embedding_backward(scenario)))};
  all.prediction = lengths(layers.prediction());
  all.head = {length(pricer.price(head_forward(scenario))),
              length(pricer.price(head_backward(scenario)))};
  return all;
}

std::vector<StageLengths> add_up_stages(const Scenario& scenario, const LayerLengths& layers) {
  const auto length_of = [&](int layer) -> const StageLengths& {
    const LayerKind kind = scenario.kind_of(layer);
    return std::find_if(layers.kinds.begin(), layers.kinds.end(),
                        [&](const auto& of) { return of.first == kind; })
        ->second;
  };
  const auto add = [](StageLengths& sum, const StageLengths& more) {
    sum.forward.add(more.forward);
    sum.backward.add(more.backward);
  };
  std::vector<StageLengths> stages(static_cast<std::size_t>(scenario.plan.virtual_stages()));
  int layer = 0;
  for (std::size_t v = 0; v < stages.size(); ++v) {
    StageLengths& stage = stages[v];
    for (int l = 0; l < scenario.layers_of[v]; ++l, ++layer) add(stage, length_of(layer));
    const int index = static_cast<int>(v);
    if (v > 0 && scenario.plan.sends_on(index - 1)) stage.forward.add(layers.received);
    if (scenario.plan.sends_on(index)) stage.backward.add(layers.received);
  }
  add(stages.front(), layers.embedding);
  add(stages.back(), layers.prediction);
  add(stages.back(), layers.head);
  for (std::size_t v = 0; v < stages.size(); ++v)
    if (const Seconds copy = host_copies(scenario, static_cast<int>(v)); copy > Seconds{})
      for (PassLength* pass : {&stages[v].forward, &stages[v].backward})
        pass->time = std::max(pass->time, copy);
  return stages;
}

std::vector<StageLengths> price_passes(const Scenario& scenario, const KernelModel& kernels,
                                       const CollectiveTime& collectives, const GroupShapes& shapes,
                                       double speed) {
  return add_up_stages(scenario, price_layers(scenario, kernels, collectives, shapes, speed));
}

Bytes transfer_bytes(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const bool split = plan.tp > 1 && (plan.sp || scenario.software.scatter_gather);
  return Bytes{unquantised_bytes(plan.dtype) *
               static_cast<double>(scenario.tokens_per_microbatch() * scenario.model.hidden) /
               (split ? plan.tp : 1)};
}

Bytes optimizer_traffic(const Software& software, Dtype dtype, double updated, double held) {
  const double updating =
      software.optimizer_bytes + (dtype == Dtype::fp16 ? software.loss_scaling_bytes : 0.0);
  return Bytes{updating * updated + software.gradient_pass_bytes * held};
}

std::vector<Seconds> optimizer_times(const Scenario& scenario, const KernelModel& kernels) {
  const Plan& plan = scenario.plan;
  std::vector<Seconds> times;
  for (int stage = 0; stage < plan.pp; ++stage) {
    double own = 0.0;
    double held = 0.0;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const RankParameters parameters =
          parameters_on_rank(scenario, plan.virtual_stage(stage, chunk));
      own += static_cast<double>(parameters.dense) / plan.optimizer_shards();
      own += static_cast<double>(parameters.experts) / plan.expert_optimizer_shards();
      held += static_cast<double>(parameters.sum());
    }
    // Of what the host updates, the GPU takes the norm and clips, which reads and writes, unless
    // the gradients are there already.
    const double moved = plan.offload_optimizer / 100.0 * own;
    const double clipped = plan.streams_gradients() ? 0.0 : moved;
    const Bytes traffic = optimizer_traffic(scenario.software, plan.dtype, own - moved, held) +
                          Bytes{3.0 * scenario.software.main_gradient_bytes * clipped};
    times.push_back(kernels.memory(traffic).time + scenario.software.kernel_overhead +
                    host_optimizer(scenario, own).time());
  }
  return times;
}

}  // namespace orrery
