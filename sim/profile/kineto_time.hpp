#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery {

/// Microseconds as a trace writes them, "5203.257", "1712345678901234.5", "1e3", in nanoseconds:
/// exact, where a double keeps a quarter of a microsecond of a time since 1970. Digits below a
/// nanosecond are rounded, halves away from zero. Nothing for what is no number, negative, or over
/// 2^62 ns.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);

}  // namespace orrery
