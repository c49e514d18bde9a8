#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Switches and cables of a non-blocking fabric for a cluster, estimated from its size.
struct FabricParts {
  std::int64_t switches = 0;
  std::int64_t cables = 0;
};

/// A fat tree of L levels of k-port switches joins up to 2 (k/2)^L ports with 2L - 1 switch ports
/// and L cables for each (Al-Fares et al., SIGCOMM 2008, for L = 3). NICs faster or slower than a
/// switch port take several or a part of one. Rails are planes of their own.
FabricParts fabric_parts(const System& system, int gpus, const Economics& economics);

/// Time and cost of training on `tokens` tokens at one step's speed, without interruptions.
struct Bill {
  double tokens = 0.0;
  double steps = 0.0;
  Seconds time;
  Range usd_per_step;  ///< Rent.
  Range usd_per_trillion_tokens;
  Range rent_usd;
  Range watts;  ///< Power of the whole site.
  Range energy_kwh;
  Range energy_usd;
  Range hardware_usd;  ///< Servers, switches and cables; no building, no storage.
  FabricParts fabric;
  std::vector<std::string> unknown_prices;  ///< Keys of missing prices, which leave ranges unknown.
};

Bill bill_of(const Scenario& scenario, Seconds step_time, double tokens,
             const Economics& economics);

}  // namespace orrery
