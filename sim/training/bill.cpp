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
          static_cast<std::int64_t>(std::ceil(ports * levels)), 0};
}

// Counted without the plan's wires: a search asks for each of its plans.
class ShapedFabric {
 public:
  ShapedFabric(const System& system, int nodes, const Economics& economics)
      : system_{system}, shape_{system.shape}, nodes_{nodes}, economics_{economics} {}

  FabricParts parts() {
    add_links(std::int64_t{nodes_} * system_.nics_per_node, system_.nic);
    const std::int64_t rails = shape_.rails ? nics_in_routes(system_) : 1;
    const std::int64_t rows =
        shape_.nodes_per_leaf > 0 ? rounded_up(nodes_, shape_.nodes_per_leaf) : 0;
    const double nics_of_leaf = static_cast<double>(shape_.nodes_per_leaf * system_.nics_per_node) /
                                static_cast<double>(rails) * ports(system_.nic);
    switch (shape_.layout) {
      case FabricLayout::single_switch:
        break;
      case FabricLayout::leaf_spine:
      case FabricLayout::rail_optimized:
      case FabricLayout::fat_tree:
        add_leaves(rows, rails, nics_of_leaf);
        break;
      case FabricLayout::dragonfly:
        add_routers(nics_of_leaf);
        break;
      case FabricLayout::explicit_links:
        parts_.switches = std::ssize(shape_.switches);
        for (const FabricLink& link : shape_.links) add_links(1, link.bandwidth);
        break;
    }
    return parts_;
  }

 private:
  static std::int64_t rounded_up(std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  }
  double ports(BytesPerSecond rate) const { return rate / economics_.switch_port; }
  static std::int64_t whole(double amount) {
    constexpr double rounding = 1e-9;
    return std::max(1LL, std::llround(std::ceil(amount - rounding)));
  }
  std::int64_t switches_of(double ports) const { return whole(ports / economics_.switch_ports); }
  void add_links(std::int64_t count, BytesPerSecond rate) {
    parts_.cables += count * whole(ports(rate));
  }

  // Ports of one switch of a tier, each of whose `members` takes its share of `ports` where the
  // whole fabric is in use; all of a switch where that has no size.
  double ports_of_one(double ports, std::int64_t members) const {
    if (ports == 0.0) return economics_.switch_ports;
    const double of_member = ports / static_cast<double>(members);
    return of_member / static_cast<double>(switches_of(of_member));
  }

  void add_leaves(std::int64_t rows, std::int64_t rails, double nics_of_leaf) {
    const bool has_pods = shape_.layout == FabricLayout::fat_tree;
    const std::int64_t leaves = rows * rails;
    const std::int64_t all_rows =
        rounded_up(system_.max_gpus / system_.gpus_per_node, shape_.nodes_per_leaf);
    const std::int64_t of_pod = has_pods ? shape_.leaves_per_pod : all_rows * rails;
    const std::int64_t pods = has_pods ? rounded_up(rows, of_pod) * rails : 1;
    const std::int64_t to_cores = has_pods ? shape_.cores / core_groups(shape_) : 0;
    const double up_of_leaf = shape_.spines * ports(shape_.uplink);
    const double up_of_pod =
        static_cast<double>(shape_.spines * to_cores) * ports(shape_.core_uplink);
    parts_.switches = parts_.leaves = leaves * switches_of(nics_of_leaf + up_of_leaf);
    if (leaves == 1) return;

    add_links(leaves * shape_.spines, shape_.uplink);
    const double of_spine =
        ports_of_one(static_cast<double>(of_pod) * up_of_leaf + up_of_pod, shape_.spines);
    std::int64_t to_all_cores = 0;
    const auto add_pods = [&](std::int64_t count, std::int64_t leaves_of_each) {
      const std::int64_t up =
          pods > 1 ? rounded_up(shape_.spines * to_cores * leaves_of_each, of_pod) : 0;
      parts_.switches += count * whole((static_cast<double>(leaves_of_each) * up_of_leaf +
                                        static_cast<double>(up) * ports(shape_.core_uplink)) /
                                       of_spine);
      to_all_cores += count * up;
    };
    if (!has_pods) return add_pods(1, leaves);
    const std::int64_t left = rows % of_pod;  // Rows of each rail's last pod.
    add_pods(rows / of_pod * rails, of_pod);
    if (left > 0) add_pods(rails, left);
    if (to_all_cores == 0) return;
    add_links(to_all_cores, shape_.core_uplink);
    const double of_core = ports_of_one(
        static_cast<double>(rounded_up(all_rows, of_pod) * rails) * up_of_pod, shape_.cores);
    parts_.switches +=
        whole(static_cast<double>(to_all_cores) * ports(shape_.core_uplink) / of_core);
  }

  void add_routers(double nics_of_router) {
    const std::int64_t groups = shape_.groups, in_group = shape_.routers_per_group;
    parts_.switches =
        groups * in_group *
        switches_of(nics_of_router + static_cast<double>(in_group - 1) * ports(shape_.local_link) +
                    shape_.global_links * ports(shape_.global_link));
    add_links(groups * in_group * (in_group - 1) / 2, shape_.local_link);
    if (groups > 1)
      add_links(groups * (groups - 1) / 2 * (in_group * shape_.global_links / (groups - 1)),
                shape_.global_link);
  }

  const System& system_;
  const FabricShape& shape_;
  int nodes_;
  const Economics& economics_;
  FabricParts parts_;
};

}  // namespace

FabricParts fabric_parts(const System& system, int gpus, const Economics& economics) {
  const int units = units_for(system, gpus);
  if (units <= 1) return {};
  const int all = units * system.sold_together() / system.gpus_per_node;
  // The machine that exists may end within a unit.
  const int nodes =
      system.max_gpus > 0 ? std::min(all, system.max_gpus / system.gpus_per_node) : all;
  if (system.shape.layout != FabricLayout::single_switch)
    return ShapedFabric{system, nodes, economics}.parts();
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
  bill.provider = scenario.system.provider;
  bill.has_own_rent = economics.has_own_rent;
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
