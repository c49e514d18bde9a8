#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/fabric.hpp"
#include "sim/cluster/network.hpp"
#include "sim/cluster/node_links.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// Keys of a system, a GPU and a fabric whose value is a figure with a source; a plain number is
/// the user's own.
const std::vector<std::string>& figures_of_a_machine();

/// One kind of GPU, from topologies/gpus. Speeds are dense peaks; bandwidths are per direction.
struct Gpu : Peaks {
  std::string name;   ///< Catalog name: "a100-sxm-80gb".
  std::string title;  ///< The maker's name.
  Architecture architecture = Architecture::ampere;
  BytesPerSecond memory_bandwidth;
  Bytes memory;
  int multiprocessors = 0;
  BytesPerSecond nvlink;  ///< All links of one GPU together; 0: has none.
  BytesPerSecond pcie;
  /// Bandwidth to the host's memory, each way. The default is most of PCIe's: packets of 256 bytes
  /// have headers of 24 to 28 (PCI Express Base Specification 5.0), and some 50 of 64 GB/s are
  /// seen.
  BytesPerSecond host;
  double watts = 0.0;
  std::optional<JsonValue> document;  ///< The source document.

  /// Refuses a format that the GPU does not multiply, as `dtype`.
  MaybeRefused lacks(Dtype dtype) const;
  /// Peak of `dtype`. Errors: the GPU has no such units (infeasible, at `at`).
  FlopPerSecond peak(Dtype dtype, const Place& at) const;
};

enum class NodeWiring { nvswitch, nvlink_mesh, pcie };  ///< Connection of the GPUs of a node.
template <>
inline const std::vector<std::string> enum_words<NodeWiring>{"nvswitch", "nvlink_mesh", "pcie"};

struct Calibration;

/// A cluster's description: one node, and the network between nodes. Bandwidths per direction.
struct System {
  std::string name;
  std::string title;
  Gpu gpu;
  int gpus_per_node = 8;
  /// GPUs that reach each other at `scale_up` speed: over NVLink (72 in an NVL72 rack), or over the
  /// PCIe of one node. A whole number of nodes.
  int nvlink_domain = 8;
  int idle_of_domain = 0;  ///< GPUs of each domain that the job leaves idle: filled_evenly().
  NodeWiring wiring = NodeWiring::nvswitch;
  BytesPerSecond scale_up;  ///< One GPU's bandwidth to the others of its domain.
  Seconds scale_up_latency;
  int nics_per_node = 8;
  BytesPerSecond nic;               ///< One NIC's line rate.
  Seconds network_latency;          ///< NIC to NIC through an idle fabric.
  Seconds network_chunk_latency;    ///< NetworkKind::chunk_latency.
  double network_efficiency = 1.0;  ///< Payload over line rate: coding, headers, congestion margin.
  NetworkKind network;              ///< Its kind: the default of those above.
  double host_slowdown = 1.0;       ///< Slowdown of ExpertLayerHost relative to an x86 host.
  Bytes host_memory;                ///< Of all CPUs of a node; 0: unknown.
  BytesPerSecond host_memory_bandwidth;  ///< Likewise, as their data sheets have it.
  bool in_network_reduction = false;     ///< NVLink SHARP inside the domain.
  bool fabric_reduction = false;         ///< SHARP in the switches of the fabric: NCCL's CollNet.
  int max_gpus = 0;                      ///< Size of the machine that exists; 0: unlimited.
  std::string
      provider;  ///< The cloud that rents such machines out and does not sell them; "": none.

  std::vector<NvlinkPair> nvlink_pairs;  ///< Empty: every GPU reaches every other at `scale_up`.
  PcieTree pcie_tree;
  FabricShape shape;
  std::vector<LinkOverride> link_overrides;
  std::vector<GpuOverride> gpu_overrides;

  /// Measurements on it (calibrate() of sim/measurements/calibration.hpp); null: none.
  std::shared_ptr<const Calibration> calibration;

  std::optional<JsonValue> document;  ///< The source document, with the GPU's inlined.

  /// Line rate of one GPU's network traffic while `members` GPUs of its NVLink domain send, evenly
  /// spread over the NICs. A GPU sends by the NICs nearest to it, at least one; GPUs that have the
  /// same NIC share it.
  BytesPerSecond network_rate(int members) const;

  /// Rate of the NVLink bridge between two GPUs of a PCIe node; 0: none.
  BytesPerSecond bridge(int gpu, int other) const;

  /// True if both have the same GPUs in the same wiring; if their nodes have the same network: what
  /// was measured inside a domain, or between domains, of one holds for both.
  bool same_domain(const System& other) const;
  bool same_network(const System& other) const;

  /// True if each group of `ranks` consecutive GPUs of a job of `gpus` lies in one NVLink domain.
  bool domains_hold_groups(std::int64_t ranks, std::int64_t gpus) const {
    return gpus <= nvlink_domain || nvlink_domain % ranks == 0;
  }

  /// GPUs that are sold together: an NVLink domain, or a node.
  int sold_together() const { return nvlink_domain + idle_of_domain; }
  /// True if all nodes, GPUs and NICs are equivalent, so that one may represent all. False as soon
  /// as a wire other than the GPU's own can fill up or something runs at another speed.
  bool uniform() const {
    return shape.layout == FabricLayout::single_switch && nvlink_pairs.empty() &&
           pcie_tree.empty() && link_overrides.empty() && gpu_overrides.empty();
  }
};

/// A latency of a link in a file. Errors (bad_input): no time, more than a tenth of a second.
Seconds link_latency(const JsonValue& value);

/// `word`: a name in topologies/gpus or topologies/systems, or a path.
Gpu read_gpu(const std::string& word, const Place& at);
System read_system(const std::string& word, const Place& at);

/// The same from a parsed document (topologies/README.md has both schemas). A system names its GPU
/// by catalog name or by a path relative to the system's own file, or holds it whole. Errors
/// (bad_input): unknown or missing keys, numbers without a source or out of range, and values that
/// contradict each other, such as NVLink wiring of GPUs without NVLink.
Gpu parse_gpu(const JsonValue& json);
System parse_system(const JsonValue& json);

/// The part of `system` that a job of `gpus` GPUs gets if NVLink domains have several nodes:
/// equally many nodes of each domain, as schedulers allot them (Slurm's --segment), so that 256
/// GPUs lie on four domains of 72 as 4 x 64 and not as 72, 72, 72 and 40. Unchanged if gpus divides
/// into whole domains, fits in one, or no number of nodes over half a domain divides it.
System filled_evenly(const System& system, int gpus);
/// The GPUs of a domain that such a job uses.
int used_of_domain(const System& system, int gpus);

}  // namespace orrery
