#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/replay_counts.hpp"
#include "sim/serving/replica.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/request_router.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// Equal replicas behind a router.
struct ReplayShape {
  ReplicaShape replica;
  std::uint32_t replicas = 1;
  Routing routing = Routing::round_robin;
  std::uint32_t clients = 0;  ///< Of a closed loop; 0: requests have their own times.
  std::uint64_t seed = 1;
  int workers = 1;           ///< Processes that take replicas that do not look at each other.
  bool keeps_times = false;  ///< Of every request; by one process.
};

struct RequestReplay {
  ReplayCounts counts;
  std::vector<RequestTimes> times;  ///< By the number of the request, where they are kept.
  /// Of each replica one after the other, where the replica's shape keeps them.
  std::vector<ReplayedIteration> iterations;
  std::uint32_t replayed = 0;  ///< Replicas that were, for themselves and their like.
};

/// Sends all requests through the replicas until the last one is answered. The same whatever the
/// number of workers. Requests must fit (refuse_what_never_fits()).
RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape,
                              const StepLaw& law);
/// The same with times that another replay may have asked for before.
RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape, StepTimes& times);

/// Refuses requests of which not even one fits into the empty memory of a replica, where they would
/// wait for ever. Errors (infeasible): with the number of tokens that are missing.
void refuse_what_never_fits(const RequestList& list, const KvShape& kv, const Place& at);

}  // namespace orrery
