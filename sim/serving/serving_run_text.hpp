#pragma once

#include <optional>
#include <string>

#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// What was asked, in the user's words.
struct ServedWorkload {
  std::string arrivals;  ///< "closed", "poisson", ..., "trace"
  std::int64_t concurrency = 0;
  double rate = 0.0;           ///< 0: none is said.
  std::string prompt, output;  ///< Their laws; empty: of a file.
  std::string file;            ///< Empty: none.
  std::int64_t requests = 0;
  std::int64_t failed = 0;  ///< Rows of the file without an answer.
  std::uint64_t seed = 1;
};

/// An answer of `orrery serve` to requests.
struct ServedAnswer {
  ServedWorkload workload;
  ServingRun run;
  std::optional<Slo> slo;
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
