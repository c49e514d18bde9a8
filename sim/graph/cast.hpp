#pragma once

#include <vector>

#include "sim/graph/placement.hpp"
#include "sim/graph/refinement.hpp"

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
  /// Every rank plays itself.
  static Cast unfolded(const Placement& placement);
  /// One role a stage where the placement is regular; else the coarsest equitable partition.
  static Cast folded(const Placement& placement);
  /// The coarsest equitable partition by refinement over all ranks, for any placement. `speeds`: of
  /// the ranks' GPUs; empty: all alike.
  static Cast refined(const Placement& placement, const std::vector<double>& speeds = {});

  /// The same two for a system whose links are not uniform: some are shared by several ranks or run
  /// at another speed. `speeds`: one a rank.
  static Cast unfolded_on(const Placement& placement, const Topology& topology,
                          const std::vector<double>& speeds);
  static Cast folded_on(const Placement& placement, const Topology& topology,
                        const std::vector<double>& speeds);

  const std::vector<Role>& roles() const { return roles_; }
  int role_of(Rank rank) const;
  int role_of(Coordinates at) const { return role_of(placement_.rank(at)); }
  const Placement& placement() const { return placement_; }
  /// How many of the GPUs on `role`'s NIC play the same role: flows of one member count so often.
  int sharers(int role) const;
  /// The way of a role's traffic, for a system that is not uniform; else null.
  const Way* way_of(int role, Traffic kind) const;

 private:
  explicit Cast(const Placement& placement) : placement_{placement} {}
  void take_roles(const std::vector<int>& role_of_rank, const std::vector<double>& speeds);

  Placement placement_;
  std::vector<Role> roles_;
  std::vector<int> role_of_rank_;  ///< Empty: the stage is the role.
  std::vector<WaysOfRole> ways_;   ///< Empty: the system is uniform.
};

}  // namespace orrery
