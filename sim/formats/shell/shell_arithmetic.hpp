#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace orrery {

/// The value of what stands inside $((...)): whole numbers, names, + - * / % **, comparisons, && ||
/// ! and ?:, parentheses. `value_of`: what a name stands for; "" is 0. Nothing: it says something
/// else, divides by zero, leaves 64 bits, or has a name that `value_of` does not know.
std::optional<std::int64_t> shell_arithmetic(
    const std::string& text,
    const std::function<std::optional<std::string>(const std::string&)>& value_of);

}  // namespace orrery
