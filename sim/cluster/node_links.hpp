#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

struct System;

/// All NVLinks between two GPUs of a node, each way.
struct NvlinkPair {
  int first = 0;
  int second = 0;
  BytesPerSecond bandwidth;
};

/// A PCIe switch, or (without a parent) the root complex of a CPU socket.
struct PcieBranch {
  std::string name;
  int parent = -1;           ///< Index into PcieTree::branches; -1: a socket.
  BytesPerSecond bandwidth;  ///< Bandwidth to the parent, each way.
};

/// The PCIe topology of a node. Empty: each GPU has a free path to its own NIC.
struct PcieTree {
  std::vector<PcieBranch> branches;
  std::vector<int> gpus;       ///< The branch that each GPU is on.
  std::vector<int> nics;       ///< The same for each NIC, numbered as in routes.
  BytesPerSecond socket_link;  ///< Each way between any two sockets; 0: there is one socket.

  bool empty() const { return branches.empty(); }
};

/// Reads "nvlink_pairs" and "pcie_tree" into `system`, whose counts are known. Errors (bad_input):
/// pairs of GPUs that do not exist, given twice or together faster than the GPU's NVLinks; branches
/// without a parent or under themselves; lists whose lengths contradict the counts.
void read_node_wires(const JsonValue& system_json, System& system);

}  // namespace orrery
