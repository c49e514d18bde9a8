#pragma once

#include <string_view>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// A positive, finite number with its unit. "400 GB/s" is bytes, "400 Gb/s" bits: an eighth of it.
/// Errors (bad_input) name the units that would have been understood.
/// GB/s, GiB/s, MB/s, TB/s, Gb/s or Tb/s.
BytesPerSecond parse_bandwidth(std::string_view text, const Place& at);
Bytes parse_bytes(std::string_view text, const Place& at);              ///< B kB MB GB KiB MiB GiB
Seconds parse_duration(std::string_view text, const Place& at);         ///< s ms us ns; 0 allowed
Seconds parse_span(std::string_view text, const Place& at);             ///< s m h d; 0 allowed
FlopPerSecond parse_flop_rate(std::string_view text, const Place& at);  ///< TFLOP/s PFLOP/s
double parse_tokens(std::string_view text, const Place& at);            ///< None, K M B T

}  // namespace orrery
