#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/value_list.hpp"
#include "sim/sweep/expression.hpp"

namespace orrery {

/// One value of a key, as a plan reads it, as a person writes it and as a condition sees it.
struct AxisValue {
  JsonValue json;
  std::string text;  ///< As a flag has it: 256, true, interleaved.
  Operand::Kind kind = Operand::Kind::number;
  double number = 0.0;         ///< Of a truth: 1 or 0.
  bool if_it_divides = false;  ///< Of a range of degrees: stays if it divides the GPUs of a point.

  Operand operand() const { return {kind, number, &text}; }
};

/// A key and the values that it takes, in the order in which they were written.
struct Axis {
  std::string key;
  std::vector<AxisValue> values;
};

/// What a sweep can vary: model, system, gpus and every key of a plan, in this order, which is
/// also the order of columns.
const std::vector<std::string>& axis_keys();

/// "256..8192*2", "8..64+8", "256..1024", "1,2,4", "none,full": values and ranges of whole numbers
/// with commas between them. A range ends at the last value that it hits; without a step it goes on
/// as open_range_of() says.
/// Errors (bad_input): an unknown key, a value that the key cannot take, a range without end or of
/// more than `most` values, a value that is there twice; `at` is what the message names.
Axis parse_axis(const std::string& key, const std::string& text, const Place& at,
                std::int64_t most = RangeRule{}.most);

/// The same from a JSON scalar, a text as above, or a list of scalars and ranges.
Axis read_axis(const std::string& key, const JsonValue& json, std::int64_t most = RangeRule{}.most);

}  // namespace orrery
