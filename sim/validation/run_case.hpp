#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// A published quantity: a value, or a bound from one side.
struct PublishedValue {
  double low = 0.0, high = 0.0;
  bool is_value() const { return low == high; }
  /// The published value, or the nearest one within the bounds.
  double nearest(double predicted) const { return std::clamp(predicted, low, high); }
};

/// A published training run with its interruptions (docs/notes/validation.md).
struct RunCase {
  std::string id;
  std::string reliability;
  int gpus = 0;
  double days = 54.0;  ///< Length of the run.
  /// The publication computed with one rate, so that neither its error nor months count.
  bool constant_rate = false;
  /// Checkpoints and recovery of a job without a published plan; unset: the profile's, and the best
  /// interval.
  std::optional<Seconds> interval, recovery;
  Seconds stall, write;
  /// The published plan, if any.
  std::string system, model;
  std::optional<JsonValue> plan;
  double tokens = 0.0;
  double slower = 0.0;             ///< Slowdown of one GPU.
  std::optional<JsonValue> batch;  ///< Plan keys while the batch grew.
  std::optional<BytesPerSecond> storage;
  std::map<std::string, PublishedValue> measured;
  Place place;
};

/// True if an entry of a list is one.
bool is_run_case(const JsonValue& entry);
/// Errors (bad_input): keys that are missing or unknown, values out of range.
RunCase read_run_case(const JsonValue& entry);

}  // namespace orrery
