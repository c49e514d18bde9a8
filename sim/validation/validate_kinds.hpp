#pragma once

#include <cmath>
#include <string>

#include "sim/validation/validate.hpp"

namespace orrery {

/// Means over the points of a table or of a part of it, each weighing the same.
struct PointErrors {
  int points = 0;
  double measured = 0.0, predicted = 0.0, abs_error = 0.0, error = 0.0;

  void add(double was, double estimate) {
    ++points;
    measured += was;
    predicted += estimate;
    error += estimate / was - 1.0;
    abs_error += std::abs(estimate / was - 1.0);
  }

  Comparison comparison(const std::string& id, const std::string& quantity) const {
    Comparison row{id, quantity, measured / points, predicted / points, {}, {}};
    row.over_points = Comparison::Points{points, abs_error / points, error / points};
    return row;
  }
};

/// Predicts every point of every sweep in `json`. A case has up to three rows: the time of its
/// messages below 1 MiB, that of those below 64 MiB, and the bus bandwidth of larger ones; measured
/// and predicted are means over the points, the error the mean absolute error of a point.
void compare_collectives(const JsonValue& json, const ValidationOptions& options,
                         ValidationReport& report);

/// Predicts every row of every dispatch and combine table in `json`. A table has two rows of the
/// report: measured and predicted are means over its rows, the error the mean absolute error.
void compare_exchanges(const JsonValue& json, const ValidationOptions& options,
                       ValidationReport& report);

/// Predicts every timed kernel of a file of kernel_case.hpp ("time_s"), without its own row of the
/// tables, but with all others. Tables of ours are predicted from themselves, other files from the
/// tables of the catalog.
void compare_kernels(const JsonValue& json, ValidationReport& report);

/// True if a file is a table of inference kernels (calibration/data/serving).
bool is_serving_table(const JsonValue& json);
/// Predicts every fourth row of it from the others ("time_s").
void compare_serving_rows(const JsonValue& json, ValidationReport& report);

/// Predicts the published figures of whole runs: "ettr" as the mean of 1,000 replicates, "mttf_h",
/// "interruptions", "restart_s", "checkpoint_bytes", "write_s", "load_s"; "slow_step_ratio", of the
/// stage where a slow GPU costs the most; "throughput_ratio", of a smaller batch to the whole one;
/// and of servers in repair "away_mean", "away_p50", "away_p90", "away_p99".
void compare_runs(const JsonValue& json, ValidationReport& report);

/// Predicts measurements of engines. Static batches: "prefill_time_ms" of the whole batch's
/// prompts, and "decode_step_ms" halfway through the output. A deployment alone: "kv_cache_tokens".
void compare_serving(const JsonValue& json, ValidationReport& report);

/// True if an entry of a list is a measurement of sessions, of a fleet that scales or starts, or of
/// memories for keys and values (docs/notes/validation.md).
bool is_fleet_case(const JsonValue& entry);
/// Predicts such measurements: "attainment", "mean_replicas"; "start_s"; "transfer_ms";
/// "throughput_ratio" of a fleet with memories behind its GPUs' to one without; latencies, hits and
/// tokens of sessions.
void compare_fleets(const JsonValue& json, ValidationReport& report);

/// True if an entry of a list is a step of reinforcement learning, or a part of one
/// (docs/notes/validation.md).
bool is_rl_case(const JsonValue& entry);
/// Predicts steps of reinforcement learning and their phases: "step_time_s", "generation_s",
/// "logprobs_s" of the policy and a reference, "training_s", "transfer_s" of the weights.
void compare_rl_steps(const JsonValue& json, ValidationReport& report);

}  // namespace orrery
