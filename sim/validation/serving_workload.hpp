#pragma once

#include <map>
#include <set>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// The load of a published measurement: `workload` of a serving case, and the options in `serving`
/// (docs/notes/validation.md). Lengths are uniform between `isl_low` and `isl`, or `isl_high` where
/// that is stated and `isl` is their mean; those of the dataset "sharegpt" are lognormal. A closed
/// loop without a number of requests has ten a client. Errors (infeasible): unsupported replays:
/// drafts, pools, limits without a rate.
ServingLoad load_of_case(const JsonValue& workload, const JsonValue* serving);

/// Results of a run by the names of measured quantities: "ttft_ms" (means), "ttft_p99_ms",
/// "tpot_ms", "itl_ms", "e2e_ms", "output_tokens_per_s", "output_tokens_per_s_per_gpu",
/// "total_tokens_per_s", "requests_per_s", "duration_s".
std::map<std::string, double> quantities_of(const ServingRun& run);
/// All their names.
const std::set<std::string>& client_quantities();

/// Errors over the requests of a trace with measured times: mean absolute errors, by
/// "request_ttft_ms" and "request_e2e_ms", and the number of requests.
struct RequestErrors {
  int count = 0;
  double mean_abs = 0.0;
  double mean = 0.0;
  double measured_ms = 0.0, predicted_ms = 0.0;  ///< Means.
};
std::map<std::string, RequestErrors> request_errors(const JsonValue& workload,
                                                    const ServingRun& run);

}  // namespace orrery
