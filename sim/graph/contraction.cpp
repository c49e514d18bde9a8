#include "sim/graph/contraction.hpp"

#include <algorithm>

namespace orrery {
namespace {

// Kinds of links that some traffic uses. In PCIe nodes all traffic passes the GPU's slot.
struct Links {
  bool scale_up = false;
  bool network = false;

  void add(const Placement& placement, Rank a, Rank b) {
    (placement.same_domain(a, b) ? scale_up : network) = true;
  }
  void add(const Placement& placement, const std::vector<Rank>& group) {
    for (std::size_t i = 1; i < group.size(); ++i) add(placement, group[i - 1], group[i]);
  }
  bool meet(const Links& other, bool one_slot) const {
    if (one_slot) return (scale_up || network) && (other.scale_up || other.network);
    return (scale_up && other.scale_up) || (network && other.network);
  }
};

struct TrafficLinks {
  Links tensor;
  Links transfers;
  Links data;
};

TrafficLinks links_of_traffic(const Plan& plan, const Placement& placement) {
  TrafficLinks traffic;
  // Where the placement is regular, one rank of a stage tells of all.
  const int replicas = placement.regular() ? 1 : plan.dp;
  const int ranks = placement.regular() ? 1 : plan.tp;
  for (int stage = 0; stage < plan.pp; ++stage)
    for (int data = 0; data < replicas; ++data) {
      traffic.tensor.add(placement, placement.tensor_group({stage, data, 0}));
      for (int rank = 0; rank < ranks; ++rank) {
        const int next = (stage + 1) % plan.pp;
        if (plan.pp > 1)
          traffic.transfers.add(placement, placement.rank({stage, data, rank}),
                                placement.rank({next, data, rank}));
        if (plan.dp_overlap && data == 0)
          traffic.data.add(placement, placement.data_group({stage, 0, rank}));
      }
    }
  return traffic;
}

// Where a system is not uniform, tensor groups may meet each other: on the fabric's links, and on
// wires of the node that several GPUs share or that run at another speed.
bool shares_with_other_groups(const System& system, const Links& tensor) {
  if (system.uniform()) return false;
  const bool odd_node =
      !system.nvlink_pairs.empty() || !system.pcie_tree.empty() || !system.link_overrides.empty();
  return tensor.network || odd_node;
}

// What transfers inside a domain cost where they meet a collective, as a share of the step. A
// transfer of B bytes and a collective that meet on a link of capacity C get half of it each, where
// they would reach three quarters alone: both together lose less than 1.4 B / C. A pass meets one
// transfer on its way in and one on its way out, and is in a collective for `talking` of its time.
double transfer_share(const Scenario& scenario, const StepCost& cost) {
  constexpr double lost = 1.4;
  double worst = 0.0;
  for (int stage = 0; stage < scenario.plan.pp; ++stage) {
    Seconds microbatch;
    Seconds talking;
    for (int chunk = 0; chunk < scenario.plan.vpp; ++chunk) {
      const int index = chunk * scenario.plan.pp + stage;
      const StageCost& own = cost.stages[static_cast<std::size_t>(index)];
      microbatch += own.forward.time() + own.backward.time();
      talking += own.forward.communication + own.backward.communication;
    }
    const Seconds transfers =
        4.0 * scenario.plan.vpp * (cost.transfer_bytes / scenario.system.scale_up);
    worst = std::max(worst, lost * (transfers / microbatch) * (talking / microbatch));
  }
  return worst;
}

}  // namespace

bool tensor_links_are_private(const Scenario& scenario, const Placement& placement) {
  if (scenario.plan.tp == 1) return true;
  const TrafficLinks traffic = links_of_traffic(scenario.plan, placement);
  if (shares_with_other_groups(scenario.system, traffic.tensor)) return false;
  const bool one_slot = scenario.system.wiring == NodeWiring::pcie;
  return !traffic.tensor.meet(traffic.transfers, one_slot) &&
         !traffic.tensor.meet(traffic.data, one_slot);
}

Contraction choose_contraction(const Scenario& scenario, const StepCost& cost,
                               const Placement& placement) {
  if (scenario.plan.tp == 1) return true;
  const TrafficLinks traffic = links_of_traffic(scenario.plan, placement);
  if (shares_with_other_groups(scenario.system, traffic.tensor)) return false;
  const bool one_slot = scenario.system.wiring == NodeWiring::pcie;
  // On a NIC or a slot a transfer is no trifle; on NVLink it may be.
  const bool on_nvlink = !one_slot && !traffic.tensor.network;
  const bool quiet = !traffic.tensor.meet(traffic.transfers, one_slot) ||
                     (on_nvlink && transfer_share(scenario, cost) <= contraction_tolerance);
  return {quiet, quiet && !traffic.tensor.meet(traffic.data, one_slot)};
}

}  // namespace orrery
