#include "sim/core/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <sstream>
#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {
namespace {

std::string with_thousands(std::string digits) {
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  std::size_t at = std::min(digits.find('.'), digits.size());
  while (at > sign + 3) digits.insert(at -= 3, ",");
  return digits;
}

template <std::size_t count>
DisplayUnit largest_under(const DisplayUnit (&ascending)[count], double value) {
  DisplayUnit chosen = ascending[0];
  for (const DisplayUnit& unit : ascending)
    if (value >= unit.si) chosen = unit;
  return chosen;
}

}  // namespace

std::string grouped(std::int64_t value) { return with_thousands(std::to_string(value)); }

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  char text[400];  // The largest double has 309 digits.
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals);
  std::string digits(text, end);
  const bool is_zero = digits.find_first_not_of("-0.") == digits.npos;
  if (is_zero && digits.starts_with('-')) digits.erase(0, 1);
  return with_thousands(std::move(digits));
}

std::string signed_fixed(double value, int decimals) {
  const std::string text = fixed(std::abs(value), decimals);
  return (text == fixed(0.0, decimals) ? "" : value < 0.0 ? "-" : "+") + text;
}

std::string percent(double fraction) { return fixed(100.0 * fraction, 1) + " %"; }

std::string signed_percent(double fraction) {
  const std::string text = percent(std::abs(fraction));
  return (fraction < 0.0 && text != percent(0.0) ? "-" : "+") + text;
}

std::string nine_digits(double value) {
  char text[40];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9);
  return {text, end};
}

double to_nine_digits(double value) {
  const std::string text = nine_digits(value);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

DisplayUnit time_unit(Seconds longest) {
  static constexpr DisplayUnit units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
  return largest_under(units, longest.si());
}

DisplayUnit bytes_unit(Bytes most) {
  static constexpr DisplayUnit units[] = {
      {"B", 1.0}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  return largest_under(units, most.si());
}

std::string duration_text(Seconds duration) {
  const DisplayUnit unit = time_unit(duration);
  return fixed(duration.si() / unit.si, 3) + " " + std::string{unit.name};
}

// Three decimals, exact to the nanosecond.
std::string microseconds_text(std::int64_t ns) {
  const std::string rest = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

std::string span_text(Seconds span) {
  constexpr double minute = 60.0, hour = 60.0 * minute, day = 24.0 * hour, year = 365.25 * day;
  const auto in = [&](double unit, const char* name) {
    const double value = span.si() / unit;
    return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) + " " + name;
  };
  if (span < Seconds{minute}) return in(1.0, "seconds");
  if (span < Seconds{hour}) return in(minute, "minutes");
  if (span < Seconds{2.0 * day}) return in(hour, "hours");
  return span < Seconds{2.0 * year} ? in(day, "days") : in(year, "years");
}

std::string bytes_text(Bytes bytes) {
  const DisplayUnit unit = bytes_unit(bytes);
  return fixed(bytes.si() / unit.si, unit.si > 1.0 ? 2 : 0) + " " + std::string{unit.name};
}

std::string gigabytes_text(Bytes bytes) {
  char text[400];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, bytes.si() / 1e9, std::chars_format::fixed, 1);
  return std::string(text, end) + " GB";
}

std::string plural(std::int64_t count, const std::string& word) {
  return grouped(count) + " " + word + (count == 1 ? "" : "s");
}

std::string rate_text(BytesPerSecond rate) {
  std::ostringstream out;
  out << rate.si() / 1e9 << " GB/s";
  return out.str();
}

std::string bar(double fraction, int width, char mark) {
  if (!(fraction > 0.0)) return "";
  const long marks = std::lround(std::min(fraction, 1.0) * width);
  return std::string(static_cast<std::size_t>(marks), mark);
}

namespace {

struct Unit {
  std::string_view name;
  double si;
};

struct Kind {
  std::string_view noun;
  std::string_view example;
  std::string_view units;
  bool zero_allowed;
};

// Without the commas that set thousands apart: "1,600 Gb/s". Other commas stay, and are no number.
std::string without_commas(std::string_view text) {
  constexpr auto digits = "0123456789";
  constexpr std::size_t group = 3;
  std::size_t at = std::min(text.find_first_not_of(digits), text.size());
  std::string plain{text.substr(0, at)};
  if (at == 0 || at > group) return std::string{text};
  while (at < text.size() && text[at] == ',') {
    const std::string_view next = text.substr(at + 1, group);
    if (next.size() < group || next.find_first_not_of(digits) != next.npos)
      return std::string{text};
    plain += next;
    at += 1 + group;
  }
  const std::string_view rest = text.substr(at);
  const bool goes_on = !rest.empty() && rest.find_first_of(digits) == 0;
  return goes_on ? std::string{text} : plain + std::string{rest};
}

double parse(std::string_view written, std::span<const Unit> units, const Kind& kind,
             const Place& at) {
  const std::string quoted = "'" + shown_text(std::string{written}) + "'";
  const std::string plain = without_commas(written);
  std::string_view text = plain;
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = std::isfinite(value) && (kind.zero_allowed ? value >= 0.0 : value > 0.0);
  if (error != std::errc{} || !in_range)
    fail_input(at, quoted + " is not " + std::string{kind.noun},
               "write it like \"" + std::string{kind.example} + "\"");
  std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  name.remove_prefix(name.starts_with(' ') ? 1 : 0);
  for (const Unit& unit : units)
    if (name == unit.name && value * unit.si < 1e24)
      return value * unit.si;
    else if (name == unit.name)
      fail_input(at, quoted + " is absurdly large", "check the number and its unit");
  fail_input(at, quoted + " has no known unit", "use " + std::string{kind.units});
}

}  // namespace

BytesPerSecond parse_bandwidth(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"GB/s", 1e9},       {"MB/s", 1e6},      {"TB/s", 1e12},
                                   {"GiB/s", 0x1p30},   {"Gb/s", 1e9 / 8},  {"Tb/s", 1e12 / 8},
                                   {"Gbps", 1e9 / 8},   {"Tbps", 1e12 / 8}, {"Gbit/s", 1e9 / 8},
                                   {"Tbit/s", 1e12 / 8}};
  return BytesPerSecond{parse(text, units,
                              {"a positive bandwidth", "400 GB/s",
                               "GB/s, MB/s, TB/s or GiB/s (bytes), or Gb/s or Tb/s (bits)", false},
                              at)};
}

