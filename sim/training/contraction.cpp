#include "sim/training/contraction.hpp"

#include <algorithm>
#include <set>

namespace orrery {
namespace {

// Kinds of links that some traffic uses. In PCIe nodes all traffic crosses the GPU's slot.
struct Links {
  bool scale_up = false;
  bool network = false;

  void add(const Placement& placement, Rank a, Rank b) {
    (placement.same_domain(a, b) ? scale_up : network) = true;
  }
  void add(const Placement& placement, const std::vector<Rank>& group) {
    for (std::size_t i = 1; i < group.size(); ++i) add(placement, group[i - 1], group[i]);
  }
  /// True if traffic on both kinds shares a slot, while the cost model takes the kinds as apart.
  bool share_slot(bool one_slot) const { return one_slot && scale_up && network; }
  bool share_links(const Links& other, bool one_slot) const {
    if (one_slot) return (scale_up || network) && (other.scale_up || other.network);
    return (scale_up && other.scale_up) || (network && other.network);
  }
};

struct TrafficLinks {
  Links layers;  ///< Collectives inside passes.
  Links transfers;
  Links data;
};

TrafficLinks links_of_traffic(const Plan& plan, const Placement& placement) {
  TrafficLinks traffic;
  // All ranks of a stage use the same kinds of links in a regular placement.
  const bool regular = placement.regular();
  for (GroupKind kind : placement.kinds()) {
    if (!is_inside_passes(kind) && !plan.dp_overlap && !plan.shards_weights()) continue;
    Links& links = is_inside_passes(kind) ? traffic.layers : traffic.data;
    if (regular)
      links.add(placement, placement.group(kind, Rank{0}));
    else
      for (int stage = 0; stage < plan.pp; ++stage)
        for (const std::vector<Rank>& group : placement.groups(kind, stage))
          links.add(placement, group);
  }
  if (plan.pp == 1) return traffic;
  const int in_stage = placement.ranks() / plan.pp;
  for (int stage = 0; stage < plan.pp; ++stage)
    for (int i = 0; i < (regular ? 1 : in_stage); ++i)
      traffic.transfers.add(placement, Rank{stage * in_stage + i},
                            Rank{(stage + 1) % plan.pp * in_stage + i});
  return traffic;
}

// Groups of one kind may share links on a system that is not uniform: in the fabric, or on wires of
// a node that several GPUs share or that run at another speed.
bool shares_with_other_groups(const System& system, const Links& layers) {
  if (system.uniform()) return false;
  const bool odd_node =
      !system.nvlink_pairs.empty() || !system.pcie_tree.empty() || !system.link_overrides.empty();
  return layers.network || odd_node;
}

// Time of a pass's collectives that use NICs (`network`), or NVLink.
Seconds time_in_collectives(const PassCost& pass, bool network) {
  Seconds sum;
  for_each_collective(pass.segments, [&](const GroupCollective& collective) {
    const CollectiveCost& cost = collective.cost;
    if ((network ? cost.network_bytes : cost.scale_up_bytes).si() > 0.0) sum += cost.time();
  });
  return sum;
}

// Contention between transfers and collectives on NICs or on NVLink, as a share of the step. A
// transfer of B bytes and a collective that share a link of capacity C get half of it each, while
// they would reach three quarters alone: both together lose less than 1.4 B / C. A pass overlaps
// one incoming and one outgoing transfer, and spends part of its time in such collectives.
double transfer_share(const Scenario& scenario, const StepCost& cost, bool network) {
  constexpr double lost = 1.4;
  const System& system = scenario.system;
  const BytesPerSecond capacity =
      network ? static_cast<double>(system.nics_per_node) / system.gpus_per_node * system.nic
              : system.scale_up;
  double worst = 0.0;
  for (int stage = 0; stage < scenario.plan.pp; ++stage) {
    Seconds microbatch;
    Seconds in_collectives;
    for (int chunk = 0; chunk < scenario.plan.chunks(); ++chunk) {
      const int index = scenario.plan.virtual_stage(stage, chunk);
      const StageCost& own = cost.stages[static_cast<std::size_t>(index)];
      microbatch += own.forward.time() + own.backward.time();
      in_collectives +=
          time_in_collectives(own.forward, network) + time_in_collectives(own.backward, network);
    }
    const Seconds transfers = 4.0 * scenario.plan.chunks() * (cost.transfer_bytes / capacity);
    worst = std::max(worst, lost * (transfers / microbatch) * (in_collectives / microbatch));
  }
  return worst;
}

// True if all collectives of a pass, or all of its tensor or of its context groups, are overlapped
// with kernels: a rank that arrives early need not wait for such a group, and leaves it early.
bool lets_early_ranks_pass(const PassCost& pass) {
  std::set<GroupKind> overlapped, waiting;
  const auto look_at = [&](const std::vector<Segment>& segments, const auto& self) -> void {
    for (const Segment& segment : segments) {
      if (segment.concurrent) overlapped.insert(segment.concurrent->group);
      if (segment.after) waiting.insert(segment.after->group);
      self(segment.fused, self);
    }
  };
  look_at(pass.segments, look_at);
  const auto only_overlaps = [&](GroupKind group) {
    return overlapped.count(group) > 0 && waiting.count(group) == 0;
  };
  return (pass.has_collectives() && waiting.empty()) || only_overlaps(GroupKind::tensor) ||
         only_overlaps(GroupKind::context);
}

bool lets_early_ranks_pass(const StepCost& cost) {
  return std::any_of(cost.stages.begin(), cost.stages.end(), [](const StageCost& stage) {
    return lets_early_ranks_pass(stage.forward) || lets_early_ranks_pass(stage.backward);
  });
}

}  // namespace

bool layer_links_are_private(const Scenario& scenario, const Placement& placement) {
  const TrafficLinks traffic = links_of_traffic(scenario.plan, placement);
  if (shares_with_other_groups(scenario.system, traffic.layers)) return false;
  const bool one_slot = scenario.system.wiring == NodeWiring::pcie;
  return !traffic.layers.share_slot(one_slot) &&
         !traffic.layers.share_links(traffic.transfers, one_slot) &&
         !traffic.layers.share_links(traffic.data, one_slot);
}

Contraction choose_contraction(const Scenario& scenario, const StepCost& cost,
                               const Placement& placement) {
  const Plan& plan = scenario.plan;
  // The exchanges of one pass overlap kernels and collectives of another.
  if (plan.ep_overlap && plan.tp * plan.cp * plan.etp > 1) return false;
  // Expert groups with different loads wait for each other in a layer's tensor collectives.
  if (placement.draws() > 1 && plan.ep * plan.etp % (plan.tp * plan.cp) != 0) return false;
  const TrafficLinks traffic = links_of_traffic(scenario.plan, placement);
  if (shares_with_other_groups(scenario.system, traffic.layers)) return false;
  // Transfers that share the fabric deliver the inputs of a group's ranks one after another.
  if (!scenario.system.uniform() && traffic.transfers.network && lets_early_ranks_pass(cost))
    return false;
  const bool one_slot = scenario.system.wiring == NodeWiring::pcie;
  if (traffic.layers.share_slot(one_slot)) return false;
  double met = 0.0;
  if (traffic.layers.scale_up && traffic.transfers.scale_up)
    met += transfer_share(scenario, cost, false);
  if (traffic.layers.network && traffic.transfers.network)
    met += transfer_share(scenario, cost, true);
  // All kinds of traffic share a PCIe slot, which transfer_share() does not model.
  const bool quiet = !traffic.layers.share_links(traffic.transfers, one_slot) ||
                     (!one_slot && met <= contraction_tolerance);
  return {quiet, quiet && !traffic.layers.share_links(traffic.data, one_slot)};
}

}  // namespace orrery
