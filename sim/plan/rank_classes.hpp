#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
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
/// role has exactly the rates of the whole (docs/explanation/simulation.md).
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
  /// and not exact (docs/explanation/simulation.md).
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

/// The ranks to simulate on `system`: every one, or as few as tell the same time. A regular
/// placement on a uniform system has one role a stage; else ranks, flows and links are refined
/// together, and where that leaves too many roles on uniform links, loosely.
Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded);

/// Ways where all ranks see the same picture (System::uniform); elsewhere the cast knows them.
///
/// The way from a role to the role that plays `to`: out by the links of the one, in by the links
/// of the other. Unfolded that is the route between the two ranks.
Way way(const Topology& topology, const Cast& cast, int from_role, Rank to);

/// The same between two roles (or twins that share one) whose ranks lie in one domain, or do not.
Way way(const Topology& topology, const Cast& cast, int from_role, int to_role, bool same_domain);

/// Only the links of `role` itself, on a way out of it or into it.
Way way_out(const Topology& topology, const Cast& cast, int role, bool same_domain);
Way way_in(const Topology& topology, const Cast& cast, int role, bool same_domain);

}  // namespace orrery
