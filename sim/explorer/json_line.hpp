#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace orrery {

/// A line of JSON; what is no UTF-8 is replaced.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace orrery
