#include "sim/serving/replay_requests.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "sim/core/worker_pool.hpp"
#include "sim/serving/fleet.hpp"

namespace orrery {
namespace {

// Runs one replica to its end.
template <class Source>
void drive(Replica& replica, Source& source, const std::function<void()>& ended) {
  while (true) {
    const Seconds next = source.next();
    const bool arrives = next <= replica.change_at();
    if (arrives && next == Replica::never) return;
    if (arrives && !replica.is_idle()) {
      replica.arrive(source.take(), next);
      continue;
    }
    if (!arrives) {
      replica.complete();
      source.ended(replica.ended().size(), replica.now());
      ended();
    }
    const Seconds now = arrives ? next : replica.now();
    while (source.next() <= now) replica.arrive(source.take(), now);
    replica.start(now);
  }
}

struct Share {
  std::vector<std::uint32_t> requests;
  std::uint32_t clients = 0;
};

// Splits requests over replicas, if the router does not look at them. Replicas without a client of
// a closed loop get nothing.
std::vector<Share> split(const RequestList& list, const ReplayShape& shape) {
  const ReplaySettings& settings = shape.replica.replay;
  std::vector<Share> shares(shape.replicas);
  for (std::uint32_t r = 0; r < shape.replicas; ++r)
    shares[r].clients = list.clients / shape.replicas + (r < list.clients % shape.replicas);
  const std::uint32_t used =
      list.clients > 0 ? std::min(list.clients, shape.replicas) : shape.replicas;
  RequestRouter router{settings.routing, used, list.seed};
  if (settings.routing == Routing::round_robin)
    for (Share& share : shares) share.requests.reserve(list.requests.size() / shape.replicas + 1);
  for (std::uint32_t i = 0; i < list.requests.size(); ++i)
    shares[router.choose(list.requests[i])].requests.push_back(i);
  return shares;
}

void keep_times(const Replica& replica, std::vector<RequestTimes>& times) {
  for (const RequestTimes& of : replica.ended()) times[of.request] = of;
}

void keep_iterations(const Replica& replica, std::uint32_t number, RequestReplay& result) {
  for (ReplayedIteration iteration : replica.iterations()) {
    iteration.replica = number;
    result.iterations.push_back(iteration);
  }
}

// `kept`: destination of times and iterations; null: they are not kept.
ReplayCounts replay_share(const RequestList& list, const ReplayShape& shape, const Share& share,
                          std::uint32_t number, StepTimes& step_times, RequestReplay* kept) {
  Replica replica{list, shape.replica, step_times};
  const auto ended = [&] {
    if (kept) keep_times(replica, kept->times);
  };
  if (share.clients > 0) {
    ClosedLoop source{share.requests, share.clients, shape.replica.client};
    drive(replica, source, ended);
  } else {
    OwnTimes source{list, share.requests, shape.replica.client};
    drive(replica, source, ended);
  }
  if (kept) keep_iterations(replica, number, *kept);
  return replica.counts();
}

// Two shares are alike if their requests are: all of one length, without hashes, and all at one
// time or in a closed loop.
std::vector<std::uint32_t> first_alike(const RequestList& list, const ReplayShape& shape,
                                       const std::vector<Share>& shares) {
  const ReplaySettings& settings = shape.replica.replay;
  std::vector<std::uint32_t> first(shares.size());
  const Request& one = list.requests.front();
  const bool alike =
      !settings.unfolded && !settings.keeps_times && settings.first_counted == 0 &&
      std::all_of(list.requests.begin(), list.requests.end(), [&](const Request& other) {
        return other.prompt_tokens == one.prompt_tokens &&
               other.output_tokens == one.output_tokens && other.hashes == 0 &&
               other.arrival == one.arrival;
      });
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint32_t> seen;
  for (std::uint32_t r = 0; r < shares.size(); ++r)
    first[r] =
        alike
            ? seen.emplace(std::pair{shares[r].requests.size(), shares[r].clients}, r).first->second
            : r;
  return first;
}

RequestReplay replay_apart(const RequestList& list, const ReplayShape& shape,
                           StepTimes& step_times) {
  const ReplaySettings& settings = shape.replica.replay;
  const std::vector<Share> shares = split(list, shape);
  const std::vector<std::uint32_t> first = first_alike(list, shape, shares);
  std::vector<std::uint32_t> todo;
  for (std::uint32_t r = 0; r < shares.size(); ++r)
    if (first[r] == r) todo.push_back(r);
  RequestReplay result;
  result.replayed = static_cast<std::uint32_t>(todo.size());
  if (settings.keeps_times) result.times.resize(list.requests.size());
  std::vector<ReplayCounts> counts(shares.size());
  const auto work = [&](std::uint32_t r) {
    return replay_share(list, shape, shares[r], r, step_times,
                        settings.keeps_times ? &result : nullptr);
  };
  if (settings.workers > 1 && todo.size() > 1 && !settings.keeps_times) {
    std::size_t next = 0;
    run_tasks(
        settings.workers, {},
        [&]() -> std::optional<std::int64_t> {
          return next < todo.size() ? std::optional<std::int64_t>{todo[next++]} : std::nullopt;
        },
        [&](std::int64_t r) -> Answer { return {work(static_cast<std::uint32_t>(r)).bytes()}; },
        [&](const Outcome& outcome) {
          if (!outcome.failure.empty())
            throw std::runtime_error("replica " + std::to_string(outcome.task) + ": " +
                                     outcome.failure);
          counts[static_cast<std::size_t>(outcome.task)] = ReplayCounts::of_bytes(outcome.bytes);
          return true;
        });
  } else {
    for (const std::uint32_t r : todo) counts[r] = work(r);
  }
  for (std::uint32_t r = 0; r < shares.size(); ++r) result.counts.add(counts[first[r]]);
  return result;
}

RequestReplay replay_together(const RequestList& list, const ReplayShape& shape, StepTimes& times) {
  const ReplaySettings& settings = shape.replica.replay;
  std::vector<std::uint32_t> all(list.requests.size());
  std::iota(all.begin(), all.end(), 0u);
  Fleet fleet{list, shape.replica, shape.replicas, times,
              RequestRouter{settings.routing, shape.replicas, list.seed}};
  RequestReplay result;
  result.replayed = shape.replicas;
  if (settings.keeps_times) result.times.resize(list.requests.size());
  const auto ended = [&](const Replica& replica) {
    if (settings.keeps_times) keep_times(replica, result.times);
  };
  if (list.clients > 0) {
    ClosedLoop source{all, list.clients, shape.replica.client};
    fleet.run(source, ended);
  } else {
    OwnTimes source{list, all, shape.replica.client};
    fleet.run(source, ended);
  }
  std::uint32_t number = 0;
  for (const Replica& replica : fleet.replicas()) {
    result.counts.add(replica.counts());
    keep_iterations(replica, number++, result);
  }
  return result;
}

}  // namespace

RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape, StepTimes& times) {
  assert(!list.requests.empty() && shape.replicas >= 1);
  const bool together = looks_at_replicas(shape.replica.replay.routing) ||
                        shape.replica.stages > 1 || shape.replica.copies > 1;
  return together ? replay_together(list, shape, times) : replay_apart(list, shape, times);
}

RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape,
                              const StepCosts& costs) {
  StepTimes times{costs};
  return replay_requests(list, shape, times);
}

void refuse_oversized(const RequestList& list, const KvShape& kv, const Place& at) {
  std::int64_t most = 0;
  for (const Request& request : list.requests)
    most = std::max<std::int64_t>(most,
                                  std::int64_t{request.prompt_tokens} + request.output_tokens - 1);
  const std::int64_t capacity = kv.tokens / kv.block_tokens * kv.block_tokens;
  if (most <= capacity) return;
  fail_infeasible(at,
                  "the longest request keeps " + std::to_string(most) +
                      " tokens in the KV cache, which holds " + std::to_string(capacity) + ": " +
                      std::to_string(most - capacity) + " too few",
                  "raise tp, store keys and values in fp8, or leave out longer requests");
}

}  // namespace orrery
