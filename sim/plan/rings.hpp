#pragma once

#include <vector>

#include "sim/plan/placement.hpp"

namespace orrery {

/// Ranks of a group of which each sends to the next, and the last to the first.
struct Ring {
  std::vector<Rank> ranks;
  bool same_domain = true;  ///< Else each lies in another domain.
};

/// The rings of a group's collective: in each domain that has several members one over them, and
/// between domains as many as the domain with the fewest members has, the i-th over the i-th
/// members. Each member thus sends once inside its domain and once out of it, at most. NCCL's own
/// rings go through all members, one for each NIC; on the links they come to the same
/// (docs/COLLECTIVES.md). `group` ascends.
std::vector<Ring> rings_of(const Placement& placement, const std::vector<Rank>& group);

}  // namespace orrery
