#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/formats/requests/request_forms.hpp"

namespace orrery {
namespace {

// The next `digits` digits, and what must stand behind them (0: nothing in particular).
std::optional<int> number(std::string_view& text, std::size_t digits, char then) {
  int value = 0;
  if (text.size() < digits + (then ? 1 : 0)) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc{} || rest != text.data() + digits || value < 0) return std::nullopt;
  if (then && text[digits] != then && !(then == 'T' && text[digits] == ' ')) return std::nullopt;
  text.remove_prefix(digits + (then ? 1 : 0));
  return value;
}

}  // namespace

double seconds_of_timestamp(std::string_view text) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto year = number(text, 4, '-'), month = number(text, 2, '-'), day = number(text, 2, 'T');
  if (!year || !month || !day) return none;
  const auto hour = number(text, 2, ':'), minute = number(text, 2, ':'),
             second = number(text, 2, 0);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return none;
  double fraction = 0.0;
  if (text.starts_with('.')) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
    if (error != std::errc{} || !(fraction < 1.0)) return none;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  if (!text.empty() && text != "Z" && text != "+00:00") return none;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{*year},
                            std::chrono::month{static_cast<unsigned>(*month)},
                            std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return none;
  const auto days = static_cast<double>(sys_days{date}.time_since_epoch().count());
  return days * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second + fraction;
}

}  // namespace orrery
