#pragma once

#include "sim/core/json_value.hpp"
#include "sim/core/quantity_text.hpp"

namespace orrery {

/// Thirty years: far above anything that happens in a run, far below overflow.
constexpr Seconds longest_span{1e9};

/// "4h" of a file; an error where it is longer than that.
inline Seconds span_of(const JsonValue& json) {
  const Seconds span = parse_span(json.text(), json.place());
  if (span > longest_span) json.fail("is longer than 30 years", "check the number and its unit");
  return span;
}

}  // namespace orrery
