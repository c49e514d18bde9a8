#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Thirty years: far above anything that happens in a run, far below overflow.
constexpr Seconds longest_span{1e9};

/// Reads a time span such as "4h"; an error where it is longer than longest_span.
inline Seconds span_of(const JsonValue& json) {
  const Seconds span = parse_span(json.text(), json.place());
  if (span > longest_span) json.fail("is longer than 30 years", "check the number and its unit");
  return span;
}

/// Places of checkpoint copies, the fastest and least durable first.
enum class CheckpointTier {
  local,  ///< Memory or disk of the node itself: left where only a process died.
  peer,   ///< Memory of another node: left where one node is lost.
  store   ///< A file system: never lost.
};
template <>
inline const std::vector<std::string> enum_words<CheckpointTier>{"local", "peer", "store"};

/// A time that is uniform between two ends.
struct TimeRange {
  Seconds low, high;
};

/// The consequences of failures of one group: "gpu", "host", "network", "software", "planned".
struct FailureGroup {
  std::string name;
  TimeRange detection;    ///< Time until it is clear what failed.
  bool replaces = false;  ///< The node leaves, and a spare takes its place.
  bool planned = false;   ///< Announced: the job saves before it stops.
  CheckpointTier survives = CheckpointTier::store;  ///< The first tier whose copies are left.
};

struct FailureCause {
  std::string name;
  std::size_t group = 0;     ///< Index into Reliability::groups.
  double per_gpu_day = 0.0;  ///< Grows with the job.
  double per_job_day = 0.0;  ///< Independent of the job's size.
  double events = 0.0;       ///< Counted; 0: a rate was published.
  double per_day(int gpus) const { return per_gpu_day * gpus + per_job_day; }
};

/// GPUs that become slower than others and do not fail.
struct SlowGpus {
  double per_gpu_day = 0.0;        ///< 0: none does.
  double events = 0.0;             ///< Counted; 0: a rate was published.
  double least = 0.0, most = 0.0;  ///< Slowdown of kernels: 0.05 is 5 %.
  TimeRange detection;             ///< Time until it is clear which one it is.
};

/// base + each x GPUs.
struct TimeByGpus {
  Seconds base, each;
  Seconds at(int gpus) const { return base + each * gpus; }
};

/// The failure model of a fleet: workloads/reliability/<name>.json ("orrery.reliability/1",
/// docs/reference/failure-models.md). Every figure names its source there.
struct Reliability {
  std::string name;
  std::string title;
  std::vector<FailureGroup> groups;
  std::vector<FailureCause> causes;
  SlowGpus slow;
  /// Standard deviation of the kernel times of healthy GPUs over their median; 0: unset.
  double speed_deviation = 0.0;
  /// Nine in ten rates lie within this factor if nothing was counted.
  double spread = 1.0;
  double month_deviation = 0.0;  ///< Standard deviation of a month's rate, over its mean.
  Seconds month;
  /// Counted batches of 1, 2, ... failures that came together and were repaired together. Empty:
  /// each came alone.
  std::vector<double> batches;
  int batch_gpus = 0;             ///< GPUs of the fleet in which batches were counted.
  std::vector<Seconds> repair;    ///< Quantiles at 0, 1 / (n - 1), ..., 1.
  std::optional<Seconds> refill;  ///< Time in repair after which a fresh unit comes; none: never.
  TimeByGpus restart;  ///< Time of a cold start until the first step, without recomputation.
  TimeByGpus regroup;  ///< Time to rebuild the communicators alone.
  /// Training stalls for a checkpoint by tier, without its copy off the GPUs.
  std::array<Seconds, 3> stalls;
  BytesPerSecond store_per_gpu;  ///< Sustained bandwidth of a store, over the GPUs that it serves.

  Seconds stall(CheckpointTier tier) const { return stalls[static_cast<std::size_t>(tier)]; }
  double per_day(int gpus) const;     ///< Failures of a job.
  double events() const;              ///< Counted, of all causes; 0 unless all were counted.
  std::optional<JsonValue> document;  ///< The profile's own file, without the default's keys.
};

/// `word`: a name in workloads/reliability or a path. Keys that it lacks are read from
/// workloads/reliability/default.json, except for its causes.
Reliability read_reliability(const std::string& word, const Place& at);
/// Errors (bad_input): unknown or missing keys, figures without a source or a unit, negative rates,
/// undescribed groups, quantiles that fall.
Reliability parse_reliability(const JsonValue& json, const Reliability& base);

}  // namespace orrery
