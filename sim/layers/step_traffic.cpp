#include "sim/layers/step_traffic.hpp"

#include <algorithm>

#include "sim/layers/shard_units.hpp"

namespace orrery {
namespace {

// The sum of squares, and a flag for infinite gradients: a float each (megatron/core/optimizer).
constexpr Bytes norm_bytes{8.0};

Bytes bytes_of(std::int64_t parameters, double bytes_each) {
  return Bytes{bytes_each * static_cast<double>(parameters)};
}

}  // namespace

StepTraffic::StepTraffic(const Scenario& scenario, const CollectiveTime& collectives,
                         const GroupShapes& shapes)
    : scenario_{scenario}, collectives_{collectives}, shapes_{shapes} {}

CollectiveKind StepTraffic::reduction() const {
  return scenario_.plan.zero >= 1 && !scenario_.software.reduces_to_all
             ? CollectiveKind::reduce_scatter
             : CollectiveKind::all_reduce;
}

CollectiveCost StepTraffic::transfer(Bytes bytes, const GroupShape& pair) const {
  return collectives_.send(bytes, pair.domains == 1, pair.further_switches);
}

CollectiveCost StepTraffic::weights(std::int64_t parameters, GroupKind group) const {
  return collectives_(CollectiveKind::all_gather,
                      bytes_of(parameters, scenario_.software.weight_bytes), shapes_[group]);
}

CollectiveCost StepTraffic::gradients(std::int64_t parameters, GroupKind group) const {
  return collectives_(reduction(), bytes_of(parameters, scenario_.software.gradient_bytes),
                      shapes_[group]);
}

CollectiveCost StepTraffic::bucketed_gradients(std::int64_t parameters, GroupKind group) const {
  const Bytes size = scenario_.software.bucket_size;
  if (size <= Bytes{} || scenario_.plan.zero >= 1) return gradients(parameters, group);
  // The tensor that fills a bucket also closes it.
  const auto buckets =
      std::max(std::int64_t{1}, static_cast<std::int64_t>(bytes_of(parameters, 2.0) / size));
  return gradients(parameters / buckets, group).scaled(static_cast<double>(buckets));
}

Seconds StepTraffic::sliced_gather_host(int stage) const {
  const Plan& plan = scenario_.plan;
  int tensors = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk)
    tensors += weight_tensors(scenario_, plan.virtual_stage(stage, chunk));
  return scenario_.software.gather_calls * plan.shard_ranks() * tensors *
         scenario_.software.host_launch;
}

CollectiveCost StepTraffic::called_by_host(CollectiveCost cost) const {
  cost.latency = shard_host_time(scenario_) + cost.latency;
  return cost;
}

CollectiveCost StepTraffic::shard_weights(std::int64_t parameters, GroupKind group) const {
  return called_by_host(weights(parameters, group));
}

CollectiveCost StepTraffic::shard_gradients(std::int64_t parameters, GroupKind group) const {
  return called_by_host(gradients(parameters, group));
}

CollectiveCost StepTraffic::gradients_of_copies(std::int64_t parameters, GroupKind group) const {
  const Plan& plan = scenario_.plan;
  const int shards =
      group == GroupKind::expert_data ? plan.expert_shard_ranks() : plan.shard_ranks();
  return collectives_(CollectiveKind::all_reduce,
                      bytes_of(parameters, scenario_.software.gradient_bytes) / shards,
                      shapes_.shard_copies);
}

Bytes StepTraffic::mirror_bytes(const RankParameters& chunk, double bytes_each) const {
  const Plan& plan = scenario_.plan;
  const bool sharded = plan.zero >= 1;
  const double share =
      static_cast<double>(chunk.dense) / (sharded ? plan.shard_ranks() : 1) +
      static_cast<double>(chunk.experts) / (sharded ? plan.expert_shard_ranks() : 1);
  return Bytes{bytes_each * share};
}

CollectiveCost StepTraffic::mirror_weights(const RankParameters& chunk,
                                           const GroupShape& pair) const {
  return collectives_(CollectiveKind::all_gather,
                      mirror_bytes(chunk, scenario_.software.weight_bytes), pair);
}

CollectiveCost StepTraffic::mirror_gradients(const RankParameters& chunk,
                                             const GroupShape& pair) const {
  return collectives_(reduction(), mirror_bytes(chunk, scenario_.software.gradient_bytes), pair);
}

CollectiveCost StepTraffic::tied_gradients(Bytes bytes, const GroupShape& pair) const {
  return collectives_(CollectiveKind::all_reduce, bytes, pair);
}

CollectiveCost StepTraffic::norm() const {
  return collectives_(CollectiveKind::all_reduce, norm_bytes, shapes_.model);
}

CollectiveCost StepTraffic::norm_to_next_stage() const {
  return collectives_.send(norm_bytes, false);
}

}  // namespace orrery
