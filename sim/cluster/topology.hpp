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
  socket_link,  ///< A link of two CPU sockets of a node.
  leaf_up,      ///< Leaf to spine.
  leaf_down,    ///< Spine to leaf.
  spine_up,     ///< Spine to core.
  spine_down,   ///< Core to spine.
  local_link,   ///< Routers of one dragonfly group.
  global_link,  ///< Routers of two dragonfly groups.
  switch_link,  ///< A link of an explicit fabric.
  port          ///< The port of an external device, such as a store.
};

/// "nvlink", "pcie", "nic", "socket", "leaf-spine", "spine-core", "local", "global", "switch",
/// "port": both directions have one name.
const std::string& cable_name(LinkKind kind);

/// One direction of a wire. "Up" leads away from a GPU, "down" towards it.
struct Link {
  LinkKind kind = LinkKind::nvlink_up;
  BytesPerSecond capacity;  ///< NICs and switches: line rate x network efficiency.
  Seconds latency;          ///< NVLink up or down, NIC: half of a route's, which crosses two.
  int node = 0;             ///< -1: a link between switches, or a port.
  int owner = 0;  ///< The GPU of the node that the wire belongs to, or the NIC for NIC links.

  bool is_nic() const { return kind == LinkKind::nic_up || kind == LinkKind::nic_down; }
};

/// "node0.gpu3.nvlink.up", "node0.nic3.down"; GPUs and NICs are numbered per node. A link between
/// two GPUs of a mesh or between switches is named by its ends: "node0.gpu0-gpu3.nvlink" (from GPU
/// 0 to GPU 3, an nvlink_up), "leaf3-spine1", "spine1-leaf3".
struct NamedLink {
  std::string name;
  Link link;
};

class FabricPlan;

/// The wires of a cluster and the route between any two GPUs.
///
/// Ranks lie in order: rank r is GPU r mod gpus_per_node of node r / gpus_per_node, and NVLink
/// domains are runs of nodes. Domains are equal but for overrides, so routes inside them are found
/// once, on the graph of a single domain; those between the switches of the fabric are found for
/// each destination switch. Links are created when a route first uses them: the cost for 131,072
/// GPUs behind one switch is that of the requested routes. Link ids count up in the order of first
/// use: the same requests give the same ids. Not thread-safe, because routes are cached.
///
///     GPU ... NIC          over NVLink or PCIe: sim/cluster/domain_graph.hpp
///     NIC ... NIC          over switches:       sim/cluster/fabric_routes.hpp
///     NIC ... GPU
///
/// A GPU sends by its own NIC: the nearest, by its index if there are several. If NIC i of all
/// nodes is a rail, it sends by the NIC on the receiver's rail if NVLink leads there (NCCL's PXN,
/// since 2.12), so that the route need not cross to another rail in the fabric. Links that are down
/// are avoided, at the cost of a longer route.
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
  /// True if the two share an NVLink domain (or, without NVLink, a node).
  bool same_domain(Rank a, Rank b) const;

  /// Links from `from` to `to`, in the order in which data crosses them; none to oneself. Flows of
  /// other `channel`s between the same two may take other routes through the fabric. Errors
  /// (infeasible): no route is left, with both ends and the links that are down.
  std::vector<LinkId> route(Rank from, Rank to, int channel = 0) const;
  /// Sum of the latencies on the route: the scale-up latency inside a domain, the network's between
  /// domains and the latency of each switch after the first. Data on its way to the network in PCIe
  /// nodes also pays the scale-up latency.
  Seconds latency(Rank from, Rank to) const;

  /// The fabric's share of the latency between two ranks beyond the network's: the switches after
  /// the first, and longer cables of their NICs. 0 if the route crosses no NIC.
  Seconds further_switches(Rank from, Rank to) const;

  /// The NIC between the network and a rank's node memory: its GPU's nearest. nullopt if the node
  /// has none.
  std::optional<LinkId> nic_of(Rank rank, bool outward) const;
  /// A link that no route crosses: the port of an external device, such as a store.
  LinkId add_port(BytesPerSecond capacity);

  /// Links that routes have used so far: ids 0 .. link_count() - 1.
  int link_count() const;
  const Link& link(LinkId id) const;  ///< Stays valid when further links are added.
  std::string name(LinkId id) const;  ///< The name in NamedLink.

  /// Relative speed: 1, or the override's: a GPU of speed 0.8 takes 1 / 0.8 of the time.
  double gpu_speed(Rank rank) const;

  const FabricPlan& fabric() const;  ///< The fabric with overrides applied.
  /// All links of one domain without overrides.
  const std::vector<NamedLink>& domain_links() const;

 private:
  struct State;
  explicit Topology(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace orrery
