#pragma once

#include <compare>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"
#include "sim/core/units.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

/// Position of a rank in the plan.
struct Coordinates {
  int stage = 0;
  int data = 0;
  int tensor = 0;
  int context = 0;
  bool operator==(const Coordinates&) const = default;
};

/// Ranks lie in Megatron's order, tensor fastest, then context, data and pipeline
/// (megatron/core/parallel_state.py, order "tp-cp-ep-dp-pp"), and fill NVLink domains in turn:
///
///     rank = ((stage dp + data) cp + context) tp + tensor
///
/// Experts have their own order over the ranks of a stage (order "tp-ep-dp-pp" with the experts'
/// tensor ranks): position in the stage = (expert data x ep + expert) etp + expert tensor.
class Placement {
 public:
  Placement(const Plan& plan, const System& system);
  /// Equal placements lay out ranks equally on the same system.
  auto operator<=>(const Placement&) const = default;

  int ranks() const { return in_stage() * pp_; }
  int tp() const { return tp_; }
  int cp() const { return cp_; }
  int dp() const { return dp_; }
  int pp() const { return pp_; }
  /// True if a stage and its mirror pp - 1 - s hold the same weights (Plan::copies()).
  bool mirrored() const { return mirrored_; }
  Rank rank(Coordinates at) const;
  Coordinates coordinates(Rank rank) const;
  int domain(Rank rank) const { return rank.value / domain_size_; }
  int nic(Rank rank) const;  ///< Numbered over the cluster; GPUs may share one.
  int gpus_per_nic() const { return gpus_per_nic_; }
  bool same_domain(Rank a, Rank b) const { return domain(a) == domain(b); }

  /// Index of the routing sample of the rank's expert group.
  int draw(Rank rank) const { return rank.value % in_stage() / (ep_ * etp_) % draws_; }
  int draws() const { return draws_; }
  /// A rank's place in its expert group.
  int expert_place(Rank rank) const { return rank.value % in_stage() / etp_ % ep_; }
  bool has_experts() const { return experts_; }

  /// Kinds whose groups have several members.
  std::vector<GroupKind> kinds() const;
  /// The group of a kind that a rank belongs to, ascending.
  std::vector<Rank> group(GroupKind kind, Rank member) const;
  std::vector<Rank> group(GroupKind kind, Coordinates at) const { return group(kind, rank(at)); }
  /// All groups of a kind in a stage.
  std::vector<std::vector<Rank>> groups(GroupKind kind, int stage) const;

  /// True if stages fill whole domains or domains whole stages, and tensor groups, the ranks of a
  /// replica's stage and expert groups likewise: all ranks of a stage are then equivalent.
  bool regular() const;

  /// True if every group whose collectives lie inside passes lies in one domain.
  bool passes_stay_in_domains() const;

  /// Shapes of the most spread group of each kind; in a regular placement all are equal.
  GroupShapes shapes() const;

 private:
  /// Groups of a kind: a stage's ranks are cut into blocks, and every `stride`-th rank of a block
  /// is in one group.
  struct Lattice {
    int block = 1;
    int stride = 1;
  };
  Lattice lattice(GroupKind kind) const;
  GroupShape shape(const std::vector<Rank>& group) const;
  int in_stage() const { return tp_ * cp_ * dp_; }
  int in_shard_copy() const { return in_stage() / shard_copies_; }

  int tp_, cp_, dp_, pp_;
  bool mirrored_;
  bool experts_;
  int ep_, etp_, draws_;
  int shard_copies_;
  int domain_size_;
  int gpus_per_node_;
  int nics_per_node_;
  int gpus_per_nic_;
};

/// Ranks of a group of which each sends to the next, and the last to the first.
struct Ring {
  std::vector<Rank> ranks;
  bool same_domain = true;  ///< Else each lies in another domain.
};

/// The rings of a group's collective: in each domain that has several members one over them, and
/// between domains as many as the domain with the fewest members has, the i-th over the i-th
/// members. Each member thus sends once inside its domain and once out of it, at most. NCCL's own
/// rings go through all members, one for each NIC; on the links they come to the same
/// (docs/explanation/collectives.md). `group` ascends.
std::vector<Ring> rings_of(const Placement& placement, const std::vector<Rank>& group);

/// Latency that the fabric adds to a hop of `group`'s rings between domains
/// (Topology::further_switches), the mean over the hops that a round-trip's N - 1 rounds cross: all
/// of a ring's N but the shortest; the slowest ring counts. 0 for a group inside one domain.
Seconds further_switches(const Placement& placement, const Topology& topology,
                         const std::vector<Rank>& group);

/// Two ranks as a group, with the latency that the fabric adds to the hop between them.
GroupShape pair_shape(const Placement& placement, const Topology& topology, Rank a, Rank b);

/// Placement::shapes() with the latency that the fabric adds in the slowest group of each kind.
GroupShapes shapes_on(const System& system, const Placement& placement, const Topology& topology);

}  // namespace orrery