Bytes parse_bytes(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"B", 1.0},      {"kB", 1e3},     {"MB", 1e6},
                                   {"GB", 1e9},     {"TB", 1e12},    {"KiB", 0x1p10},
                                   {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  return Bytes{parse(
      text, units,
      {"an amount of memory", "80 GiB", "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", true}, at)};
}

Seconds parse_duration(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  return Seconds{parse(text, units, {"a duration", "5 us", "s, ms, us or ns", true}, at)};
}

Seconds parse_span(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"s", 1.0},
                                   {"m", 60.0},
                                   {"min", 60.0},
                                   {"h", 3600.0},
                                   {"hour", 3600.0},
                                   {"hours", 3600.0},
                                   {"d", 86400.0},
                                   {"day", 86400.0},
                                   {"days", 86400.0},
                                   {"week", 7 * 86400.0},
                                   {"weeks", 7 * 86400.0},
                                   {"month", 365.25 / 12 * 86400.0},
                                   {"months", 365.25 / 12 * 86400.0}};
  return Seconds{
      parse(text, units, {"a span of time", "10 min", "s, min, h, d, weeks or months", true}, at)};
}

FlopPerSecond parse_flop_rate(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"GFLOP/s", 1e9}};
  return FlopPerSecond{parse(
      text, units, {"a positive speed", "312 TFLOP/s", "GFLOP/s, TFLOP/s or PFLOP/s", false}, at)};
}

double parse_tokens(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"T", 1e12}, {"t", 1e12}, {"B", 1e9}, {"b", 1e9}, {"M", 1e6},
                                   {"m", 1e6},  {"K", 1e3},  {"k", 1e3}, {"", 1.0}};
  const double tokens =
      parse(text, units, {"a number of tokens", "15T", "K, M, B or T, or none", false}, at);
  if (tokens < 1.0)
    fail_input(at, "'" + shown_text(std::string{text}) + "' is less than one token",
               "write it like 15T");
  return tokens;
}

std::optional<std::int64_t> whole_number(std::string_view text, double thousand) {
  const auto value = number_with_unit(
      text, {{"", 1.0}, {"k", thousand}, {"K", thousand}, {"M", thousand * thousand}});
  constexpr double most = 0x1p53;
  if (!value || std::abs(*value) > most || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<double> number_with_unit(
    std::string_view written, std::initializer_list<std::pair<std::string_view, double>> units) {
  const std::string plain = without_commas(written);
  std::string_view text = plain;
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  for (const auto& [name, size] : units)
    if (error == std::errc{} && text == name && std::isfinite(value * size)) return value * size;
  return std::nullopt;
}

}  // namespace orrery
