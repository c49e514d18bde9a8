#pragma once

#include <string>

namespace orrery {

/// As a POSIX shell reads it back: what is more than a plain word stands in single quotes.
std::string shell_word(const std::string& text);

}  // namespace orrery
