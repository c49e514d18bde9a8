#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "sim/serving/pooled_replay.hpp"
#include "sim/serving/pools.hpp"
#include "sim/serving/replay_requests.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_step.hpp"
#include "sim/serving/steady_window.hpp"

namespace orrery {

/// Requests of clients to a deployment, and settings of their replay.
struct ServingLoad {
  RequestTraffic traffic;  ///< The distributions that the requests follow, if not a trace.
  std::string file;        ///< File of the trace or the lengths; empty: there is none.
  RequestList list;
  bool over_network = true;  ///< Clients are remote: the engine's `client` time is added.
  bool prefix_cache = false;
  ReplaySettings replay;
  MeasuredPart part = MeasuredPart::all;  ///< Steady: of sampled requests, with `stationary`.
  std::int64_t skipped = -1;              ///< Requests of the warm-up; negative: it is found.
  /// The run is made as long as steady figures need; until then `list` is without requests.
  bool finds_length = false;
  std::shared_ptr<const RequestList> lengths;  ///< A file's, in place of those of `traffic`.
  /// Replicas of the deployment that each simulated replica represents; `traffic` is then the share
  /// of the simulated ones.
  int represented = 1;
  /// Independent simulations of the whole deployment, whose traffic `traffic` holds together. One
  /// of the two numbers is 1.
  int repeats = 1;
};

/// What a memory behind the GPU's did for a run.
struct TierUse {
  std::string name;
  double hit_share = 0.0;   ///< Share of the prompts' tokens that came from it.
  Bytes stored, loaded;     ///< Keys and values of all GPUs that went there and came back.
  double link_share = 0.0;  ///< Share of the run for which reads used its link.
};

/// `represented`: as of ServingRun.
std::vector<TierUse> tier_uses(const ServingSetup& setup, const KvCapacity& kv,
                               const ReplayTotals& totals, double represented, Seconds span);

/// One of two pools in a run.
struct PoolOutcome {
  ServingSetup setup;
  KvCapacity kv;
  ReplayCounts counts;
  double busy = 0.0;            ///< Share of the run in which its replicas compute.
  Bound bound = Bound::memory;  ///< Bottleneck of its typical iteration.
};

struct PooledOutcome {
  PoolsPlan plan;
  PoolOutcome prefill, decode;
  TransferCounts transfers;
  std::vector<PoolTimes> times;                      ///< Indexed by request, if they are kept.
  std::vector<ReplayedIteration> decode_iterations;  ///< The prefill pool's are in `replay`.
};

/// What the requests of a class got.
struct ClassOutcome {
  std::string name;
  std::int64_t requests = 0, within_limits = 0;
  LatencyHistogram ttft, tpot, e2e;

  double attainment() const {
    return requests > 0 ? static_cast<double>(within_limits) / static_cast<double>(requests) : 0.0;
  }
};
/// By class, of the requests whose numbers are `counted`, or of all if there are none. Empty if
/// there are no classes.
std::vector<ClassOutcome> outcomes_of_classes(const RequestList& list,
                                              const std::vector<RequestTimes>& times,
                                              const std::optional<Slo>& slo,
                                              const std::vector<std::uint32_t>& counted);

/// The result of a run. Figures are of all GPUs of all replicas together.
struct ServingRun {
  ServingSetup setup;  ///< The decode pool's if there are pools, as is `kv`.
  KvCapacity kv;
  RequestReplay replay;
  bool open = false;       ///< Requests came at their own times.
  bool saturated = false;  ///< The queue of an open loop grew through the run.
  std::optional<PooledOutcome> pools;
  SteadyWindow window;
  std::vector<ClassOutcome> classes;  ///< Of the requests that count.
  std::int64_t sampled = 0;           ///< Requests that were replayed.
  /// Replicas of the deployment for each simulated one: below 1 if the deployment was simulated
  /// several times.
  double represented = 1.0;

