#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Switches and cables between the nodes of a cluster.
struct FabricParts {
  std::int64_t switches = 0;
  std::int64_t cables = 0;
  std::int64_t leaves = 0;  ///< Of the switches, where the fabric tells them from others; else 0.
};

/// The parts of the fabric that the whole units (Hardware) which hold `gpus` GPUs need; one unit
/// needs none.
///
/// A leaf counts if a node in use is on it, with all its links up. What is above counts as far as
/// its ports are used, however much is described: L leaves with U switch ports up need
/// ceil(L U / ports of a spine) spines, and one leaf needs none. The ports of a spine are those
/// that the whole machine uses, or all of a switch where it has no size. In a fat tree the same
/// holds in each pod, whose links up grow with its leaves, and for cores over all pods; one pod
/// needs no cores. The routers of a dragonfly and listed switches count as described. The
/// simulated topology has all switches.
///
/// A link between two switches, or of a NIC, is as many cables as it has times the rate of a switch
/// port; a leaf or router that needs more ports than a switch has is several.
///
/// A fabric that never blocks is a fat tree: L levels of k-port switches join up to 2 (k/2)^L ports
/// with 2L - 1 switch ports and L cables for each (Al-Fares et al., SIGCOMM 2008, for L = 3). NICs
/// faster or slower than a switch port take several or a part of one.
FabricParts fabric_parts(const System& system, int gpus, const Economics& economics);

/// What is bought to have `gpus` GPUs: whole units, which are NVLink domains or nodes, and the
/// fabric between them.
struct Hardware {
  int gpus_of_unit = 1;
  int nodes_of_unit = 1;
  int units = 0;
  FabricParts fabric;
  Range usd;  ///< No building, no storage.

  int gpus() const { return units * gpus_of_unit; }
  std::string units_text() const;  ///< "14 NVLink domains", "128 nodes"
};
Hardware hardware_for(const System& system, int gpus, const Economics& economics);

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
  Hardware hardware;
  int gpus = 0;     ///< Of the job.
  int domains = 0;  ///< NVLink domains on which the step was simulated; more than `hardware` has
                    ///< where jobs fill them in part (filled_evenly).
  std::string provider;                     ///< System::provider.
  bool has_own_rent = false;                ///< Economics::has_own_rent.
  std::vector<std::string> unknown_prices;  ///< Keys of missing prices, which leave ranges unknown.
};

Bill bill_of(const Scenario& scenario, Seconds step_time, double tokens,
             const Economics& economics);

}  // namespace orrery
