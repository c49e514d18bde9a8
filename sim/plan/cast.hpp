#pragma once

#include <vector>

#include "sim/plan/placement.hpp"
#include "sim/plan/refinement.hpp"

namespace orrery {

/// A rank that is simulated, and how many ranks it stands for.
struct Role {
  Rank rank;
  Coordinates at;
  int ranks = 1;
  double speed = 1.0;  ///< Of its GPU, over the catalog's.
  double pace = 1.0;   ///< Of the slowest GPU that a layer of it waits for.
};

/// Which ranks are simulated. Two ranks may share a role if nothing tells them apart: the same
/// stage, groups that lie the same way, and neighbours that share a role in turn. Max-min fair
/// sharing depends only on how many flows of each role cross each kind of link, so that one rank a
/// role has exactly the rates of the whole (docs/FOLDING.md).
class Cast {
 public:
  /// On a uniform system (System::uniform): every rank plays itself.
  static Cast unfolded(const Placement& placement);
  /// On a uniform system, of a regular placement: one role a stage, whatever their size.
  static Cast folded(const Placement& placement);

  /// The same two for any placement on any system, by the routes of all ranks; folded by
  /// refinement. `speeds`: of the ranks' GPUs, one a rank.
  static Cast unfolded_on(const Placement& placement, const Topology& topology,
                          const std::vector<double>& speeds);
  static Cast folded_on(const Placement& placement, const Topology& topology,
                        const std::vector<double>& speeds);
  /// On a system whose links are uniform: whom a rank follows on a ring does not count, so that
  /// what a neighbour's other traffic does to a ring's flow is smeared over the ring. Few roles,
  /// and not exact (docs/FOLDING.md).
  static Cast loosely_folded(const Placement& placement, const std::vector<double>& speeds);

  const std::vector<Role>& roles() const { return roles_; }
  int role_of(Rank rank) const;
  int role_of(Coordinates at) const { return role_of(placement_.rank(at)); }
  const Placement& placement() const { return placement_; }
  /// How many of the GPUs on `role`'s NIC play the same role: flows of one member count so often.
  int sharers(int role) const;
  /// The way of a role's traffic; null where each role has its representative's own ports.
  const RoleWay* way_of(int role, Traffic kind) const;

 private:
  explicit Cast(const Placement& placement) : placement_{placement} {}
  void take_roles(const std::vector<int>& role_of_rank, const std::vector<double>& speeds);

  Placement placement_;
  std::vector<Role> roles_;
  std::vector<int> role_of_rank_;  ///< Empty: the stage is the role.
  std::vector<WaysOfRole> ways_;   ///< Empty: each role has its representative's own ports.
};

}  // namespace orrery
