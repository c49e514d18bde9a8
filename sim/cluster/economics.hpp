#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Prices and powers are known as ranges only: from the best offer to the list price, from what the
/// GPUs alone draw to what the node's power supplies must bear.
struct Range {
  double low = -1.0;  ///< Below 0: not known.
  double high = -1.0;

  bool known() const { return low >= 0.0; }
  double midpoint() const { return 0.5 * (low + high); }
  /// What is made of something unknown is unknown.
  Range operator+(Range other) const {
    return known() && other.known() ? Range{low + other.low, high + other.high} : Range{};
  }
  /// Of ranges that are independent of each other: ends times ends.
  Range operator*(Range other) const {
    return known() && other.known() ? Range{low * other.low, high * other.high} : Range{};
  }
  Range operator*(double factor) const {
    return known() ? Range{low * factor, high * factor} : Range{};
  }
};

/// What a cluster costs and draws. Money is US dollars.
struct Economics {
  Range rent_usd_per_gpu_hour;
  Range server_usd_per_gpu;  ///< A GPU with its share of the node: CPUs, memory, NICs, NVSwitches.
  Range server_watts_per_gpu;
  Range waiting_watts_per_gpu;  ///< The same while its GPU holds a job's state and does not work.
  Range switch_usd;
  Range switch_watts;
  Range cable_usd;  ///< One link of a switch port, with what is plugged in at both ends.
  int switch_ports = 0;
  BytesPerSecond switch_port;
  Range usd_per_kwh;
  Range pue;  ///< Power usage effectiveness: what the site draws for each watt of its machines.
  Range hardware_years;  ///< Over which an owner writes the cluster off, in equal parts.
};

/// The keys of a document (topologies/README.md has the schema) over `base`. Errors: unknown keys,
/// ranges that are negative or reversed, a PUE below 1.
Economics parse_economics(const JsonValue& json, Economics base);

/// topologies/economics/site.json, over it the file of the GPU there, over it `overrides` (a path,
/// "" for none). What none of them says is not known.
Economics read_economics(const std::string& gpu, const std::string& overrides);

/// The keys of a document whose ranges are not known and that an answer has no bounds for.
std::vector<std::string> unknown_prices(const Economics& economics);
/// "give a file for --economics: {... "pue": ...}": what makes them known.
std::string price_remedy(const std::vector<std::string>& keys);

}  // namespace orrery
