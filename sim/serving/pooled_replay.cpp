#include "sim/serving/pooled_replay.hpp"

#include <cassert>
#include <numeric>

#include "sim/serving/arrival_source.hpp"
#include "sim/serving/pooled_fleet.hpp"

namespace orrery {
namespace {

ReplayCounts counts_of(const Fleet& fleet, std::vector<ReplayedIteration>& iterations) {
  ReplayCounts counts;
  std::uint32_t number = 0;
  for (const Replica& replica : fleet.replicas()) {
    counts.add(replica.counts());
    for (ReplayedIteration iteration : replica.iterations()) {
      iteration.replica = number;
      iterations.push_back(iteration);
    }
    ++number;
  }
  return counts;
}

}  // namespace

PooledReplay replay_pools(const RequestList& list, const PooledShape& shape, KvWays& ways,
                          StepTimes& prefill, StepTimes& decode) {
  assert(!list.requests.empty());
  std::vector<std::uint32_t> all(list.requests.size());
  std::iota(all.begin(), all.end(), 0u);
  PooledReplay result;
  if (shape.keeps_times) result.times.resize(list.requests.size());
  PooledFleet fleet{list, shape, ways, prefill, decode};
  const auto ended = [&](const Replica& replica) {
    if (shape.keeps_times)
      for (const RequestTimes& of : replica.ended()) result.times[of.request] = of;
  };
  if (shape.clients > 0) {
    ClosedLoop source{all, shape.clients, shape.prefill.replica.client};
    fleet.run(source, ended);
  } else {
    OwnTimes source{list, all, shape.prefill.replica.client};
    fleet.run(source, ended);
  }
  result.prefill = counts_of(fleet.prefill(), result.prefill_iterations);
  result.decode = counts_of(fleet.decode(), result.decode_iterations);
  result.transfers = fleet.transfers();
  result.pool_times = fleet.times();
  assert(result.prefill.totals.finished + result.decode.totals.finished +
             std::min<std::int64_t>(shape.decode.replica.first_counted,
                                    static_cast<std::int64_t>(list.requests.size())) ==
         static_cast<std::int64_t>(list.requests.size()));
  return result;
}

}  // namespace orrery
