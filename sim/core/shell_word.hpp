#pragma once

#include <string>
#include <vector>

namespace orrery {

/// As a POSIX shell reads it back: what is more than a plain word stands in single quotes.
std::string shell_word(const std::string& text);

/// "orrery estimate --model ...": how a command was typed.
std::string typed_command(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace orrery
