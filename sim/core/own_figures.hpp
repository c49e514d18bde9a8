#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// The source of a figure that a user writes without one.
inline constexpr const char* own_source = "yours";

/// `json` with every plain number or quantity of a key of `keys`, at any depth, written out:
/// "nics_per_node": 8 becomes {"value": 8, "source": "yours"}. Errors in what was plain name the
/// key, not its /value.
JsonValue with_own_sources(const JsonValue& json, const std::vector<std::string>& keys);

/// Where figures stand whose source is the user: "nics_per_node", "fabric_shape/spines".
std::vector<std::string> own_figures(const JsonValue& json);

}  // namespace orrery
