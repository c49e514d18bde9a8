#pragma once

#include <string>

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

}  // namespace orrery
