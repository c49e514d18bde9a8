#pragma once

#include <string>

#include "sim/formats/settings/settings.hpp"

namespace orrery {

/// The document of a text. Anchors, aliases and merged maps (<<) are followed; tags are not.
/// A map may name a key twice: the later value counts, as with PyYAML, which the tools use.
/// Errors (bad_input): no YAML, by its line; a second document; nested too deep, or aliases that
/// grow without end.
SettingsTree read_yaml(const std::string& text, const std::string& file);

/// A TOML document as a tree of settings: strings are quoted, numbers, truths and dates are words.
/// Keys of a table are in the order of their lines. Errors (bad_input): no TOML, by its line.
SettingsTree read_toml(const std::string& text, const std::string& file);

}  // namespace orrery
