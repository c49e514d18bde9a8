#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// What was published of a quantity: a value, or that it lies above or below one.
struct PublishedValue {
  double low = 0.0, high = 0.0;
  bool is_value() const { return low == high; }
  /// What was published, or of bounds the nearest value that they allow.
  double nearest(double predicted) const { return std::clamp(predicted, low, high); }
};

/// What somebody published of a whole training run and its interruptions
/// (docs/notes/validation.md).
struct RunCase {
  std::string id;
  std::string reliability;
  int gpus = 0;
  double days = 54.0;  ///< How long it was.
  /// What was published was worked out for one rate, whatever is known of its error and of months.
  bool constant_rate = false;
  /// Of a job of which no plan was published: how it saves and recovers; what is not said is as the
  /// profile has it, and the interval the best.
  std::optional<Seconds> interval, recovery;
  Seconds stall, write;
  /// Of a job of which it was.
  std::string system, model;
  std::optional<JsonValue> plan;
  double tokens = 0.0;
  double slower = 0.0;             ///< What one GPU takes longer than the others.
  std::optional<JsonValue> batch;  ///< Keys of the plan as it was while the batch grew.
  std::optional<BytesPerSecond> storage;
  std::map<std::string, PublishedValue> measured;
  Place place;
};

/// Whether an entry of a list is one.
bool is_run_case(const JsonValue& entry);
/// Errors (bad_input): keys that are missing or unknown, values out of range.
RunCase read_run_case(const JsonValue& entry);

}  // namespace orrery
