#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Whether a pattern of *, ?, [abc], [a-z] and [!abc] fits the whole text.
bool shell_pattern_fits(std::string_view pattern, std::string_view text);

/// ${NAME#pattern}, ##, % and %%: `text` without the shortest or longest beginning or end that
/// fits.
std::string without_pattern(const std::string& text, const std::string& pattern, bool at_end,
                            bool longest);

/// ${NAME/pattern/by}: the first text, or with `all` every one, that fits is replaced.
std::string with_replaced_pattern(const std::string& text, const std::string& pattern,
                                  const std::string& by, bool all);

}  // namespace orrery
