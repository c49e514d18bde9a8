#pragma once

#include <cstdint>
#include <deque>
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

/// The inputs of a scaling decision: metrics of the requests that were answered within the policy's
/// window, and of the replicas. No metric is of the future.
struct ScalingSignals {
  Seconds now;
  int ready = 0;  ///< Replicas that take requests.
  int asked = 0;  ///< Replicas that were asked for and not given up.
  /// The larger of the latencies over their limits that were expected of those requests when they
  /// came: of their means, and of the 90th percentiles of histograms. 0 if none was answered.
  /// Computed for ScalingLaw::wva alone, which reads them.
  double mean_saturation = 0.0, p90_saturation = 0.0;
  double kv_share = 0.0;  ///< Mean share of the caches in use now.
  double queue = 0.0;     ///< Mean number of requests that wait at a replica now.
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

enum class ScalingLaw { fixed, oracle, wva, hpa };
template <>
inline const std::vector<std::string> enum_words<ScalingLaw>{"fixed", "oracle", "wva", "hpa"};

/// A scaler as the user wrote it.
struct ScalerRequest {
  ScalingLaw law = ScalingLaw::fixed;
  // WVA's epp-saturation analyzer (llm-d, docs/developer-guide/epp-saturation-benchmark.md,
  // 0f0098a2): thresholds of the saturation, its smoothing and where it is cut.
  double up = 0.55, down = 0.40, alpha = 0.6, cap = 2.0;
  bool by_mean = false;  ///< The mean of expected latencies, not their 90th percentile.
  // Kubernetes' law, by the share of the caches in use and the requests that wait.
  double kv = 0.7, queue = 2.0;
  // The oracle: requests a second that a replica serves within the limits.
  double capacity = 0.0;
  int least = 1, most = 1 << 16;
  Grants grants;
};

/// Reads "fixed", "oracle:capacity=1.4", "wva:up=.55,down=.40,alpha=0.6,signal=p90|mean,up-by=4,
/// up-share=1,up-period=60s", "hpa:kv=0.7,queue=2", each with min and max. Errors (bad_input): no
/// law, a key that is none of its own, a number outside its range, thresholds that overlap.
ScalerRequest parse_scaler(const std::string& text, const Place& at);
/// The same text, without what is usual.
std::string scaler_text(const ScalerRequest& request);

/// `start`: from asking for a replica until it takes requests, which the oracle looks ahead.
std::unique_ptr<ScalingPolicy> make_policy(const ScalerRequest& request, const LoadCurve& curve,
                                           Seconds start);
std::unique_ptr<ScalingPolicy> make_oracle(const LoadCurve& curve, double capacity, Seconds start);
std::unique_ptr<ScalingPolicy> make_wva(const ScalerRequest& request);
std::unique_ptr<ScalingPolicy> make_hpa(const ScalerRequest& request);

/// Turns wishes into replicas that are asked for.
class Granting {
 public:
  Granting(const Grants& rules, int least, int most) : rules_{rules}, least_{least}, most_{most} {}

  /// A policy's newest wish.
  void wish(int replicas) { wished_ = replicas, has_wish_ = true; }
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
