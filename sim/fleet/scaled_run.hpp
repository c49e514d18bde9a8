#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fleet/scaling.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// A load that changes over time, and the fleet that follows it.
struct ScaledLoad {
  LoadCurve curve;
  ScalerRequest scaler;
  int initial = 1;  ///< Replicas that are ready at the start.
  Seconds start;    ///< From asking for a replica until it takes requests.
  /// If stated, each stage of the curve begins so long after all requests of the one before are
  /// answered, as load generators wait (inference-perf). Else at its time, whatever is answered.
  std::optional<Seconds> between_stages;
};

/// Samples the requests of a load curve, with the lengths, prefixes and seed of `traffic`: in each
/// stage the number that its rate says. `constant`: they arrive at equal distances; else
/// independently of each other, as a Poisson process does given their number.
RequestList requests_of_curve(const LoadCurve& curve, bool constant, RequestTraffic traffic);

/// The times at which a replica was requested, became ready, was closed to new requests, and ended.
struct ReplicaLife {
  Seconds asked, ready, closed{-1.0}, ended{-1.0};  ///< Below 0: it was not.
};

struct ScalingDecision {
  Seconds time;
  int from = 0, to = 0;  ///< Replicas that are asked for.
  std::string why;
};

/// A moment of the timeline.
struct FleetMoment {
  Seconds time;
  double rate = 0.0;
  int ready = 0, starting = 0, draining = 0;
  double attainment = 1.0;  ///< Of requests that came since the moment before.
};

struct ScaledRun {
  ServingSetup setup;
  KvCapacity kv;
  ScalerRequest scaler;
  ReplayCounts counts;
  Seconds load_end;  ///< End of the load's last stage.
  Seconds span;      ///< Until the last request is answered, at least to the end of the load.
  std::vector<ReplicaLife> lives;
  std::vector<ScalingDecision> decisions;
  std::vector<FleetMoment> timeline;  ///< A minute each.
  std::vector<RequestTimes> times;    ///< By request.
  std::vector<ClassOutcome> classes;
  /// The most requests that waited at all replicas together at one of the decisions.
  std::int64_t longest_queue = 0;

  int gpus_a_replica() const {
    return static_cast<int>(setup.deployment.gpus() / setup.deployment.replicas);
  }
  /// Replica seconds in which they start, serve and drain. Serving ends with the span.
  Seconds starting() const, serving() const, draining() const;
  double gpu_hours() const;
  /// Replicas that are asked for, on average over the span, or from the start until a time.
  double mean_replicas() const { return mean_replicas(span); }
  double mean_replicas(Seconds until) const;
  int most_ready() const;
  double attainment() const;
};

/// Replays the load on a fleet that the policy scales. A replica that is given up takes no more
/// requests and ends when it has answered its own. `rules` has the router and the limits, which
/// saturations need. Errors (infeasible): the KV cache does not hold the longest request.
ScaledRun serve_scaled(const PricedServing& priced, const ScaledLoad& load,
                       const RequestList& requests, const ServingLoad& rules, const Place& at);

/// What a policy made of several draws of the same load.
struct PolicySamples {
  std::vector<double> attainment, gpu_hours, replicas;  ///< By draw.
  std::vector<double> serving, starting, draining;      ///< GPU hours, likewise.
  std::vector<double> changes;                          ///< Decisions, likewise.
  ReplayCounts counts;                                  ///< Of all together.

  void add(const ScaledRun& run);
};
/// Mean of all; 0 of none.
double mean_of(const std::vector<double>& values);

/// Of the policies that keep `share` of the requests within their limits on average, the one with
/// the fewest GPU hours, and those that may be as good: the differences from it, sample by sample,
/// are not clear of 0 by two standard errors, or below 1 %. The oracle, which knows the load to
/// come, takes no part.
struct BestPolicy {
  std::optional<std::size_t> best;  ///< None keeps to it.
  std::vector<std::size_t> ties;
};
BestPolicy best_policy(const std::vector<ScalerRequest>& policies,
                       const std::vector<PolicySamples>& samples, double share);

/// Replica seconds that no policy can do without, if a replica serves `capacity` requests a second:
/// the least whole number at each moment.
Seconds least_replica_seconds(const LoadCurve& curve, double capacity);

/// How a replica comes to take requests.
enum class ReplicaStart {
  cold,      ///< Its processes start and read the weights from storage.
  snapshot,  ///< From a snapshot of a process that was ready, with its weights.
  sleep      ///< Its process lives, with its weights in the host's memory.
};
template <>
inline const std::vector<std::string> enum_words<ReplicaStart>{"cold", "snapshot", "sleep"};

/// The time from the start of a replica until it takes requests, without a node to provision or an
/// image to pull: 55 s for processes, imports, compilation, graphs and warm-up and 0.3 s a GB of
/// weights on a GPU; 3.5 s and 0.3 s a GB from a snapshot; 0.1 s and the link to the host. These
/// times are those of four models on one B200 with vLLM 0.20 and network storage (Dynamo Snapshot,
/// docs/development/benchmarks.md, 008aac1f).
Seconds start_time(const ServingSetup& setup, ReplicaStart how);
/// The same of "cold", "snapshot", "sleep", or a time such as "100s"; "": cold.
Seconds start_time(const ServingSetup& setup, const std::string& text, const Place& at);

}  // namespace orrery
