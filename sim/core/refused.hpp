#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sim/core/error.hpp"

namespace orrery {

/// Why something that a user asks for cannot be, as a value: for who asks for a thousand things
/// and goes on. Who answers a user throws error().
struct Refused {
  Error::Kind kind = Error::Kind::infeasible;
  std::string key;  ///< What is at fault, within the place that the asker knows; "": all of it.
  std::string problem, remedy;

  Error error(const Place& at) const {
    return {kind, key.empty() ? at : at / key, problem, remedy};
  }
};

inline Refused infeasible(const std::string& key, const std::string& problem,
                          const std::string& remedy) {
  return {Error::Kind::infeasible, key, problem, remedy};
}
inline Refused contradiction(const std::string& key, const std::string& problem,
                             const std::string& remedy) {
  return {Error::Kind::bad_input, key, problem, remedy};
}

/// Nothing where there is nothing against it.
using MaybeRefused = std::optional<Refused>;

/// What was asked for, or why it cannot be.
template <class Value>
using OrRefused = std::variant<Value, Refused>;

}  // namespace orrery
