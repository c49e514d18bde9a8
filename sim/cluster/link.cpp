#include "sim/cluster/link.hpp"

#include <array>

namespace orrery {

const std::string& cable_name(LinkKind kind) {
  static const std::array<std::string, 15> names{
      "nvlink",     "nvlink",     "pcie",       "pcie",  "nic",    "nic",    "socket", "leaf-spine",
      "leaf-spine", "spine-core", "spine-core", "local", "global", "switch", "port"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace orrery
