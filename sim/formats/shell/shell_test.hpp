#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// What [ ], test and [[ ]] say of `words`: nothing where a file, a program or a regular expression
/// decides. Words may have marks (shell_marks.hpp); what is unset counts as empty, and is added to
/// `unset` where more than its being set decides. `is_set`: whether -v NAME holds.
std::optional<bool> shell_test(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& is_set,
                               std::vector<std::string>& unset);

/// Whether any text of the list is a pattern for the subject; nothing: unknown.
std::optional<bool> shell_choice(const std::string& subject,
                                 const std::vector<std::string>& patterns);

}  // namespace orrery
