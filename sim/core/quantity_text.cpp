#include "sim/core/quantity_text.hpp"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {
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

double parse(std::string_view text, std::span<const Unit> units, const Kind& kind,
             const Place& at) {
  const std::string quoted = "'" + shown_text(std::string{text}) + "'";
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
  static constexpr Unit units[] = {{"GB/s", 1e9},     {"MB/s", 1e6},     {"TB/s", 1e12},
                                   {"GiB/s", 0x1p30}, {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8}};
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
  static constexpr Unit units[] = {
      {"s", 1.0}, {"m", 60.0}, {"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}};
  return Seconds{parse(text, units, {"a span of time", "10 min", "s, min, h or d", true}, at)};
}

FlopPerSecond parse_flop_rate(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"GFLOP/s", 1e9}};
  return FlopPerSecond{parse(
      text, units, {"a positive speed", "312 TFLOP/s", "GFLOP/s, TFLOP/s or PFLOP/s", false}, at)};
}

double parse_tokens(std::string_view text, const Place& at) {
  static constexpr Unit units[] = {{"T", 1e12}, {"t", 1e12}, {"B", 1e9}, {"b", 1e9}, {"M", 1e6},
                                   {"m", 1e6},  {"K", 1e3},  {"k", 1e3}, {"", 1.0}};
  return parse(text, units, {"a number of tokens", "15T", "K, M, B or T, or none", false}, at);
}

}  // namespace orrery
