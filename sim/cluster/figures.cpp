#include "sim/cluster/figures.hpp"

namespace orrery {

const std::vector<std::string>& figures_of_a_machine() {
  static const std::vector<std::string> keys{
      // A GPU.
      "peak_16bit", "peak_fp8", "peak_fp4", "peak_tf32", "peak_fp32", "memory_bandwidth", "memory",
      "multiprocessors", "nvlink_bandwidth", "pcie_bandwidth", "host_bandwidth", "power",
      // A node.
      "gpus_per_node", "nvlink_domain", "scale_up_bandwidth", "scale_up_latency", "host_slowdown",
      "socket_bandwidth",
      // The network.
      "nics_per_node", "nic_bandwidth", "network_latency", "network_efficiency", "max_gpus",
      // The switches between NICs.
      "nodes_per_leaf", "nodes_per_pod", "leaves_per_pod", "spines_per_pod", "spines", "cores",
      "oversubscription", "uplink_bandwidth", "core_oversubscription", "core_uplink_bandwidth",
      "switch_latency", "nodes_per_router", "routers_per_group", "groups",
      "global_links_per_router", "local_bandwidth", "global_bandwidth",
      // A wire, and what overrides say.
      "bandwidth", "latency", "speed"};
  return keys;
}

}  // namespace orrery
