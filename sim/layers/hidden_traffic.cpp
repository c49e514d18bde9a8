#include "sim/layers/hidden_traffic.hpp"

#include "sim/layers/lost_beside.hpp"

namespace orrery {

PassCost HiddenTraffic::lost(const PassCost& pass, CollectiveKind kind, double bytes,
                             GroupKind group) {
  PassCost lost;
  if (bytes <= 0.0) return lost;
  const auto [known, fresh] = known_.try_emplace({{kind, group}, bytes});
  if (fresh) known->second = pricer_.collective(collective("", kind, bytes, 0.0, group));
  const GroupCollective& beside = known->second;
  const KernelTimes kernels = kernels_of(pass.segments);
  const Seconds time = lost_beside(kernels, beside);
  if (time <= Seconds{}) return lost;
  lost.segments.push_back({time, {}, {}});
  lost.segments.back().first_kernel = "slowed by a collective";
  lost.decisive = lost_beside(kernels, pass.decisive, beside);
  lost.add_lost(time, lost.decisive);
  return lost;
}

PassCost HiddenTraffic::lost_to_gradients(const Scenario& scenario, const PassCost& pass,
                                          const RankParameters& reduced) {
  const Plan& plan = scenario.plan;
  const CollectiveKind kind =
      plan.zero >= 1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  PassCost sum;
  double shards = 0.0;
  for (GroupKind group : {GroupKind::data, GroupKind::expert_data}) {
    const double bytes = scenario.software.gradient_bytes * static_cast<double>(reduced.of(group));
    sum.append(lost(pass, kind, bytes, group));
    shards += bytes / (group == GroupKind::data ? plan.shard_ranks() : plan.expert_shard_ranks());
  }
  if (plan.dp_replicate > 1)
    sum.append(lost(pass, CollectiveKind::all_reduce, shards, GroupKind::shard_copies));
  return sum;
}

namespace {

// `runs` forward beside the gather of `next`, and backward beside its reduction.
void lose(const Scenario& scenario, HiddenTraffic& traffic, Bucket& runs, const Bucket& next) {
  const Plan& plan = scenario.plan;
  const PassCost& last = plan.splits_backward() ? runs.weight_gradient : runs.backward;
  for (GroupKind group : {GroupKind::data, GroupKind::expert_data}) {
    const auto parameters = static_cast<double>(next.parameters.of(group));
    if (plan.zero >= 1)
      runs.lost_to_gather.append(traffic.lost(runs.forward, CollectiveKind::all_gather,
                                              scenario.software.weight_bytes * parameters, group));
  }
  runs.lost_to_reduction.append(traffic.lost_to_gradients(scenario, last, next.parameters));
}

}  // namespace

void lose_to_step_traffic(const Scenario& scenario, const Pricer& pricer,
                          std::span<StageCost> stages) {
  const Plan& plan = scenario.plan;
  if (!plan.dp_overlap || plan.shards_weights()) return;
  HiddenTraffic traffic{pricer};
  for (int stage = 0; stage < plan.pp; ++stage) {
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      Bucket* before = nullptr;  // Of the chunk's buckets in forward order.
      const auto v = static_cast<std::size_t>(plan.virtual_stage(stage, chunk));
      for (Bucket& bucket : stages[v].buckets) {
        if (before) lose(scenario, traffic, *before, bucket);
        before = &bucket;
      }
    }
  }
}

}  // namespace orrery
