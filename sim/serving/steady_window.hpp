#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/units.hpp"
#include "sim/serving/replay_counts.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// The part of a run that its figures are taken from.
enum class MeasuredPart {
  steady,  ///< From the end of the warm-up until clients stop sending.
  all      ///< From the first request sent to the last token, as benchmark programs count.
};
template <>
inline const std::vector<std::string> enum_words<MeasuredPart>{"steady", "all"};

/// A mean and half the width of its 90 % interval of sampling.
struct SampledMean {
  double mean = 0.0;
  double half = 0.0;

  double relative() const { return mean > 0.0 ? half / mean : 0.0; }
};

/// A window of a run's time, and what was measured in it. Latencies count the requests that clients
/// sent in the window, whenever they were answered; token counts hold the tokens made in it.
struct SteadyWindow {
  bool whole = true;  ///< It is the whole run: there are no intervals.
  Seconds begin, end;
  std::int64_t warm_up = 0;   ///< Requests sent before it.
  std::int64_t requests = 0;  ///< Requests sent in it.
  double ended = 0.0;         ///< Requests answered in it.
  double prompt_tokens = 0.0, output_tokens = 0.0;
  /// Mean times in seconds; tokens of answers a second; the share of requests that meet the limits.
  SampledMean ttft, tpot, output_rate, attainment;
  /// More came than was answered: the number of present requests grows for as long as they come.
  bool overloaded = false;
  std::vector<std::uint32_t> counted;  ///< Requests sent in it; empty if it is the whole run.
  bool long_enough = false;            ///< It lasts several times as long as a mean request.
  bool steady = false;                 ///< It is long enough, and its intervals are narrow.

  Seconds span() const { return end - begin; }
};

/// Finds the steady part of a replay, and replaces the latencies and finished requests of `counts`
/// by those of the requests sent in it; gaps between tokens (ITL) stay those of the whole run.
///
/// The warm-up ends where leaving out more would widen the interval of the mean end-to-end time
/// (MSER-5: K. P. White, Simulation 69, 1997), not before one request's time has passed, and in a
/// closed loop not before each client has sent its second request. The window ends one request's
/// time before the last is sent, so that all requests in it met the full load. Under overload no
/// such time exists: latencies are those of all requests, and rates those of the time in which the
/// engine was full. Intervals are those of 20 batch means, widened for the correlation of
/// neighbours.
///
/// `times`: of all requests, by their number. `skipped`: the user's warm-up in requests; negative:
/// it is found. If no more than a few dozen requests are left, the window is the whole run.
SteadyWindow measure_steady(const RequestList& list, const std::vector<RequestTimes>& times,
                            std::int64_t skipped, const std::optional<Slo>& slo,
                            ReplayCounts& counts);

/// The whole run as a window.
SteadyWindow whole_run(const ReplayCounts& counts);

/// Mean of `values` in their order, with its interval from `batches` batch means.
SampledMean batch_mean(const std::vector<double>& values, int batches = 20);

}  // namespace orrery
