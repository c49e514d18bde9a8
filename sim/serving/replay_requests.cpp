#include "sim/serving/replay_requests.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

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
      source.ended(replica.ended(), replica.now());
      ended();
    }
    const Seconds now = arrives ? next : replica.now();
    while (source.next() <= now) replica.arrive(source.take(), now);
    replica.start(now);
  }
}

// Replicas that meet on one clock: the stages of a pipeline, or copies of attention in step.
std::uint32_t lanes_of(const ReplayShape& shape) {
  const auto lanes = static_cast<std::uint32_t>(shape.replica.stages * shape.replica.copies);
  assert(shape.replicas % lanes == 0);
  return lanes;
}

struct Share {
  std::vector<std::uint32_t> requests;
  std::uint32_t clients = 0;
};

// Splits requests over servers of `lanes` replicas each, if the router does not look at them.
// Servers without a client of a closed loop get nothing.
std::vector<Share> split(const RequestList& list, const ReplayShape& shape) {
  const ReplaySettings& settings = shape.replica.replay;
  const std::uint32_t servers = shape.replicas / lanes_of(shape);
  std::vector<Share> shares(servers);
  for (std::uint32_t r = 0; r < servers; ++r)
    shares[r].clients = list.clients / servers + (r < list.clients % servers);
  const std::uint32_t used = list.clients > 0 ? std::min(list.clients, servers) : servers;
  RequestRouter router{settings.routing, used, list.seed};
  if (settings.routing == Routing::round_robin)
    for (Share& share : shares) share.requests.reserve(list.requests.size() / servers + 1);
  for (std::uint32_t i = 0; i < list.requests.size(); ++i)
    shares[router.choose(list.requests[i])].requests.push_back(i);
  return shares;
}

void keep_iterations(const Replica& replica, std::uint32_t number, RequestReplay& result) {
  for (ReplayedIteration iteration : replica.iterations()) {
    iteration.replica = number;
    result.iterations.push_back(iteration);
  }
}

// Results of one replica's replay.
struct ReplayedShare {
  ReplayCounts counts;
  std::vector<RequestTimes> times;  // If they are kept.

  std::string bytes() const {
    static_assert(std::is_trivially_copyable_v<RequestTimes>);
    const std::string counted = counts.bytes();
    const std::size_t size = counted.size();
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += counted;
    bytes.append(reinterpret_cast<const char*>(times.data()), times.size() * sizeof(RequestTimes));
    return bytes;
  }
  static ReplayedShare of_bytes(const std::string& bytes) {
    std::size_t size = 0;
    assert(bytes.size() >= sizeof size);
    std::memcpy(&size, bytes.data(), sizeof size);
    const std::size_t from = sizeof size + size;
    assert(bytes.size() >= from && (bytes.size() - from) % sizeof(RequestTimes) == 0);
    ReplayedShare share{ReplayCounts::of_bytes(bytes.substr(sizeof size, size)), {}};
    share.times.resize((bytes.size() - from) / sizeof(RequestTimes));
    if (!share.times.empty())
      std::memcpy(share.times.data(), bytes.data() + from, bytes.size() - from);
    return share;
  }
};

// `drive` runs what serves `source` to its end, and calls a function after each completion.
template <class Drive>
void send(const RequestList& list, const ReplayShape& shape, const Share& share,
          const Drive& drive) {
  if (share.clients > 0) {
    ClosedLoop source{list, share.requests, share.clients, shape.replica.client};
    drive(source);
  } else {
    OwnTimes source{list, share.requests, shape.replica.client};
    drive(source);
  }
}

// `iterations`: destination of iterations, if they are kept.
ReplayedShare replay_share(const RequestList& list, const ReplayShape& shape, const Share& share,
                           std::uint32_t number, StepTimes& step_times, RequestReplay& iterations) {
  ReplayedShare replayed;
  const bool keeps = shape.replica.replay.keeps_times;
  if (keeps) replayed.times.reserve(share.requests.size());
  const auto ended = [&](const Replica& replica) {
    if (keeps)
      replayed.times.insert(replayed.times.end(), replica.ended().begin(), replica.ended().end());
  };
  const std::uint32_t lanes = lanes_of(shape);
  if (lanes == 1) {
    Replica replica{list, shape.replica, step_times};
    send(list, shape, share,
         [&](auto& source) { drive(replica, source, [&] { ended(replica); }); });
    keep_iterations(replica, number, iterations);
    replayed.counts = replica.counts();
    return replayed;
  }
  const bool alone = lanes == shape.replicas;
  Fleet server{
      list, shape.replica, lanes, step_times,
      RequestRouter{shape.replica.replay.routing, lanes, list.seed, alone ? 0 : number + 1}};
  send(list, shape, share, [&](auto& source) { server.run(source, ended); });
  std::uint32_t lane = number * lanes;
  for (const Replica& replica : server.replicas()) {
    replayed.counts.add(replica.counts());
    keep_iterations(replica, lane++, iterations);
  }
  return replayed;
}

