#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/core/units.hpp"

namespace orrery {

enum class LinkKind {
  nvlink_up,
  nvlink_down,
  pcie_up,
  pcie_down,
  nic_up,
  nic_down,
  socket_link,  ///< Between the CPU sockets of a node.
  leaf_up,      ///< Leaf to spine.
  leaf_down,    ///< Spine to leaf.
  spine_up,     ///< Spine to core.
  spine_down,   ///< Core to spine.
  local_link,   ///< Between routers of one dragonfly group.
  global_link,  ///< Between dragonfly groups.
  switch_link,  ///< Of an explicit fabric.
  port          ///< Of what stands outside the cluster, as a store.
};

/// "nvlink", "pcie", "nic", "socket", "leaf-spine", "spine-core", "local", "global", "switch",
/// "port": both directions have one name.
const std::string& cable_name(LinkKind kind);

/// One direction of a wire. "Up" leads away from a GPU, "down" towards it.
struct Link {
  LinkKind kind = LinkKind::nvlink_up;
  BytesPerSecond capacity;  ///< Of NICs and between switches: line rate x network efficiency.
  Seconds latency;  ///< NVLink up or down, NIC: half of the way's, as a way crosses two of them.
  int node = 0;     ///< -1: a link between switches, or a port.
  int owner = 0;    ///< The GPU of the node that the wire belongs to, or the NIC for NIC links.

  bool is_nic() const { return kind == LinkKind::nic_up || kind == LinkKind::nic_down; }
};

/// "node0.gpu3.nvlink.up", "node0.nic3.down"; GPUs and NICs count per node. Between two GPUs of a
/// mesh and between switches a link is called by its ends: "node0.gpu0-gpu3.nvlink" (from GPU 0 to
/// GPU 3, an nvlink_up), "leaf3-spine1", "spine1-leaf3".
struct NamedLink {
  std::string name;
  Link link;
};

class FabricPlan;

/// The wires of a cluster and the way between any two GPUs.
///
/// Ranks lie in order: rank r is GPU r mod gpus_per_node of node r / gpus_per_node, and NVLink
/// domains are runs of nodes. Domains are alike but for overrides, so ways inside them are found
/// once, on the graph of a single domain; those between the switches of the fabric are found for
/// each switch at which one ends. Links come into being when a route first uses them: a cluster of
/// 131,072 GPUs behind one switch costs what is asked of it.
/// Link ids count up in the order of first use: the same questions give the same ids.
/// One thread at a time may ask, because answers are remembered.
///
///     GPU ... NIC          over NVLink or PCIe: sim/cluster/domain_graph.hpp
///     NIC ... NIC          over switches:       sim/cluster/fabric_routes.hpp
///     NIC ... GPU
///
/// A GPU sends by its own NIC: the nearest, by its index where several are. Where NIC i of all
/// nodes is a rail, it sends by the NIC on the receiver's rail if NVLink leads there (NCCL's PXN,
/// since 2.12), so that the way need not cross to another rail in the fabric. What is down is
/// avoided, at the cost of a longer way.
class Topology {
 public:
  /// Asserts `gpus` >= 1. The last node may be partly used. Errors (bad_input): overrides of links
  /// that the system does not have. Overrides of nodes beyond the last are kept for larger runs.
  static Topology build(const System& system, int gpus);
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  int gpus() const;
  int node(Rank rank) const;
  /// Whether the two share an NVLink domain (or, without NVLink, a node).
  bool same_domain(Rank a, Rank b) const;

  /// Links from `from` to `to`, in the order in which data crosses them; none to oneself. Flows of
  /// other `channel`s between the same two may take other ways through the fabric. Errors
  /// (infeasible): no way is left, with both ends and what is down.
  std::vector<LinkId> route(Rank from, Rank to, int channel = 0) const;
  /// Sum of the latencies on the route: the scale-up latency inside a domain, the network's between
  /// domains and the latency of each switch after the first. In PCIe nodes data on its way to the
  /// network also pays the scale-up latency.
  Seconds latency(Rank from, Rank to) const;

  /// What the fabric adds to the network's latency between two ranks: the switches after the first,
  /// and longer cables of their NICs. Nothing where the way leads over no NIC.
  Seconds further_switches(Rank from, Rank to) const;

  /// The NIC by which what a rank has in its node's memory leaves it or comes in: its GPU's
  /// nearest. Nothing where the node has none.
  std::optional<LinkId> nic_of(Rank rank, bool outward) const;
  /// A link that no route crosses: the port of what stands outside, as a store.
  LinkId add_port(BytesPerSecond capacity);

  /// Links that routes have used so far: ids 0 .. link_count() - 1.
  int link_count() const;
  const Link& link(LinkId id) const;  ///< Stays valid when further links are added.
  std::string name(LinkId id) const;  ///< As of NamedLink.

  /// 1, or what an override says: a GPU of speed 0.8 takes 1 / 0.8 of the time.
  double gpu_speed(Rank rank) const;

  const FabricPlan& fabric() const;  ///< As overrides have left it.
  /// All links of one domain without overrides.
  const std::vector<NamedLink>& domain_links() const;

 private:
  struct State;
  explicit Topology(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace orrery
