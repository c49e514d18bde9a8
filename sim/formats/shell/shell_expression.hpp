#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// A pattern of *, ?, [abc], [a-z] and [!abc] fits the whole text.
bool shell_pattern_fits(std::string_view pattern, std::string_view text);

/// ${NAME#pattern}, ##, % and %%: `text` without the shortest or longest beginning or end that
/// fits.
std::string without_pattern(const std::string& text, const std::string& pattern, bool at_end,
                            bool longest);

/// ${NAME/pattern/by}: the first text, or with `all` every one, that fits is replaced.
std::string with_replaced_pattern(const std::string& text, const std::string& pattern,
                                  const std::string& by, bool all);

/// The value of the text inside $((...)): whole numbers, names, + - * / % **, comparisons, && || !
/// and ?:, parentheses. `value_of`: a name's value; "" is 0. Nothing: another syntax, a division by
/// zero, a value over 64 bits, or a name that `value_of` does not know.
std::optional<std::int64_t> shell_arithmetic(
    const std::string& text,
    const std::function<std::optional<std::string>(const std::string&)>& value_of);

/// The variable that ((...)) or `let` sets, "" if none, and the expression of its value: N = X,
/// N += X, and N++, whose value is taken after it.
std::pair<std::string, std::string> shell_assignment(const std::string& text);

/// The result of [ ], test and [[ ]] on `words`: nothing if a file, a program or a regular
/// expression decides. Words may have marks (shell_values.hpp); an unset variable counts as empty,
/// and is added to `unset` if more than its being set decides. `is_set`: -v NAME holds.
std::optional<bool> shell_test(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& is_set,
                               std::vector<std::string>& unset);

/// Any text of the list is a pattern for the subject; nothing: unknown.
std::optional<bool> shell_choice(const std::string& subject,
                                 const std::vector<std::string>& patterns);

}  // namespace orrery
