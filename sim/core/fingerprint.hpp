#pragma once

#include <functional>
#include <string>

namespace orrery {

/// Sixteen hexadecimal digits that stand for `text` (FNV-1a, 64 bits): good against mistakes, not
/// against forgery.
std::string fingerprint_of(const std::string& text);

/// The same for all that an answer depends on: this program's file, the catalog and the
/// calibration, and every other file that `read` reads.
/// Errors (bad_input): a file that cannot be read.
std::string fingerprint_of_inputs(const std::function<void()>& read);

}  // namespace orrery
