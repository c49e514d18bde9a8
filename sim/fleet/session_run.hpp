#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/fleet/sessions.hpp"
#include "sim/serving/replay_requests.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// How sessions come to a deployment. One of `lanes` and `rate` is given.
struct SessionLoad {
  SessionTrace trace;
  std::string file;
  /// Lanes each replay one session after the other, from a common list that begins again at its
  /// end: a closed population.
  std::uint32_t lanes = 0;
  /// Sessions a second that begin, independently of each other (Poisson).
  double rate = 0.0;
  Seconds duration{3600.0};  ///< Turns are sent for so long after the warm-up.
  /// Turns of each lane before the clock starts.
  std::uint32_t warm_turns = 0;
  /// Each lane skips a random share of its first session, between these two. The first turn that
  /// it sends then computes its whole prompt.
  double start_low = 0.0, start_high = 0.0;
  double think = 1.0;          ///< Factor on the waits of users and tools.
  Seconds longest_wait{1e18};  ///< Longer waits are cut to it.
  std::uint64_t seed = 1;
};

/// Sends the turns of sessions when the turns before them are answered: what Fleet::run() calls a
/// source. Appends each request to `sent` when its session begins.
class SessionSource {
 public:
  /// `client`: time between a client and the engine, there and back. Keeps references.
  SessionSource(const SessionLoad& load, Seconds client, RequestList& sent);

  Seconds next() const {
    return times_.empty() || times_.next().time >= end_ + client_ ? Replica::never
                                                                  : times_.next().time;
  }
  std::uint32_t take();
  void ended(std::span<const RequestTimes> requests, Seconds now);

  /// The session and the turn of a request in `sent`, and its state.
  struct Origin {
    std::uint32_t instance = 0;  ///< Number of its session among all that began.
    std::uint32_t turn = 0;      ///< Of the trace.
    std::uint32_t waits_for = 0;
    bool counts = false;  ///< It was sent after the warm-up.
    bool is_sent = false;
    Seconds due;  ///< When it is sent, as far as the turns before it are answered.
  };
  const std::vector<Origin>& origins() const { return origins_; }
  struct Instance {
    std::uint32_t session = 0;  ///< Of the trace.
    std::uint32_t lane = 0;
    std::uint32_t first_request = 0;
    std::uint32_t left = 0;  ///< Turns that are not answered.
    bool whole = true;       ///< From its first turn on.
    Seconds begun, ended{-1.0};
  };
  const std::vector<Instance>& instances() const { return instances_; }
  /// When the clock started; `never`: the warm-up did not end.
  Seconds clock() const { return clock_; }
  Seconds end() const { return end_; }

 private:
  void begin(std::uint32_t lane, Seconds now, double done);
  void push(std::uint32_t request);
  void warmed(std::uint32_t lane, Seconds now);
  void arrive_next(Seconds now);

  const SessionLoad& load_;
  Seconds client_;
  RequestList& sent_;
  EventQueue<Seconds, std::uint32_t> times_;  // Arrivals at the engine, by request.
  std::vector<Origin> origins_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> order_;  // Of the sessions.
  std::size_t cursor_ = 0;
  std::vector<std::uint32_t> warm_left_;  // Turns of each lane.
  std::uint32_t lanes_to_warm_ = 0;
  Seconds clock_, end_;
  Random arrivals_;
};

/// The result of a replay of sessions. Its counts cover the turns that were sent after the warm-up.
struct SessionRun {
  ServingSetup setup;
  KvCapacity kv;
  ReplayCounts counts;
  Seconds span;           ///< From the clock's start to the last sending.
  std::int64_t sent = 0;  ///< Turns, with those of the warm-up.
  std::int64_t sub_agent_turns = 0;
  std::int64_t sessions_begun = 0;  ///< All of them.
  LatencyHistogram session_time;    ///< Of those that were whole.
  /// Tokens of prompts that a cache which forgets nothing has, of earlier prompts alone, as
  /// benchmarks count it; and with their answers, which is the bound.
  double known_tokens = 0.0, known_with_answers = 0.0;
  std::vector<std::int64_t> prompt_tokens_of;  ///< By replica: tokens of prompts that it was sent.
  std::vector<RequestTimes> times;             ///< Of all turns, as they ended.
  std::vector<SessionSource::Origin> origins;
  std::vector<std::uint32_t> replica_of;  ///< By request.

  std::int64_t gpus() const { return setup.deployment.gpus(); }
  double ideal_hit_share() const;
  double bound_of_hits() const;
  std::vector<TierUse> tiers() const {
    return tier_uses(setup, kv, counts.totals, 1.0, counts.totals.end);
  }
  double hit_share() const { return counts.totals.prefix_hit_share(); }
  /// Tokens of prompts and answers a second and GPU, with those from the cache.
  double total_tokens_per_s_per_gpu() const;
  /// The same without those from the cache.
  double computed_tokens_per_s_per_gpu() const;
  double turns_per_s() const;
  /// The largest share of a replica in the prompts' tokens, times the number of replicas.
  double imbalance() const;
  double slo_share() const;
};

/// Fills the run, but for its setup, with what replicas of this shape make of the sessions.
void replay_sessions(const SessionLoad& sessions, const ReplayShape& shape, StepTimes& times,
                     SessionRun& run);

/// Replays the sessions. `load.replay` has the router and the limits; its requests are not used.
/// Errors (infeasible): the KV cache does not hold the longest turn.
SessionRun serve_sessions(const PricedServing& priced, const SessionLoad& sessions,
                          const ServingLoad& load, const Place& at);

/// The largest number of lanes whose turns keep to the limits of `load`, within a twentieth or one
/// lane, and its run. 0: not even one lane does, whose run is given.
struct MostLanes {
  std::uint32_t lanes = 0;
  int tried = 0;
  SessionRun run;
};
MostLanes most_lanes(const PricedServing& priced, SessionLoad sessions, const ServingLoad& load,
                     const Place& at);

}  // namespace orrery
