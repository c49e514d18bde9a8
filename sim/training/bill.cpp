#include "sim/training/bill.hpp"

#include <cmath>

namespace orrery {

FabricParts fabric_parts(const System& system, int gpus, const Economics& economics) {
  const double nics = static_cast<double>(gpus) * system.nics_per_node / system.gpus_per_node;
  const double ports = nics * (system.nic / economics.switch_port);
  const bool rails = system.shape.layout == FabricLayout::rail_optimized || system.shape.rails;
  const double planes = rails ? system.nics_per_node : 1;
  // One node needs no switch between nodes.
  if (gpus <= system.nvlink_domain) return {};
  const double radix = economics.switch_ports;
  int levels = 1;
  while (2.0 * std::pow(radix / 2.0, levels) < ports / planes) ++levels;
  const double switch_ports = levels == 1 ? ports : ports * (2 * levels - 1);
  return {static_cast<std::int64_t>(planes * std::ceil(switch_ports / planes / radix)),
          static_cast<std::int64_t>(std::ceil(ports * levels))};
}

Bill bill_of(const Scenario& scenario, Seconds step_time, double tokens,
             const Economics& economics) {
  constexpr double hour = 3600.0;
  const int gpus = scenario.plan.gpus();
  const double tokens_per_step =
      static_cast<double>(scenario.plan.gbs) * static_cast<double>(scenario.plan.seq);
  Bill bill;
  bill.tokens = tokens;
  bill.unknown_prices = unknown_prices(economics);
  bill.steps = std::ceil(tokens / tokens_per_step);
  bill.time = bill.steps * step_time;
  bill.usd_per_step = economics.rent_usd_per_gpu_hour * (gpus * step_time.si() / hour);
  bill.usd_per_trillion_tokens = bill.usd_per_step * (1e12 / tokens_per_step);
  bill.rent_usd = bill.usd_per_step * bill.steps;
  bill.fabric = fabric_parts(scenario.system, gpus, economics);
  const auto switches = static_cast<double>(bill.fabric.switches);
  const auto cables = static_cast<double>(bill.fabric.cables);
  bill.watts =
      (economics.server_watts_per_gpu * gpus + economics.switch_watts * switches) * economics.pue;
  bill.energy_kwh = bill.watts * (bill.time.si() / hour / 1000.0);
  bill.energy_usd = bill.energy_kwh * economics.usd_per_kwh;
  bill.hardware_usd = economics.server_usd_per_gpu * gpus + economics.switch_usd * switches +
                      economics.cable_usd * cables;
  return bill;
}

}  // namespace orrery
