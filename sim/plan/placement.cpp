#include "sim/plan/placement.hpp"

#include <algorithm>
#include <cassert>

#include "sim/plan/traffic.hpp"

namespace orrery {
namespace {

bool nested(int a, int b) { return a % b == 0 || b % a == 0; }

GroupShape more_spread(GroupShape a, GroupShape b) {
  if (a.domains != b.domains) return a.domains > b.domains ? a : b;
  return a.per_domain < b.per_domain ? a : b;
}

}  // namespace

Placement::Placement(const Plan& plan, const System& system)
    : tp_{plan.tp},
      cp_{plan.cp},
      dp_{plan.dp},
      pp_{plan.pp},
      mirrored_{plan.copies() > 1},
      experts_{plan.experts},
      ep_{plan.ep},
      etp_{plan.etp},
      draws_{plan.routing_draws},
      shard_copies_{plan.dp_replicate},
      domain_size_{system.nvlink_domain},
      gpus_per_node_{system.gpus_per_node},
      nics_per_node_{system.nics_per_node},
      gpus_per_nic_{std::max(1, system.gpus_per_node / system.nics_per_node)} {}

Rank Placement::rank(Coordinates at) const {
  assert(at.stage < pp_ && at.data < dp_ && at.context < cp_ && at.tensor < tp_);
  return Rank{((at.stage * dp_ + at.data) * cp_ + at.context) * tp_ + at.tensor};
}

Coordinates Placement::coordinates(Rank rank) const {
  const int block = rank.value / tp_;
  return {block / (cp_ * dp_), block / cp_ % dp_, rank.value % tp_, block % cp_};
}

int Placement::nic(Rank rank) const {
  const int local = rank.value % gpus_per_node_;
  return rank.value / gpus_per_node_ * nics_per_node_ + local * nics_per_node_ / gpus_per_node_;
}

Placement::Lattice Placement::lattice(GroupKind kind) const {
  switch (kind) {
    case GroupKind::tensor:
      return {tp_, 1};
    case GroupKind::context:
      return {cp_ * tp_, tp_};
    case GroupKind::data:
      return {in_shard_copy(), tp_};
    case GroupKind::expert_tensor:
      return {etp_, 1};
    case GroupKind::expert:
      return {ep_ * etp_, etp_};
    case GroupKind::expert_data:
      if (experts_) return {in_shard_copy(), ep_ * etp_};
      break;
    case GroupKind::shard_copies:
      return {in_stage(), in_shard_copy()};
  }
  return {};
}

std::vector<GroupKind> Placement::kinds() const {
  std::vector<GroupKind> list;
  for (GroupKind kind : all_group_kinds)
    if (const Lattice groups = lattice(kind); groups.block > groups.stride) list.push_back(kind);
  return list;
}

std::vector<Rank> Placement::group(GroupKind kind, Rank member) const {
  const auto [block, stride] = lattice(kind);
  const int position = member.value % in_stage();
  const int first = member.value - position + position / block * block + position % stride;
  std::vector<Rank> ranks;
  for (int i = 0; i < block / stride; ++i) ranks.push_back(Rank{first + i * stride});
  return ranks;
}

std::vector<std::vector<Rank>> Placement::groups(GroupKind kind, int stage) const {
  const auto [block, stride] = lattice(kind);
  const int first = stage * in_stage();
  std::vector<std::vector<Rank>> list;
  for (int begin = first; begin < first + in_stage(); begin += block)
    for (int i = 0; i < stride; ++i) list.push_back(group(kind, Rank{begin + i}));
  return list;
}

bool Placement::regular() const {
  const int stage = in_stage();
  const bool nics_even =
      gpus_per_nic_ * nics_per_node_ == gpus_per_node_ || nics_per_node_ % gpus_per_node_ == 0;
  for (int together : {stage, tp_, cp_ * tp_, etp_, ep_ * etp_, in_shard_copy()})
    if (!nested(together, domain_size_)) return false;
  return nics_even && nested(stage, gpus_per_nic_) &&
         (ranks() % domain_size_ == 0 || ranks() < domain_size_);
}

bool Placement::passes_stay_in_domains() const {
  return std::all_of(std::begin(all_group_kinds), std::end(all_group_kinds), [&](GroupKind kind) {
    return !is_inside_passes(kind) || domain_size_ % lattice(kind).block == 0;
  });
}

GroupShape Placement::shape(const std::vector<Rank>& group) const {
  GroupShape shape{static_cast<int>(group.size()), 0, static_cast<int>(group.size())};
  for (std::size_t i = 0; i < group.size();) {  // Ranks ascend, so that domains are runs.
    std::size_t end = i;
    while (end < group.size() && same_domain(group[i], group[end])) ++end;
    shape.per_domain = std::min(shape.per_domain, static_cast<int>(end - i));
    ++shape.domains;
    i = end;
  }
  return shape;
}

GroupShapes Placement::shapes() const {
  std::vector<Rank> replica;
  for (int stage = 0; stage < pp_; ++stage)
    for (int tensor = 0; tensor < tp_; ++tensor) replica.push_back(rank({stage, 0, tensor}));
  GroupShapes shapes;
  shapes.model = shape(replica);
  for (GroupKind kind : all_group_kinds) {
    shapes[kind] = shape(group(kind, Rank{0}));
    if (regular()) continue;
    for (int stage = 0; stage < pp_; ++stage)
      for (const std::vector<Rank>& one : groups(kind, stage))
        shapes[kind] = more_spread(shapes[kind], shape(one));
  }
  return shapes;
}

std::vector<Ring> rings_of(const Placement& placement, const std::vector<Rank>& group) {
  std::vector<std::vector<Rank>> domains;
  for (Rank rank : group) {
    if (domains.empty() || !placement.same_domain(domains.back().front(), rank))
      domains.emplace_back();
    domains.back().push_back(rank);
  }
  std::vector<Ring> rings;
  std::size_t outside = domains.front().size();
  for (const std::vector<Rank>& domain : domains) {
    if (domain.size() > 1) rings.push_back({domain, true});
    outside = std::min(outside, domain.size());
  }
  if (domains.size() == 1) return rings;
  for (std::size_t i = 0; i < outside; ++i) {
    Ring ring{{}, false};
    for (const std::vector<Rank>& domain : domains) ring.ranks.push_back(domain[i]);
    rings.push_back(std::move(ring));
  }
  return rings;
}

Seconds further_switches(const Placement& placement, const Topology& topology,
                         const std::vector<Rank>& group) {
  if (group.size() < 2) return {};
  Seconds slowest;
  for (const Ring& ring : rings_of(placement, group)) {
    if (ring.same_domain) continue;
    const std::size_t count = ring.ranks.size();
    Seconds sum;
    Seconds shortest;
    for (std::size_t i = 0; i < count; ++i) {
      const Seconds hop = topology.further_switches(ring.ranks[i], ring.ranks[(i + 1) % count]);
      shortest = i == 0 ? hop : std::min(shortest, hop);
      sum += hop;
    }
    slowest = std::max(slowest, (sum - shortest) / static_cast<double>(count - 1));
  }
  return slowest;
}

GroupShape pair_shape(const Placement& placement, const Topology& topology, Rank a, Rank b) {
  const bool inside = placement.same_domain(a, b);
  return {2, inside ? 1 : 2, inside ? 2 : 1, topology.further_switches(a, b)};
}

namespace {

BytesPerSecond bridge_of(const System& system, const std::vector<Rank>& group) {
  if (group.size() != 2) return {};
  const auto node = [&](Rank rank) { return rank.value / system.gpus_per_node; };
  const auto gpu = [&](Rank rank) { return rank.value % system.gpus_per_node; };
  if (node(group[0]) != node(group[1])) return {};
  return system.bridge(gpu(group[0]), gpu(group[1]));
}

}  // namespace

GroupShapes shapes_on(const System& system, const Placement& placement, const Topology& topology) {
  GroupShapes shapes = placement.shapes();
  if (system.uniform()) return shapes;  // One switch.
  for (const Group& group : groups_of(placement)) {
    GroupShape& shape = shapes[group.kind];
    shape.further_switches =
        std::max(shape.further_switches, further_switches(placement, topology, group.ranks));
    const BytesPerSecond bridge = bridge_of(system, group.ranks);
    shape.bridge = group.ranks.front() == placement.group(group.kind, Rank{0}).front()
                       ? bridge
                       : std::min(shape.bridge, bridge);
  }
  std::vector<Rank> replica;
  for (int stage = 0; stage < placement.pp(); ++stage)
    for (const Rank rank : placement.group(GroupKind::tensor, Coordinates{.stage = stage}))
      replica.push_back(rank);
  shapes.model.further_switches = further_switches(placement, topology, replica);
  return shapes;
}

}  // namespace orrery