  std::int64_t gpus() const { return pools ? pools->plan.gpus() : setup.deployment.gpus(); }
  Seconds span() const;  ///< Time from the first request sent to the last token.
  /// Rates within the window.
  double requests_per_s() const;
  double output_tokens_per_s() const;
  double total_tokens_per_s() const;
  /// Tokens a second that half of the clients exceed: 1 / median TPOT; 0 where no answer has two.
  double interactivity() const;
  /// Invalid with pools, whose outcomes have counts of their own.
  std::vector<TierUse> tiers() const;
  double slo_share() const;  ///< Share of requests that meet the SLO; all do without one.
};

/// Requests of an attention rank that run at a time at most, as the pool holds their states; 0:
/// there is no such pool.
std::int64_t requests_with_states(const ServingSetup& setup, bool keeps_prefixes,
                                  const KvCapacity& kv);

Request longest_of(const RequestList& list);
/// The batch of one copy of attention; those of a pipeline share its memory and its requests.
ReplicaShape replica_shape(const ServingSetup& setup, const ServingLoad& load,
                           const KvCapacity& kv);
/// Notes what was replayed, and measures the part of the run that the load asks for.
void measure(const ServingLoad& load, ServingRun& run);
/// True if requests come at their own times.
bool is_open_loop(const RequestList& list);
/// Errors (infeasible): memory, which the batches of a pipeline share, does not hold the longest
/// request.
void need_space(const ServingSetup& setup, const Request& longest, const Place& at);

/// Refuses requests of which one alone holds more than the pool of windows has, or than each of the
/// batches that take turns in a pipeline has of it (infeasible).
void need_windows(const ServingSetup& setup, const KvCapacity& kv, const RequestList& list,
                  bool keeps_prefixes, const Place& at);

/// Errors (bad_input): host memory for keys and values without a prefix cache.
void need_prefixes(const Deployment& plan, const ServingLoad& load, const Place& at);

/// The requests of a load: sampled, or with the lengths of its file.
RequestList requests_of(const ServingLoad& load);

/// Replays the requests. Each copy of attention, and each of the batches that take turns in a
/// pipeline, is a replica of its own with its share of the requests.
/// Errors (infeasible): the KV cache does not hold the longest request.
ServingRun serve_requests(const PricedServing& priced, const ServingLoad& load, const Place& at);

using Serve = std::function<ServingRun(const ServingLoad&)>;

/// Replays the load by `serve`: if it finds its length, longer and longer, until its figures are
/// steady (steady_window.hpp), or it is overloaded, or there are `most_sampled` requests. If many
/// replicas are statistically alike, only some are simulated (ServingLoad::represented).
/// `replicas`: of the deployment; 0: it has pools, all of which are replayed.
ServingRun serve_until_steady(const Serve& serve, const ServingLoad& load, int replicas);
inline constexpr std::int64_t most_sampled = 1 << 18;

/// True if copies of attention wait for each other because they share experts.
bool copies_go_in_step(const ServingSetup& setup);

/// The largest rate at which enough requests meet the limits.
struct Goodput {
  double rate = 0.0;  ///< Requests a second, within 1 %; 0: no rate meets them.
  int rates_tried = 0;
  std::optional<ServingRun> at_rate;    ///< The run at that rate.
  std::optional<ServingRun> at_lowest;  ///< The run at the lowest rate tried, if none meets them.
};

/// The limits that the requests of a run keep to, of those that `asked` states: the percentiles of
/// each, with as many requests beyond them as all together may be. Nothing: it is overloaded.
std::optional<Slo> kept_limits(const ServingRun& run, const Slo& asked);

/// Doubles, halves and bisects the rate of the load's traffic, of which nothing else changes, and
/// replays each as serve_until_steady() does. A rate that overloads meets nothing. `load` has
/// limits.
Goodput largest_rate(const Serve& serve, ServingLoad load, int replicas);

}  // namespace orrery
