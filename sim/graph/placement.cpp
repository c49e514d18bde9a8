#include "sim/graph/placement.hpp"

#include <algorithm>
#include <cassert>

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
      dp_{plan.dp},
      pp_{plan.pp},
      domain_size_{system.nvlink_domain},
      gpus_per_node_{system.gpus_per_node},
      nics_per_node_{system.nics_per_node},
      gpus_per_nic_{std::max(1, system.gpus_per_node / system.nics_per_node)} {}

Rank Placement::rank(Coordinates at) const {
  assert(at.stage < pp_ && at.data < dp_ && at.tensor < tp_);
  return Rank{(at.stage * dp_ + at.data) * tp_ + at.tensor};
}

Coordinates Placement::coordinates(Rank rank) const {
  return {rank.value / (tp_ * dp_), rank.value / tp_ % dp_, rank.value % tp_};
}

int Placement::nic(Rank rank) const {
  const int local = rank.value % gpus_per_node_;
  return rank.value / gpus_per_node_ * nics_per_node_ + local * nics_per_node_ / gpus_per_node_;
}

std::vector<Rank> Placement::tensor_group(Coordinates at) const {
  std::vector<Rank> group;
  for (int t = 0; t < tp_; ++t) group.push_back(rank({at.stage, at.data, t}));
  return group;
}

std::vector<Rank> Placement::data_group(Coordinates at) const {
  std::vector<Rank> group;
  for (int d = 0; d < dp_; ++d) group.push_back(rank({at.stage, d, at.tensor}));
  return group;
}

bool Placement::regular() const {
  const int stage = tp_ * dp_;
  const bool nics_even = gpus_per_nic_ * nics_per_node_ == gpus_per_node_ ||
                         nics_per_node_ % gpus_per_node_ == 0;
  return nested(stage, domain_size_) && nested(tp_, domain_size_) && nics_even &&
         nested(stage, gpus_per_nic_) && (ranks() % domain_size_ == 0 || ranks() < domain_size_);
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
  GroupShapes shapes{shape(tensor_group({})), shape(data_group({})), shape(replica)};
  if (regular()) return shapes;
  for (int stage = 0; stage < pp_; ++stage) {
    for (int data = 0; data < dp_; ++data)
      shapes.tensor = more_spread(shapes.tensor, shape(tensor_group({stage, data, 0})));
    for (int tensor = 0; tensor < tp_; ++tensor)
      shapes.data = more_spread(shapes.data, shape(data_group({stage, 0, tensor})));
  }
  return shapes;
}

}  // namespace orrery
