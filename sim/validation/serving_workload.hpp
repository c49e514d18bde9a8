#pragma once

#include <map>
#include <set>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// What clients did in a published measurement: `workload` of a serving case, and what `serving`
/// says of the engine besides (docs/notes/validation.md). Lengths between `isl_low` and `isl`, each
/// as likely; a closed loop without a number of requests has ten a client. Errors (infeasible):
/// what is not replayed: drafts, pools, limits without a rate.
ServingLoad load_of_case(const JsonValue& workload, const JsonValue* serving);

/// What a run says, in the names of measured quantities: "ttft_ms" (means), "ttft_p99_ms",
/// "tpot_ms", "itl_ms", "e2e_ms", "output_tokens_per_s", "output_tokens_per_s_per_gpu",
/// "total_tokens_per_s", "requests_per_s", "duration_s".
std::map<std::string, double> quantities_of(const ServingRun& run);
/// All their names.
const std::set<std::string>& client_quantities();

/// Of a trace whose rows say what was measured of each request: mean absolute errors, by
/// "request_ttft_ms" and "request_e2e_ms", and how many requests they are of.
struct RequestErrors {
  int count = 0;
  double mean_abs = 0.0;
  double mean = 0.0;
  double measured_ms = 0.0, predicted_ms = 0.0;  ///< Means.
};
std::map<std::string, RequestErrors> request_errors(const JsonValue& workload,
                                                    const ServingRun& run);

}  // namespace orrery
