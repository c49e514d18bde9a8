#pragma once

#include <string>

namespace orrery {

/// `text` as it stands between tags or in quotes, in HTML and XML alike. What XML 1.0 (2.2) does
/// not have at all becomes a question mark.
std::string escaped(const std::string& text);

}  // namespace orrery