// Two shares are alike if their requests are: all of one length, without hashes, and all at one
// time or in a closed loop.
std::vector<std::uint32_t> first_alike(const RequestList& list, const ReplayShape& shape,
                                       const std::vector<Share>& shares) {
  const ReplaySettings& settings = shape.replica.replay;
  std::vector<std::uint32_t> first(shares.size());
  const Request& one = list.requests.front();
  const bool alike =
      !settings.unfolded && !settings.keeps_times && !settings.keeps_iterations &&
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
  result.replayed = static_cast<std::uint32_t>(todo.size()) * lanes_of(shape);
  if (settings.keeps_times) result.times.resize(list.requests.size());
  std::vector<ReplayCounts> counts(shares.size());
  const auto work = [&](std::uint32_t r) {
    return replay_share(list, shape, shares[r], r, step_times, result);
  };
  const auto take = [&](std::uint32_t r, ReplayedShare share) {
    counts[r] = std::move(share.counts);
    for (const RequestTimes& of : share.times) result.times[of.request] = of;
  };
  if (settings.workers > 1 && todo.size() > 1 && !settings.keeps_iterations) {
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
          take(static_cast<std::uint32_t>(outcome.task), ReplayedShare::of_bytes(outcome.bytes));
          return true;
        });
  } else {
    for (const std::uint32_t r : todo) take(r, work(r));
  }
  for (std::uint32_t r = 0; r < shares.size(); ++r) result.counts.add(counts[first[r]]);
  return result;
}

RequestReplay replay_together(const RequestList& list, const ReplayShape& shape, StepTimes& times) {
  const ReplaySettings& settings = shape.replica.replay;
  Share all{std::vector<std::uint32_t>(list.requests.size()), list.clients};
  std::iota(all.requests.begin(), all.requests.end(), 0u);
  Fleet fleet{
      list, shape.replica, shape.replicas, times,
      RequestRouter{settings.routing, shape.replicas, list.seed, 0, settings.router_weights}};
  RequestReplay result;
  result.replayed = shape.replicas;
  if (settings.keeps_times) result.times.resize(list.requests.size());
  const auto ended = [&](const Replica& replica) {
    if (settings.keeps_times)
      for (const RequestTimes& of : replica.ended()) result.times[of.request] = of;
  };
  send(list, shape, all, [&](auto& source) { fleet.run(source, ended); });
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
  // Requests that a client sends together may be at several replicas.
  const bool on_one_clock = looks_at_replicas(shape.replica.replay.routing) || list.together > 1 ||
                            shape.replica.kv.shares_last;
  return on_one_clock ? replay_together(list, shape, times) : replay_apart(list, shape, times);
}

RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape,
                              const StepCosts& costs) {
  StepTimes times{costs};
  return replay_requests(list, shape, times);
}

void refuse_oversized(const RequestList& list, const KvShape& kv, std::int64_t at_once,
                      const Place& at) {
  std::int64_t most = 0;
  for (const Request& request : list.requests)
    most = std::max<std::int64_t>(most,
                                  std::int64_t{request.prompt_tokens} + request.output_tokens - 1);
  const std::int64_t blocks = kv.tokens / kv.block_tokens * kv.groups.all();
  const std::int64_t capacity =
      kv.block_tokens *
      kv.groups.longest(blocks, kv.groups.most_windowed(at_once, kv.block_tokens));
  if (most <= capacity) return;
  fail_infeasible(at,
                  "the longest request keeps " + std::to_string(most) +
                      " tokens in the KV cache, which holds " + std::to_string(capacity) + ": " +
                      std::to_string(most - capacity) + " too few",
                  "raise tp, store keys and values in fp8, or leave out longer requests");
}

}  // namespace orrery
