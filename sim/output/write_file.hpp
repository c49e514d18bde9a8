#pragma once

#include <string>

namespace orrery {

/// Writes `text` to `path` so that a reader finds the old file or the whole new one, never a part:
/// a temporary file in the same folder takes the name's place. A link is followed; a device or a
/// pipe, such as /dev/stdout, is written to directly. An existing file keeps its permissions.
/// Errors (bad_input): the file cannot be written, and why. Nothing is left behind then.
void write_file(const std::string& path, const std::string& text);

}  // namespace orrery
