#pragma once

#include <optional>
#include <string>

#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// An answer of `orrery serve` to requests.
struct ServedAnswer {
  ServingLoad load;
  ServingRun run;
  std::optional<Goodput> goodput;
  TokenCost cost;
  ServingRunsByFigure by_runs = {};  ///< Where some were measured.
};

std::string serving_run_text(const ServedAnswer& answer);
/// orrery.serving/1 with `workload`, `latency_ms`, `throughput`, ... (docs/reference/json.md).
/// `wall_s`: what the replay took; below 0: not to be said.
std::string serving_run_json(const ServedAnswer& answer, double wall_s);
/// A JSON object a line and request, by their numbers. Times are kept.
std::string request_lines(const ServingRun& run);

}  // namespace orrery
