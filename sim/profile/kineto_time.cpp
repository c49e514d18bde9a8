#include "sim/profile/kineto_time.hpp"

#include <charconv>

namespace orrery {
namespace {

constexpr std::int64_t most_ns = std::int64_t{1} << 62;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  int exponent = 0;
  if (e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(digits.starts_with("+-") ? 0 : 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
      return std::nullopt;
    if (exponent < -400 || exponent > 400) return std::nullopt;
    text = text.substr(0, e);
  }
  // Digits, and where the point stands among them once microseconds are nanoseconds.
  std::int64_t whole = 0;
  int place = exponent + 3;
  bool point = false, any = false, round_up = false, rounded = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    any = true;
    if (point && place == 0) {  // Below a nanosecond: the first such digit decides.
      if (!rounded) round_up = c >= '5';
      rounded = true;
      continue;
    }
    if (point) --place;
    if (whole > most_ns / 10) return std::nullopt;
    whole = 10 * whole + (c - '0');
  }
  if (!any) return std::nullopt;
  for (; place > 0; --place) {
    if (whole > most_ns / 10) return std::nullopt;
    whole *= 10;
  }
  for (; place < 0; ++place) {  // A negative exponent.
    round_up = whole % 10 >= 5;
    whole /= 10;
  }
  whole += round_up ? 1 : 0;
  return whole > most_ns ? std::nullopt : std::optional{whole};
}

}  // namespace orrery
