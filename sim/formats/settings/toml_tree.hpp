#pragma once

#include <string>

#include "sim/formats/settings/settings_tree.hpp"

namespace orrery {

/// A TOML document as a tree of settings: strings are quoted, numbers, truths and dates are words.
/// Keys of a table are in the order of their lines. Errors (bad_input): no TOML, by its line.
SettingsTree read_toml(const std::string& text, const std::string& file);

}  // namespace orrery
