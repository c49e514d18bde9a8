#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// A load that changes: from each time on a rate of requests, until the next one.
struct LoadCurve {
  struct Stage {
    Seconds begin;
    double rate = 0.0;  ///< Requests a second.
  };
  std::vector<Stage> stages;  ///< In order, the first at 0.
  Seconds end;

  double rate_at(Seconds time) const;
  /// The largest rate between two times.
  double most(Seconds from, Seconds until) const;
  double requests() const;  ///< The mean number of all.
};

/// A Prometheus histogram of one window: counts by bucket, of which quantiles are interpolated.
class MetricHistogram {
 public:
  /// `bounds`: upper ends of the buckets, ascending; one more has what is beyond.
  explicit MetricHistogram(std::span<const double> bounds)
      : bounds_{bounds}, counts_(bounds.size() + 1) {}

  void add(double value, std::int64_t count = 1);
  /// 0 without a value.
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0.0; }
  /// What histogram_quantile() gives: linear within a bucket, and the last bound beyond it.
  double quantile(double share) const;

 private:
  std::span<const double> bounds_;
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  double sum_ = 0.0;
};

/// The work of one replica as a scaler sees it, in tokens.
struct ReplicaWork {
  double queued_prompts = 0.0;  ///< Of prompts that are yet to be computed.
  double cache = 0.0;           ///< In its cache, with those of requests that wait.
  double cache_size = 0.0;
  std::int64_t decodes = 0;
};

/// The inputs of a scaling decision: metrics of the requests within the policy's window, and of the
/// replicas now. No metric is of the future.
struct ScalingSignals {
  Seconds now;
  Seconds of_curve;  ///< The time of the load's curve, which its stages may be behind.
  int ready = 0;     ///< Replicas that take requests.
  int asked = 0;     ///< Replicas that were asked for and not given up.
  /// The larger of the latencies over their limits that were expected of requests when they came:
  /// of their means, and of the 90th percentiles of histograms, of those that were answered within
  /// the window; 0 if none was. Computed for ScalingLaw::wva alone, which reads them.
  double mean_saturation = 0.0, p90_saturation = 0.0;
  double kv_share = 0.0;       ///< Mean share of the caches in use now.
  double queue = 0.0;          ///< Mean number of requests that wait at a replica now.
  std::int64_t in_flight = 0;  ///< Requests of all replicas now.
  /// Requests that came within the window, and their mean lengths.
  std::int64_t came = 0;
  double prompt_tokens = 0.0, output_tokens = 0.0;
  std::vector<ReplicaWork> replicas;  ///< Those that are ready; for ScalingLaw::planner alone.
};

/// What a policy knows of the engine from its profile: times on one replica that serves alone.
struct EngineProfile {
  /// Of an iteration of so many decodes with so many tokens in the cache and parts of prompts.
  std::function<Seconds(std::int64_t decodes, double context, double prompt_tokens)> step;
  double cache_tokens = 0.0;
  double most_requests = 0.0;
  double budget = 0.0;  ///< Tokens of an iteration.
  Seconds ttft, tpot;   ///< The limits; Slo::any: there is none.
};

/// Decides how many replicas there should be. A file each; it sees nothing but its signals.
class ScalingPolicy {
 public:
  virtual ~ScalingPolicy() = default;
  struct Wish {
    int replicas = 0;
    std::string why;
  };
  virtual Wish wish(const ScalingSignals& seen) = 0;
  /// Time from one decision to the next, and that over which it sees requests.
  virtual Seconds cycle() const { return Seconds{60.0}; }
  virtual Seconds window() const { return Seconds{60.0}; }
};

/// Kubernetes' horizontal pod autoscaler between a wish and what is granted: of the wishes within a
/// window the least counts upwards and the most downwards, and replicas change by so many in so
/// long.
struct Grants {
  Seconds sync{15.0};
  Seconds up_window{30.0}, down_window{180.0};
  int up_by = 4;          ///< At most so many,
  double up_share = 1.0;  ///< or this share of them if that is more, in
  Seconds up_period{60.0};
  int down_by = 1;
  Seconds down_period{120.0};
};

enum class ScalingLaw { fixed, oracle, wva, hpa, knative, planner };
template <>
inline const std::vector<std::string> enum_words<ScalingLaw>{"fixed", "oracle",  "wva",
                                                             "hpa",   "knative", "planner"};

/// The oracle knows the load to come, and how many requests a second a replica serves within the
/// limits.
struct OracleLaw {
  double capacity = 0.0;
};

enum class WvaSignal { p90, mean };
template <>
inline const std::vector<std::string> enum_words<WvaSignal>{"p90", "mean"};

