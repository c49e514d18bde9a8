#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/refinement.hpp"

namespace orrery {

/// A class of equivalent ranks, of which only the representative is simulated.
struct RankClass {
  Rank rank;  ///< The representative.
  Coordinates at;
  int ranks = 1;       ///< Number of ranks in the class.
  double speed = 1.0;  ///< Speed of its GPU, relative to the catalog's.
  double pace = 1.0;   ///< Speed of the slowest GPU that one of its layers waits for.
};

/// Partition of a plan's ranks into classes, one representative of each to be simulated. Ranks of a
/// class are equivalent: the same stage, groups of the same shape, and neighbours that are
/// equivalent in turn. Max-min fair sharing depends only on how many flows of each class cross each
/// kind of link: representatives have the rates of the whole (docs/explanation/simulation.md).
class RankClasses {
 public:
  /// Every rank is a class of its own. The system must be uniform (System::uniform).
  static RankClasses unfolded(const Placement& placement);
  /// One class for each stage; needs a uniform system and a regular placement.
  static RankClasses folded(const Placement& placement);

  /// The same two for any placement on any system, from the routes of all ranks; folded by
  /// refinement. `speeds`: relative GPU speed of each rank.
  static RankClasses unfolded_on(const Placement& placement, const Topology& topology,
                                 const std::vector<double>& speeds);
  static RankClasses folded_on(const Placement& placement, const Topology& topology,
                               const std::vector<double>& speeds);
  /// Approximate folding on uniform links: the effect of a neighbour's other traffic is averaged
  /// over a ring, so that there are few classes (docs/explanation/simulation.md).
  static RankClasses loosely_folded(const Placement& placement, const std::vector<double>& speeds);

  const std::vector<RankClass>& reps() const { return reps_; }
  int rep_of(Rank rank) const;
  int rep_of(Coordinates at) const { return rep_of(placement_.rank(at)); }
  const Placement& placement() const { return placement_; }
  /// Number of GPUs of a class on its representative's NIC: the multiplicity of flows there.
  int sharers(int rep) const;
  /// Route of a class's traffic; null if each class has its representative's own ports.
  const ClassRoute* route_of(int rep, Traffic kind) const;

 private:
  explicit RankClasses(const Placement& placement) : placement_{placement} {}
  void set_reps(const std::vector<int>& rep_of_rank, const std::vector<double>& speeds);

  Placement placement_;
  std::vector<RankClass> reps_;
  std::vector<int> rep_of_rank_;     ///< Empty: the stage is the class.
  std::vector<ClassRoutes> routes_;  ///< Empty: each class has its representative's own ports.
};

/// The classes to simulate on `system`: every rank, or as few classes as give the same time. A
/// regular placement on a uniform system has one class for each stage; else ranks, flows and links
/// are refined together, or approximately if that leaves too many classes on uniform links.
RankClasses choose_classes(const System& system, const Placement& placement,
                           const Topology& topology, bool unfolded);

/// Routes on a uniform system (System::uniform); elsewhere RankClasses has them.
///
/// The route from a class to that of `to`: out by the links of the one representative, in by those
/// of the other. Without folding it is the route between the two ranks.
FlowRoute route(const Topology& topology, const RankClasses& classes, int from_rep, Rank to);

/// The same between two classes, or ranks of one class, in one domain or in two.
FlowRoute route(const Topology& topology, const RankClasses& classes, int from_rep, int to_rep,
                bool same_domain);

/// Only the links of the representative itself, on a route out of it or into it.
FlowRoute route_out(const Topology& topology, const RankClasses& classes, int rep,
                    bool same_domain);
FlowRoute route_in(const Topology& topology, const RankClasses& classes, int rep, bool same_domain);

}  // namespace orrery
