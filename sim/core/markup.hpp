#pragma once

#include <string>

namespace orrery {

/// `text` as it stands between tags or in quotes, in HTML and XML alike. What XML 1.0 (2.2) does
/// not have at all becomes a question mark, and a mark that turns the direction of writing its
/// number, "\u202E".
std::string escaped(const std::string& text);

}  // namespace orrery
