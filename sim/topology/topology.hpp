#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/input/system.hpp"

namespace orrery {

enum class LinkKind { nvlink_up, nvlink_down, pcie_up, pcie_down, nic_up, nic_down };

/// One direction of a wire. "Up" leads away from a GPU, "down" towards it.
struct Link {
  std::string name;  ///< "node0.gpu3.nvlink.up", "node0.nic3.down"; GPUs and NICs count per node.
  LinkKind kind = LinkKind::nvlink_up;
  BytesPerSecond capacity;  ///< Of a NIC: line rate x network efficiency.
  Seconds latency;          ///< Half of the way's: a way crosses an up and a down link.
  int node = 0;
  int owner = 0;  ///< The GPU of the node that the wire belongs to, or the NIC for NIC links.

  bool is_nic() const { return kind == LinkKind::nic_up || kind == LinkKind::nic_down; }
};

/// The wires of a cluster and the way between any two GPUs.
///
/// Ranks lie in order: rank r is GPU r mod gpus_per_node of node r / gpus_per_node, and NVLink
/// domains are runs of nodes. All domains are alike and the fabric between them is one
/// non-blocking switch, so ways are found once, on the graph of a single domain; links come into
/// being when a route first uses them. A cluster of 131,072 GPUs thus costs what is asked of it.
/// Link ids count up in the order of first use: the same questions give the same ids.
/// One thread at a time may ask, because answers are remembered.
class Topology {
 public:
  /// Asserts `gpus` >= 1. The last node may be partly used.
  static Topology build(const System& system, int gpus);
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  int gpus() const;
  int node(Rank rank) const;
  /// Whether data between the two stays on NVLink (or, in PCIe nodes, inside the node).
  bool same_domain(Rank a, Rank b) const;

  /// Links from `from` to `to`, in the order in which data crosses them; none to oneself.
  std::vector<LinkId> route(Rank from, Rank to) const;
  /// Sum of the latencies on the route: the scale-up latency inside a domain, the network's between
  /// domains. In PCIe nodes data on its way to the network also pays the scale-up latency.
  Seconds latency(Rank from, Rank to) const;

  /// Links that routes have used so far: ids 0 .. link_count() - 1.
  int link_count() const;
  const Link& link(LinkId id) const;  ///< Stays valid when further links are added.

 private:
  struct State;
  explicit Topology(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace orrery
