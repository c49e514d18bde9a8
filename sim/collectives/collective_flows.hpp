#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/nccl/collective_cost.hpp"
#include "sim/plan/rank_classes.hpp"

namespace orrery {

/// The parent of `node` in one of two binary trees over `nodes` nodes, or -1 for the root. A node
/// that is inside one tree is a leaf of the other (but for the roots), so that both together keep
/// every node's port busy: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", 2009; NCCL lays them out like this (NVIDIA/nccl
/// src/graph/trees.cc). The first is in-order by the lowest bit of a node's number; the second is
/// its mirror image, or, of an odd number of nodes, the first moved on by one node.
///
///     eight nodes, first tree:  0 - 4 - 2 - 1, 3     second:  7 - 3 - 5 - 6, 4
///                                     - 6 - 5, 7                     - 1 - 2, 0
int tree_parent(int node, int nodes, bool second);

/// Bytes that each member of a group sends to each other in an all-to-all(-v). Members are numbered
/// within the group; the diagonal is ignored.
class Exchange {
 public:
  /// Every member sends every other `a_pair`. The cost does not depend on the number of members.
  static Exchange uniform(int members, Bytes a_pair);
  /// `bytes`: members x members, one row per sender.
  static Exchange matrix(int members, std::vector<double> bytes);

  int members() const { return members_; }
  bool is_uniform() const { return bytes_.empty(); }
  Bytes between(int from, int to) const;

 private:
  Exchange(int members, Bytes a_pair, std::vector<double> bytes)
      : members_{members}, a_pair_{a_pair}, bytes_{std::move(bytes)} {}

  int members_;
  Bytes a_pair_;
  std::vector<double> bytes_;  // Empty: uniform.
};

/// Bytes that one member sends and receives, inside its NVLink domain and out of it.
struct PortBytes {
  Bytes sent_inside, received_inside;
  Bytes sent_outside, received_outside;
};

/// One entry per member of `group`, which ascends.
std::vector<PortBytes> port_bytes(const Placement& placement, const std::vector<Rank>& group,
                                  const Exchange& exchange);

/// A transfer between a pair of ranks: at `rate` on idle links.
struct Leg {
  Rank from;
  Rank to;
  Bytes bytes;
  BytesPerSecond rate;
  bool same_domain = true;
  bool to_switches = false;  ///< Ends in the fabric's switches, which send reduced data on.
};

/// Every pair that exchanges something. A port's messages start at once and share its rate in
/// proportion to their bytes, so that all would end together; the slower of the two ports limits a
/// pair. `inside`, `outside`: rates of one member's ports on idle links; 0: such pairs are left
/// out.
std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const Exchange& exchange, BytesPerSecond inside, BytesPerSecond outside);

/// The exchange on the links. Alone it takes as long as its busiest port: the largest of PortBytes
/// over its rate.
///
/// It is folded on a uniform system (System::uniform): each rank class has a flow out of its NVLink
/// port, one into it, and the same for its NIC, or one for both directions if they carry as much.
/// Members of a class must send and receive as much as each other. That is exact, as pairs can
/// share only these ports there (in PCIe nodes, whose slots carry both kinds: for uniform
/// exchanges). Other systems have a flow a pair over its real route, so that pairs whose routes
/// meet between switches share them. Asserts that every rank is its own class.
std::vector<Flow> exchange_flows(const Topology& topology, const RankClasses& classes,
                                 const std::vector<Rank>& group, const Exchange& exchange,
                                 BytesPerSecond inside, BytesPerSecond outside);

/// The transfers of one collective of `group`, which ascends: each hop of a ring, each edge of a
/// tree over the domains, each pair of an all-to-all, with all its rounds' bytes. The busiest ports
/// carry the cost's bytes; the others carry as much (rings, pairs) or less (trees, shifts, and
/// domains that hold more members than the smallest).
std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const CollectiveCost& cost);

/// The exchange of an all-to-all with this cost: equally many bytes a pair.
Exchange exchange_of(const Placement& placement, const std::vector<Rank>& group,
                     const CollectiveCost& cost);

/// The links of a leg. A leg to the fabric's switches (CollectivePattern::switches) ends there, and
/// comes back from there.
std::vector<LinkId> route_of(const Topology& topology, const Leg& leg);

/// One flow a leg.
std::vector<Flow> flows_of(const Topology& topology, const std::vector<Leg>& legs);

/// The distinct rank classes of a group's members, ascending.
std::vector<int> reps_in(const RankClasses& classes, const std::vector<Rank>& group);

/// The flows of a collective: from every rank class in the group to its neighbours on the ring, one
/// inside its NVLink domain and one to the next domain. The flows of a ring's rounds are one flow a
/// hop (docs/explanation/simulation.md gives the error of this). `group` ascends. `inside`,
/// `outside`: kinds of traffic whose routes `classes` may know.
std::vector<Flow> collective_flows(const Topology& topology, const RankClasses& classes,
                                   const std::vector<Rank>& group, const CollectiveCost& cost,
                                   Traffic inside = Traffic::tensor_inside,
                                   Traffic outside = Traffic::tensor_outside);

/// The same for the group of a kind that `member` belongs to.
std::vector<Flow> collective_flows(const Topology& topology, const RankClasses& classes,
                                   Rank member, const GroupCollective& collective);

}  // namespace orrery
