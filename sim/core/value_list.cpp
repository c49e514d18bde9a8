#include "sim/core/value_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

// `text` as a JSON string, byte for byte: what is no UTF-8 is refused, not replaced.
std::string quoted(const std::string& text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20)
      json += std::string{"\\u00"} + hex[byte / 16] + hex[byte % 16];
    else
      json += (c == '"' || c == '\\' ? "\\" : "") + std::string{c};
  }
  return json + "\"";
}

// A sign stands before a number or its exponent; between two numbers it joins a list: "1+3".
bool may_be_a_number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != text.npos) return false;
  const std::size_t sign = text.find_first_of("+-", 1);
  return sign == text.npos || text[sign - 1] < '0' || text[sign - 1] > '9';
}

// "1,024" and "8k" in digits; `text` itself if it is no such number.
std::string in_digits(const std::string& text, const std::string& place) {
  const bool may_be = !text.empty() && text.front() >= '0' && text.front() <= '9' &&
                      text.find_first_of(",kKM") != text.npos;
  if (!may_be) return text;
  static const std::vector<std::string> lengths{
      "--seq", "--isl", "--osl", "--max_length", "--budget", "--max-num-batched-tokens"};
  const bool is_length = std::find(lengths.begin(), lengths.end(), place) != lengths.end();
  const auto value = whole_number(text, is_length ? 1024.0 : 1000.0);
  return value ? std::to_string(*value) : text;
}

}  // namespace

JsonValue value_of_text(const std::string& written, const std::string& place) {
  const std::string text = in_digits(written, place);
  // Written as a JSON scalar with the quotes left out: numbers and true/false as they are.
  const bool bare = text == "true" || text == "false" || may_be_a_number(text);
  try {
    return JsonValue::parse(bare ? text : quoted(text), place);
  } catch (const Error&) {
    fail_input({place, ""},
               "'" + shown_text(text) + "' is " + (bare ? "not a number" : "not UTF-8 text"),
               bare ? "write a whole number" : "write letters and digits");
  }
}

JsonValue value_of_flag(const std::string& key, const std::string& text) {
  return value_of_text(text, "--" + shown_text(key));
}

std::string flag_text(const JsonValue& value) {
  if (value.is_string()) return value.text();
  if (value.is_boolean()) return value.boolean() ? "true" : "false";
  return std::to_string(value.integer(0, std::int64_t{1} << 40));
}

std::vector<std::string> words_in(const std::string& text) {
  const std::vector<std::string_view> words = words_of(text);
  return {words.begin(), words.end()};
}

WordPairs pairs_in(const std::string& text) {
  WordPairs pairs;
  for (const std::string& word : words_in(text)) {
    const std::size_t sign = word.find('=');
    pairs.emplace_back(word.substr(0, sign), sign == word.npos ? word : word.substr(sign + 1));
  }
  return pairs;
}

WordPairs words_by_meaning(const WordPairs& texts_by_meaning) {
  WordPairs pairs;
  for (const auto& [meaning, text] : texts_by_meaning)
    for (const std::string& word : words_in(text)) pairs.emplace_back(word, meaning);
  return pairs;
}

namespace {

constexpr std::int64_t largest_number = std::int64_t{1} << 53;

std::optional<std::int64_t> plain_whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && rest == text.data() + text.size();
  if (!whole || value < -largest_number || value > largest_number) return std::nullopt;
  return value;
}

struct Range {
  std::int64_t first = 0, last = 0, step = 1;
  bool geometric = false;
  bool open = false;  // Does not say how it goes on.
};

[[noreturn]] void refuse_range(const std::string& text, const std::string& why, const Place& at) {
  fail_input(at, "'" + shown_text(text) + "' " + why, "write a range as 256..8192*2 or 8..64+8");
}