/// WVA's analyzer epp-saturation (llm-d, docs/developer-guide/epp-saturation-benchmark.md,
/// 0f0098a2): thresholds of the saturation, its smoothing and where it is cut.
struct WvaLaw {
  double up = 0.55, down = 0.40, alpha = 0.6, cap = 2.0;
  WvaSignal signal = WvaSignal::p90;
};

/// Kubernetes' law, by the share of the caches in use and the requests that wait. KEDA feeds the
/// same law.
struct HpaLaw {
  double kv = 0.7, queue = 2.0;
};

/// Knative's law (knative/serving, pkg/autoscaler, 98e5ef9): requests in flight at a replica, of
/// which a share is aimed at, over a stable window and over a short one, which counts in a panic.
struct KnativeLaw {
  double concurrency = 100.0, utilization = 0.7;
  double panic_share = 0.1;      ///< The short window over the stable one.
  double panic_threshold = 2.0;  ///< Wanted replicas over ready ones, from which it panics.
  double up_rate = 1000.0, down_rate = 2.0;
  Seconds window{60.0};
};

enum class PlannerTarget { throughput, latency, sla };
template <>
inline const std::vector<std::string> enum_words<PlannerTarget>{"throughput", "latency", "sla"};
enum class Forecast { constant, kalman };
template <>
inline const std::vector<std::string> enum_words<Forecast>{"constant", "kalman"};

/// NVIDIA Dynamo's planner for co-located prompts and answers (components/src/dynamo/planner, core:
/// throughput_scaling.py 0c9050c, load_scaling.py 0c6da1e, predictors.py 260b6ae). Its forecasts
/// ARIMA and Prophet are libraries' and not modelled.
struct PlannerLaw {
  Seconds throughput{180.0};  ///< From one forecast to the next; 0: none is made.
  Seconds load{5.0};          ///< From one look at the queues to the next; 0: it does not look.
  PlannerTarget target = PlannerTarget::sla;
  Forecast predict = Forecast::constant;
  double sensitivity = 0.8;  ///< Share of a limit below which one replica fewer must stay.
};

/// A scaler as the user wrote it: of the laws the one that is named counts.
struct ScalerRequest {
  ScalingLaw law = ScalingLaw::fixed;
  OracleLaw oracle{};
  WvaLaw wva{};
  HpaLaw hpa{};
  KnativeLaw knative{};
  PlannerLaw planner{};
  int least = 1, most = 1 << 16;
  Grants grants{};  ///< Of wva and hpa.

  bool is_granted() const { return law == ScalingLaw::wva || law == ScalingLaw::hpa; }
};

/// Reads "fixed", "oracle:capacity=1.4", "wva:up=.55,down=.40,alpha=0.6,signal=p90|mean,up-by=4,
/// up-share=1,up-period=60s", "hpa:kv=0.7,queue=2", "knative:concurrency=100,utilization=0.7",
/// "planner:throughput=180s,load=5s,target=sla,predict=kalman", each with min and max. Errors
/// (bad_input): no law, a key that is none of its own, a number outside its range, thresholds that
/// overlap.
ScalerRequest parse_scaler(const std::string& text, const Place& at);
/// The same text, without what is usual.
std::string scaler_text(const ScalerRequest& request);

/// `start`: from asking for a replica until it takes requests, which the oracle looks ahead. Keeps
/// references to the curve and the profile.
std::unique_ptr<ScalingPolicy> make_policy(const ScalerRequest& request, const LoadCurve& curve,
                                           Seconds start, const EngineProfile& profile);
std::unique_ptr<ScalingPolicy> make_oracle(const LoadCurve& curve, double capacity, Seconds start);
std::unique_ptr<ScalingPolicy> make_wva(const WvaLaw& law);
std::unique_ptr<ScalingPolicy> make_hpa(const HpaLaw& law);
std::unique_ptr<ScalingPolicy> make_knative(const KnativeLaw& law);
std::unique_ptr<ScalingPolicy> make_planner(const PlannerLaw& law, const EngineProfile& profile);

/// Turns wishes into replicas that are asked for.
class Granting {
 public:
  Granting(const Grants& rules, int least, int most) : rules_{rules}, least_{least}, most_{most} {}

  /// A policy's newest wish.
  void wish(int replicas) { wished_ = replicas, has_wish_ = true; }
  /// A recommendation of before, which the windows hold.
  void recommend(Seconds time, int replicas) { wishes_.emplace_back(time, replicas); }
  /// The number to ask for from `now` on, where `asked` are now.
  int grant(Seconds now, int asked);

 private:
  struct Change {
    Seconds time;
    int by = 0;
  };
  Grants rules_;
  int least_, most_;
  int wished_ = 0;
  bool has_wish_ = false;
  std::deque<std::pair<Seconds, int>> wishes_;  // As they were seen, within the longer window.
  std::deque<Change> ups_, downs_;
};

}  // namespace orrery
