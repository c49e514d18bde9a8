#include "sim/layers/contention.hpp"

#include <algorithm>

namespace orrery {
namespace {

double share_lost(Seconds kernels, Seconds streaming, const GroupCollective& collective) {
  if (kernels <= Seconds{}) return collective.taken;
  const double streams = streaming / kernels;
  const double stretched =
      (1.0 - streams) / (1.0 - collective.taken) + streams / (1.0 - collective.taken_memory);
  return 1.0 - 1.0 / stretched;
}

}  // namespace

Seconds overlap_loss(const KernelTimes& kernels, const GroupCollective& collective) {
  const double lost = share_lost(kernels.busy, kernels.streaming, collective);
  const Seconds slowed = std::min(lost / (1.0 - lost) * kernels.busy, lost * collective.time());
  return std::max(Seconds{}, slowed - kernels.idle);
}

TimeByPrice overlap_loss(const KernelTimes& kernels, const TimeByPrice& prices,
                         const GroupCollective& collective) {
  TimeByPrice lost;
  const Seconds sum = overlap_loss(kernels, collective);
  if (sum <= Seconds{}) return lost;
  TimeByPrice busy = prices.kernels();
  for (const Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
    busy.at(PriceKind::host, tag) = Seconds{};
  const double share = share_lost(kernels.busy, kernels.streaming, collective);
  const bool slowed_to_their_end = kernels.busy < (1.0 - share) * collective.time();
  if (slowed_to_their_end && busy.total() > Seconds{}) {
    lost.add(busy, sum / busy.total());
  } else {
    TimeByPrice whole;
    whole.add(collective);
    lost.add(whole, sum / collective.time());
  }
  return lost;
}

KernelTimes kernels_of(const std::vector<Segment>& segments) {
  KernelTimes sum;
  for (const Segment& segment : segments) {
    const KernelTimes inside = kernels_of(segment.fused);
    sum.busy += segment.compute - segment.idle + inside.busy;
    sum.streaming += segment.streaming + inside.streaming;
    sum.idle += segment.idle + inside.idle;
  }
  return sum;
}

namespace {

void stretch(Segment& segment, double factor) {
  segment.compute = factor * segment.compute;
  segment.streaming = factor * segment.streaming;
  segment.idle = factor * segment.idle;
  segment.weight_gradients = factor * segment.weight_gradients;
  for (Seconds& member : segment.members) member = factor * member;
  for (Segment& part : segment.fused) stretch(part, factor);
}

}  // namespace

Segment concurrent(const std::vector<Segment>& kernels, const GroupCollective& collective) {
  const bool plain = kernels.size() == 1 && !kernels.front().concurrent && !kernels.front().after &&
                     kernels.front().fused.empty();
  Segment both = plain ? kernels.front() : Segment{{}, {}, {}, {}, kernels};
  both.concurrent = collective;
  const KernelTimes times = kernels_of(kernels);
  if (const Seconds alone = times.busy + times.idle; alone > Seconds{})
    stretch(both, 1.0 + overlap_loss(times, collective) / alone);
  return both;
}

PassCost HiddenTraffic::lost(const PassCost& pass, CollectiveKind kind, double bytes,
                             GroupKind group) {
  PassCost lost;
  if (bytes <= 0.0) return lost;
  const auto [known, fresh] = known_.try_emplace({{kind, group}, bytes});
  if (fresh) known->second = pricer_.collective(collective("", kind, bytes, 0.0, group));
  const GroupCollective& concurrent = known->second;
  const KernelTimes kernels = kernels_of(pass.segments);
  const Seconds time = overlap_loss(kernels, concurrent);
  if (time <= Seconds{}) return lost;
  lost.segments.push_back({time, {}, {}});
  lost.segments.back().first_kernel = "slowed by a collective";
  lost.decisive = overlap_loss(kernels, pass.decisive, concurrent);
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

// Adds the losses of `runs`: forward to the gather of `next`, backward to its reduction.
void add_losses(const Scenario& scenario, HiddenTraffic& traffic, Bucket& runs,
                const Bucket& next) {
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

void add_step_traffic_losses(const Scenario& scenario, const Pricer& pricer,
                             std::span<StageCost> stages) {
  const Plan& plan = scenario.plan;
  if (!plan.dp_overlap || plan.shards_weights()) return;
  HiddenTraffic traffic{pricer};
  for (int stage = 0; stage < plan.pp; ++stage) {
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      Bucket* before = nullptr;  // The chunk's previous bucket in forward order.
      const auto v = static_cast<std::size_t>(plan.virtual_stage(stage, chunk));
      for (Bucket& bucket : stages[v].buckets) {
        if (before) add_losses(scenario, traffic, *before, bucket);
        before = &bucket;
      }
    }
  }
}

}  // namespace orrery
