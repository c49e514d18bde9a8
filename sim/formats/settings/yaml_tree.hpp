#pragma once

#include <string>

#include "sim/formats/settings/settings_tree.hpp"

namespace orrery {

/// The first document of a text. Anchors, aliases and merged maps (<<) are followed; tags are not.
/// Errors (bad_input): no YAML, by its line; nested too deep, or aliases that grow without end.
SettingsTree read_yaml(const std::string& text, const std::string& file);

}  // namespace orrery
