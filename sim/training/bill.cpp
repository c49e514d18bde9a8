#include "sim/training/bill.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"

namespace orrery {

namespace {

int units_for(const System& system, int gpus) {
  return (gpus + system.sold_together() - 1) / system.sold_together();
}

FabricParts non_blocking(double ports, const Economics& economics) {
  const double radix = economics.switch_ports;
  int levels = 1;
  while (2.0 * std::pow(radix / 2.0, levels) < ports) ++levels;
  const double switch_ports = levels == 1 ? ports : ports * (2 * levels - 1);
  return {static_cast<std::int64_t>(std::ceil(switch_ports / radix)),
          static_cast<std::int64_t>(std::ceil(ports * levels))};
}

// Counted without the plan's wires: a search asks for each of its plans.
FabricParts shaped(const System& system, int nodes, const Economics& economics) {
  const FabricShape& shape = system.shape;
  const auto ports = [&](BytesPerSecond rate) { return rate / economics.switch_port; };
  constexpr double rounding = 1e-9;
  FabricParts parts;
  const auto add_switches = [&](std::int64_t count, double ports_of_each) {
    parts.switches +=
        count *
        std::max(1LL, std::llround(std::ceil(ports_of_each / economics.switch_ports - rounding)));
  };
  const auto add_links = [&](std::int64_t count, BytesPerSecond rate) {
    parts.cables += count * std::max(1LL, std::llround(std::ceil(ports(rate) - rounding)));
  };
  add_links(std::int64_t{nodes} * system.nics_per_node, system.nic);
  const std::int64_t rails = shape.rails ? nics_in_routes(system) : 1;
  const std::int64_t rows =
      shape.nodes_per_leaf > 0 ? (nodes + shape.nodes_per_leaf - 1) / shape.nodes_per_leaf : 0;
  const std::int64_t leaves = rows * rails;
  const double nics_of_leaf = static_cast<double>(shape.nodes_per_leaf * system.nics_per_node) /
                              static_cast<double>(rails) * ports(system.nic);
  switch (shape.layout) {
    case FabricLayout::single_switch:
      break;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      add_switches(leaves, nics_of_leaf + shape.spines * ports(shape.uplink));
      add_switches(shape.spines, static_cast<double>(leaves) * ports(shape.uplink));
      add_links(leaves * shape.spines, shape.uplink);
      break;
    case FabricLayout::fat_tree: {
      const std::int64_t pods = (rows + shape.leaves_per_pod - 1) / shape.leaves_per_pod * rails;
      const std::int64_t spines = pods * shape.spines;
      const int cores_of_spine = shape.cores / core_groups(shape);
      const double core_ports = ports(shape.core_uplink);
      add_switches(leaves, nics_of_leaf + shape.spines * ports(shape.uplink));
      add_switches(spines,
                   shape.leaves_per_pod * ports(shape.uplink) + cores_of_spine * core_ports);
      add_switches(shape.cores,
                   static_cast<double>(spines * cores_of_spine) / shape.cores * core_ports);
      add_links(leaves * shape.spines, shape.uplink);
      add_links(spines * cores_of_spine, shape.core_uplink);
      break;
    }
    case FabricLayout::dragonfly: {
      const std::int64_t groups = shape.groups, in_group = shape.routers_per_group;
      add_switches(groups * in_group,
                   nics_of_leaf + static_cast<double>(in_group - 1) * ports(shape.local_link) +
                       shape.global_links * ports(shape.global_link));
      add_links(groups * in_group * (in_group - 1) / 2, shape.local_link);
      if (groups > 1)
        add_links(groups * (groups - 1) / 2 * (in_group * shape.global_links / (groups - 1)),
                  shape.global_link);
      break;
    }
    case FabricLayout::explicit_links:
      parts.switches = std::ssize(shape.switches);
      for (const FabricLink& link : shape.links) add_links(1, link.bandwidth);
      break;
  }
  return parts;
}

}  // namespace

FabricParts fabric_parts(const System& system, int gpus, const Economics& economics) {
  const int units = units_for(system, gpus);
  if (units <= 1) return {};
  const int all = units * system.sold_together() / system.gpus_per_node;
  // The machine that exists may end within a unit.
  const int nodes =
      system.max_gpus > 0 ? std::min(all, system.max_gpus / system.gpus_per_node) : all;
  if (system.shape.layout != FabricLayout::single_switch) return shaped(system, nodes, economics);
  return non_blocking(
      static_cast<double>(nodes) * system.nics_per_node * (system.nic / economics.switch_port),
      economics);
}

std::string Hardware::units_text() const {
  return plural(units, nodes_of_unit > 1 ? "NVLink domain" : "node");
}

Hardware hardware_for(const System& system, int gpus, const Economics& economics) {
  Hardware hardware{system.sold_together(),
                    system.sold_together() / system.gpus_per_node,
                    units_for(system, gpus),
                    fabric_parts(system, gpus, economics),
                    {}};
  hardware.usd = economics.server_usd_per_gpu * hardware.gpus() +
                 economics.switch_usd * static_cast<double>(hardware.fabric.switches) +
                 economics.cable_usd * static_cast<double>(hardware.fabric.cables);
  return hardware;
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
  bill.hardware = hardware_for(scenario.system, gpus, economics);
  bill.gpus = gpus;
  bill.domains = (gpus + scenario.system.nvlink_domain - 1) / scenario.system.nvlink_domain;
  bill.watts = (economics.server_watts_per_gpu * gpus +
                economics.switch_watts * static_cast<double>(bill.hardware.fabric.switches)) *
               economics.pue;
  bill.energy_kwh = bill.watts * (bill.time.si() / hour / 1000.0);
  bill.energy_usd = bill.energy_kwh * economics.usd_per_kwh;
  return bill;
}

}  // namespace orrery
