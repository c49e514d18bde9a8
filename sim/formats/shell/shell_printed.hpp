#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// What a program prints that only looks at its words: dirname, basename, echo, expr and others.
/// Paths are taken as they are written. Nothing: another program.
std::optional<std::string> printed_by(const std::vector<std::string>& words);

}  // namespace orrery