// Nothing where the text is no range: a path may have two dots as well.
std::optional<Range> parse_range(const std::string& text, const Place& at) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos || dots == 0) return std::nullopt;
  Range range;
  const auto first = plain_whole(std::string_view{text}.substr(0, dots));
  if (!first) return std::nullopt;
  const std::size_t sign = std::min(text.find_first_of("*+", dots), text.size());
  const auto last = plain_whole(std::string_view{text}.substr(dots + 2, sign - dots - 2));
  if (!last) refuse_range(text, "has no whole number behind its dots", at);
  if (sign < text.size()) {
    const auto step = plain_whole(std::string_view{text}.substr(sign + 1));
    range.geometric = text[sign] == '*';
    if (!step || *step < (range.geometric ? 2 : 1))
      refuse_range(text, "has no step that goes on", at);
    range.step = *step;
  }
  range.open = sign == text.size();
  range.first = *first;
  range.last = *last;
  if (range.last < range.first) refuse_range(text, "ends before it begins", at);
  if (range.geometric && range.first < 1) refuse_range(text, "never leaves its beginning", at);
  return range;
}

}  // namespace

std::vector<std::string> split(const std::string& text, const char* marks) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(marks, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> split_list(const std::string& text, const Place& at) {
  std::vector<std::string> items = split(text, ",");
  if (std::find(items.begin(), items.end(), "") != items.end())
    fail_input(at, "has an empty value", "write values with one comma between");
  return items;
}

bool is_open_range(const std::string& item, const Place& at) {
  const std::optional<Range> range = parse_range(item, at);
  return range && range->open;
}

std::vector<std::string> values_of_item(const std::string& item, const Place& at,
                                        const RangeRule& rule) {
  std::optional<Range> range = parse_range(item, at);
  if (!range) return {item};
  if (range->open && rule.open == OpenRange::doubles) {
    range->geometric = true;
    range->step = 2;
    if (range->first < 1) refuse_range(item, "never leaves its beginning", at);
  }
  const auto counts = [&](std::int64_t value) {
    return !range->open || rule.open != OpenRange::divides || rule.wholes.empty() ||
           std::any_of(rule.wholes.begin(), rule.wholes.end(),
                       [&](std::int64_t whole) { return value > 0 && whole % value == 0; });
  };
  const std::int64_t span = range->last - range->first;
  if (!range->geometric && span / range->step >= most_with_yes)
    refuse_long_range(span / range->step + 1, rule.most, at);
  std::vector<std::string> values;
  for (std::int64_t value = range->first;;) {
    if (counts(value)) values.push_back(std::to_string(value));
    if (range->geometric ? value > range->last / range->step : value > range->last - range->step)
      break;
    value = range->geometric ? value * range->step : value + range->step;
  }
  if (std::ssize(values) > rule.most) refuse_long_range(std::ssize(values), rule.most, at);
  if (values.empty()) refuse_range(item, "has no value that divides the GPUs", at);
  return values;
}

void refuse_long_range(std::int64_t values, std::int64_t most, const Place& at) {
  fail_input(at,
             "a range has " + std::to_string(values) + " values, more than " + std::to_string(most),
             most < most_with_yes && values <= most_with_yes
                 ? "use a larger step, or add --yes if it is meant"
                 : "use a larger step");
}

namespace {

// "1,152" may be a number written with a comma for thousands, or a list. A part that begins with 0
// is none of a list. Values of a list are seldom so far apart as parts of a number are.
std::optional<std::string> one_number(const std::string& text, const Place& at) {
  if (!whole_number(text, 1000.0) || text.find(',') == text.npos) return std::nullopt;
  std::string digits = text;
  std::erase(digits, ',');
  if (text.find(",0") != text.npos) return digits;
  constexpr std::int64_t usual_ratio = 16;
  const std::size_t comma = text.find(',');
  const auto first = plain_whole(std::string_view{text}.substr(0, comma));
  const auto second = plain_whole(std::string_view{text}.substr(comma + 1, 3));
  if (first && second && *second >= usual_ratio * *first)
    fail_input(at, "'" + text + "' may be the number " + digits + " or a list",
               "write " + digits + ", or the list with its largest value first");
  return std::nullopt;
}

}  // namespace

std::vector<std::string> parse_value_list(const std::string& text, const Place& at,
                                          const RangeRule& rule) {
  if (auto number = one_number(text, at)) return {std::move(*number)};
  std::vector<std::string> all;
  for (const std::string& item : split_list(text, at))
    for (std::string& value : values_of_item(item, at, rule)) all.push_back(std::move(value));
  return all;
}

std::vector<std::string> divisors(std::int64_t whole, std::int64_t most) {
  std::vector<std::string> values;
  for (std::int64_t d = 1; d <= std::min(whole, most); ++d)
    if (whole % d == 0) values.push_back(std::to_string(d));
  return values;
}

}  // namespace orrery
