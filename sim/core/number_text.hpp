#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Numbers as people read them: thousands apart, a decimal point whatever the locale says.
std::string grouped(std::int64_t value);               ///< "131,072"
std::string fixed(double value, int decimals);         ///< "80,412.3"
std::string signed_fixed(double value, int decimals);  ///< "+80.4"; no sign before "0.0"
std::string percent(double fraction);                  ///< "44.3 %" for 0.4432
std::string signed_percent(double fraction);           ///< "+44.3 %"; "+0.0 %" also from below

/// Nine significant digits: more than any prediction has, and fewer than show the rounding of a
/// clock, which depends on what the process simulated before.
std::string nine_digits(double value);
double to_nine_digits(double value);

/// A unit and its size in SI units, for figures that share a column.
struct DisplayUnit {
  std::string_view name;
  double si = 1.0;
};
/// The largest of us, ms and s in which `longest` is at least 1.
DisplayUnit time_unit(Seconds longest);
/// The same for B, kB, MB, GB and TB (powers of 1000).
DisplayUnit bytes_unit(Bytes most);

std::string plural(std::int64_t count, const std::string& word);  ///< "1,024 requests", "1 request"
std::string duration_text(Seconds duration);                      ///< "23.456 s", "4.321 ms"
std::string microseconds_text(std::int64_t ns);  ///< "1234.567" for 1234567: exact, in traces
std::string span_text(Seconds span);             ///< Days rather than steps: "14.4 minutes"
std::string bytes_text(Bytes bytes);             ///< "3.22 GB"
std::string gigabytes_text(Bytes bytes);         ///< "2882.9 GB": messages, to be typed again
std::string rate_text(BytesPerSecond rate);      ///< "450 GB/s", likewise

/// A bar of at most `width` characters, as many of them as `fraction` says, rounded.
std::string bar(double fraction, int width, char mark = '#');

/// A positive, finite number with its unit. "400 GB/s" is bytes, "400 Gb/s" bits: an eighth of it.
/// Errors (bad_input) name the units that would have been understood.
/// GB/s, GiB/s, MB/s, TB/s, Gb/s or Tb/s; Gbps and Gbit/s are Gb/s.
BytesPerSecond parse_bandwidth(std::string_view text, const Place& at);
Bytes parse_bytes(std::string_view text, const Place& at);       ///< B kB MB GB KiB MiB GiB
Seconds parse_duration(std::string_view text, const Place& at);  ///< s ms us ns; 0 allowed
Seconds parse_span(std::string_view text, const Place& at);  ///< s min h d weeks months; 0 allowed
FlopPerSecond parse_flop_rate(std::string_view text, const Place& at);  ///< TFLOP/s PFLOP/s
double parse_tokens(std::string_view text, const Place& at);            ///< None, K M B T

/// A whole number as people write it: "1024", "1,024", "8k", "4M"; `thousand`: 1,024 for lengths of
/// tokens. Nothing: another text, or one that is no whole number.
std::optional<std::int64_t> whole_number(std::string_view text, double thousand = 1e3);

/// A number, whose thousands commas may set apart, times the size of the unit behind it, of which
/// each has its name and size; nothing: another text.
std::optional<double> number_with_unit(
    std::string_view text, std::initializer_list<std::pair<std::string_view, double>> units);

}  // namespace orrery
