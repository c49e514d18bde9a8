#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

struct System;

/// A range of a price or power: from the best offer to the list price, from the power of the GPUs
/// alone to the limit of the node's power supplies.
struct Range {
  double low = -1.0;  ///< Below 0: not known.
  double high = -1.0;

  bool known() const { return low >= 0.0; }
  double midpoint() const { return 0.5 * (low + high); }
  /// The sum with an unknown range is unknown.
  Range operator+(Range other) const {
    return known() && other.known() ? Range{low + other.low, high + other.high} : Range{};
  }
  /// The product of independent ranges: ends times ends.
  Range operator*(Range other) const {
    return known() && other.known() ? Range{low * other.low, high * other.high} : Range{};
  }
  Range operator*(double factor) const {
    return known() ? Range{low * factor, high * factor} : Range{};
  }
};

/// Prices and powers of a cluster. Money is US dollars.
struct Economics {
  Range rent_usd_per_gpu_hour;
  bool has_own_rent = false;  ///< The rent is of the user's file, not of the catalog.
  Range server_usd_per_gpu;   ///< A GPU with its share of the node: CPUs, memory, NICs, NVSwitches.
  Range server_watts_per_gpu;
  Range waiting_watts_per_gpu;  ///< The same while its GPU holds a job's state and does not work.
  Range switch_usd;
  Range switch_watts;
  Range cable_usd;  ///< One link of a switch port, with the transceivers at both ends.
  int switch_ports = 0;
  BytesPerSecond switch_port;
  Range usd_per_kwh;
  Range pue;  ///< Power usage effectiveness: watts of the site for each watt of its machines.
  Range hardware_years;  ///< Straight-line depreciation period.
};

/// The keys of a document (topologies/README.md has the schema) over `base`. Errors: unknown keys,
/// ranges that are negative or reversed, a PUE below 1.
Economics parse_economics(const JsonValue& json, Economics base);

/// What prices are asked for: a GPU, and the system that it is bought or rented in ("": any).
struct PricedMachine {
  PricedMachine(std::string gpu_, std::string system_ = "")
      : gpu{std::move(gpu_)}, system{std::move(system_)} {}
  PricedMachine(const char* gpu_) : gpu{gpu_} {}
  PricedMachine(const System& of);

  std::string gpu, system;
};

/// topologies/economics/site.json, overridden by the GPU's file there and by the user's `files`
/// ("": none; paths with commas between them), later ones over earlier ones. A file with "gpu" or
/// "system" counts for that GPU or system alone. Keys in none of them are unknown.
/// `asked`: all machines that are asked about; empty: `of` alone. Errors (bad_input): a file for
/// none of them.
Economics read_economics(const PricedMachine& of, const std::string& files,
                         const std::vector<PricedMachine>& asked = {});
/// The user's files that count for a machine.
std::vector<std::string> price_files(const PricedMachine& of, const std::string& files);

/// The keys of a document without a known range or a bound.
std::vector<std::string> unknown_prices(const Economics& economics);
/// The remedy for unknown prices: "give a file for --economics: {... "pue": ...}".
std::string price_remedy(const std::vector<std::string>& keys);

}  // namespace orrery
