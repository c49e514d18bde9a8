#pragma once

#include <map>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/posttraining/rl_job.hpp"

namespace orrery {

/// A measured step of reinforcement learning, or a part of one (docs/notes/validation.md).
struct RlCase {
  std::string id, title;
  std::string model, system, framework;
  int gpus = 0;
  RlRequest request;
  std::map<std::string, double> measured;  ///< Seconds by quantity.
  Place place;
};

/// True if an entry of a list is one.
bool is_rl_case(const JsonValue& entry);
/// Errors (bad_input): keys that are missing or unknown, values out of range.
RlCase read_rl_case(const JsonValue& entry);

}  // namespace orrery
