#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {

/// An answer of `orrery serve` to requests.
struct ServedAnswer {
  ServingLoad load;
  ServingRun run;
  std::optional<Goodput> goodput;
  TokenCost cost;
  ServingRunsByFigure by_runs = {};  ///< Corrections by the user's own runs.
};

/// A latency of a replay, with its key in JSON and its label in tables.
struct NamedLatency {
  const char* key;
  std::string label;
  const LatencyHistogram& histogram;
};
/// TTFT, TPOT, ITL, end-to-end time and queueing time. The histograms stay those of `counts`.
std::vector<NamedLatency> latencies(const ReplayCounts& counts);
/// Mean, percentiles and maximum in milliseconds, a line each.
std::string latency_table(const std::vector<NamedLatency>& latencies);

/// Latencies in milliseconds and the share within their limits, a line each; "" without classes.
std::string class_table(const std::vector<ClassOutcome>& classes);
/// A line for each memory behind the GPU's.
std::string tier_lines(const Deployment& plan, const std::vector<TierUse>& uses);

std::string serving_run_text(const ServedAnswer& answer);
/// orrery.serving/1 with `workload`, `latency_ms`, `throughput`, ... (docs/reference/json.md).
/// `wall_s`: duration of the replay; below 0: left out.
std::string serving_run_json(const ServedAnswer& answer, double wall_s);
/// A JSON object a line and request, in their order. Requires that times were kept.
std::string request_lines(const ServingRun& run, const RequestList& list);

/// A replay as Chrome trace JSON, which ui.perfetto.dev opens: a process for each replica with its
/// iterations, in which equal ones that follow each other are one slice; and a slice for each
/// request with its wait, its prompt and its answer. Requires a run that kept its times
/// (ServingLoad). Times are microseconds with three decimals, from the first request sent.
/// Errors (infeasible): more events than viewers bear.
///
/// Source   "Trace Event Format" (Chromium project, 2016): event types X, M, b and e.
std::string replay_trace(const ServingRun& run, const Place& at);

}  // namespace orrery
