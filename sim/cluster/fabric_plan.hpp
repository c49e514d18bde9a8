#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"

namespace orrery {

/// One direction of a wire between two switches.
struct FabricWire {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::leaf_up;
  BytesPerSecond capacity;  ///< Line rate x network efficiency.
  Seconds latency;
  bool down = false;
};

/// The switches between the NICs of so many nodes, and their wires.
///
///   leaf_spine          spine0 ... spine3      every leaf to every spine
///                          \  X  /
///                       leaf0 ... leaf7        nodes 0 .. n-1 on leaf 0, n .. 2n-1 on leaf 1, ...
///
///   rail_optimized      the same; a row of leaves serves n nodes: NIC i on leaf i of the row
///
///   fat_tree            core0 ... core15       spine j of a pod to the cores of its group
///                          \  X  /
///                       spine0 ... spine3 | spine4 ...     every leaf of a pod to its spines
///                          \  X  /        |
///                       leaf0 ... leaf3   | leaf4 ...
///
///   dragonfly           routers of a group all to all; as many cables between any two groups
///
/// A single switch is one switch without wires: NICs alone limit it.
class FabricPlan {
 public:
  /// Errors (infeasible): ten million wires or more, beyond any real fabric and this memory.
  FabricPlan(const System& system, int nodes);

  int switches() const { return static_cast<int>(names_.size()); }
  const std::string& name(int at_switch) const { return names_[index(at_switch)]; }
  /// Level 0 for leaves and routers, 1 for spines, 2 for cores: a route goes up before it goes
  /// down.
  int level(int at_switch) const { return levels_[index(at_switch)]; }
  const std::vector<FabricWire>& wires() const { return wires_; }
  std::string wire_name(int wire) const;

  int nodes() const { return nodes_; }
  /// The switch that a NIC (numbered as in routes) is plugged into, and its line rate x efficiency.
  int switch_of(int node, int nic) const;
  int nics_per_node() const { return nics_; }
  BytesPerSecond nic() const { return nic_; }

  /// Changes the wires of the override, in both directions. A name of switches that only a larger
  /// cluster has changes nothing. Errors (bad_input): a name that no cluster of this plan has.
  void apply(const LinkOverride& change);

 private:
  static std::size_t index(int at) { return static_cast<std::size_t>(at); }
  int add_switch(const std::string& kind, int number, int level);
  void join(int lower, int upper, LinkKind up, LinkKind down, BytesPerSecond line_rate,
            Seconds latency);
  std::int64_t count_wires() const;
  void build_leaf_spine();
  void build_fat_tree();
  void build_dragonfly();
  void build_explicit();

  FabricShape shape_;
  int nodes_;
  int nics_;
  BytesPerSecond nic_;
  double efficiency_;
  std::vector<std::string> names_;
  std::vector<int> levels_;
  std::vector<FabricWire> wires_;
};

/// Bytes a second that the first half of the nodes can send to the other half at once, each way:
/// nodes 0 .. n/2 - 1 to the others, in payload (line rate x network efficiency), at most the NICs
/// of the smaller half. Routes inside nodes are ignored, as in a fabric of its own, and NICs count
/// at full speed; the wires of switches include overrides.
///
/// `closed_form` is the least of the rates of NICs, leaves and pods of one half, if the two halves
/// are whole leaves (of fat trees with several pods: whole pods) and no wire is changed; for a
/// dragonfly, if NICs or the cables between halves of whole groups limit. nullopt for others.
std::optional<BytesPerSecond> closed_form_bisection(const System& system, const FabricPlan& plan);
/// The general case by maximum flow (Goldberg and Tarjan's push-relabel, JACM 1988): the least cut
/// of the wires. 0 for a single node.
BytesPerSecond bisection(const FabricPlan& plan);

/// Most links between two NICs, the NICs' own included: 2 in a single switch. -1: some two NICs
/// have no route.
int diameter(const FabricPlan& plan);

/// Cables by name of their kind ("nvlink", "leaf-spine"): both directions are one.
std::map<std::string, int> cable_counts(const System& system, const Topology& topology);

}  // namespace orrery
