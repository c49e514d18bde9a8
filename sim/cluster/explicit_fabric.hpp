#pragma once

#include <optional>
#include <string>

#include "sim/cluster/system.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// "node3.gpu1" with `member` "gpu": node 3 and the rest, "gpu1". Nothing for other words.
struct NodeMember {
  int node = 0;
  std::string member;
};
std::optional<NodeMember> parse_node_member(const std::string& word);

/// A fabric of "switches" and "links". A link that ends at "node0.nic3" plugs that NIC in; every
/// NIC of nodes 0, 1, ... must be plugged in once.
void read_explicit_fabric(const JsonValue& json, System& system);

}  // namespace orrery
