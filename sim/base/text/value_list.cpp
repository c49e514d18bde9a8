#include "sim/base/text/value_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/text/json_value.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_values = 100'000;
constexpr std::int64_t largest_number = std::int64_t{1} << 53;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && rest == text.data() + text.size();
  if (!whole || value < -largest_number || value > largest_number) return std::nullopt;
  return value;
}

struct Range {
  std::int64_t first = 0, last = 0, step = 1;
  bool geometric = false;
};

[[noreturn]] void refuse_range(const std::string& text, const std::string& why, const Place& at) {
  fail_input(at, "'" + shown_text(text) + "' " + why, "write a range as 256..8192*2 or 8..64+8");
}

// Nothing where the text is no range: a path may have two dots as well.
std::optional<Range> parse_range(const std::string& text, const Place& at, OpenRange open) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos || dots == 0) return std::nullopt;
  Range range;
  const auto first = whole_number(std::string_view{text}.substr(0, dots));
  if (!first) return std::nullopt;
  const std::size_t sign = std::min(text.find_first_of("*+", dots), text.size());
  const auto last = whole_number(std::string_view{text}.substr(dots + 2, sign - dots - 2));
  if (!last) refuse_range(text, "has no whole number behind its dots", at);
  if (sign < text.size()) {
    const auto step = whole_number(std::string_view{text}.substr(sign + 1));
    range.geometric = text[sign] == '*';
    if (!step || *step < (range.geometric ? 2 : 1))
      refuse_range(text, "has no step that goes on", at);
    range.step = *step;
  } else if (open == OpenRange::doubles) {
    range.geometric = true;
    range.step = 2;
  }
  range.first = *first;
  range.last = *last;
  if (range.last < range.first) refuse_range(text, "ends before it begins", at);
  if (range.geometric && range.first < 1) refuse_range(text, "never leaves its beginning", at);
  return range;
}

}  // namespace

std::vector<std::string> split_list(const std::string& text, const Place& at) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    if (items.back().empty())
      fail_input(at, "has an empty value", "write values with one comma between");
    begin = end + 1;
  }
  return items;
}

std::vector<std::string> values_of_item(const std::string& item, const Place& at, OpenRange open) {
  const std::optional<Range> range = parse_range(item, at, open);
  if (!range) return {item};
  if (!range->geometric && (range->last - range->first) / range->step >= most_values)
    fail_input(at, "has more than 100,000 values", "use a larger step");
  std::vector<std::string> values;
  for (std::int64_t value = range->first;;) {
    values.push_back(std::to_string(value));
    if (range->geometric ? value > range->last / range->step : value > range->last - range->step)
      return values;
    value = range->geometric ? value * range->step : value + range->step;
  }
}

std::vector<std::string> parse_value_list(const std::string& text, const Place& at,
                                          OpenRange open) {
  std::vector<std::string> all;
  for (const std::string& item : split_list(text, at))
    for (std::string& value : values_of_item(item, at, open)) all.push_back(std::move(value));
  return all;
}

}  // namespace orrery
