#pragma once

#include <string>

namespace orrery {

/// A message as a terminal may have it, whatever was typed or stood in a file: on one line, with
/// control characters written out, such as \x1b.
std::string harmless(const std::string& message);

}  // namespace orrery
