#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

struct System;

enum class FabricLayout {
  single_switch,   ///< One non-blocking switch: only NICs limit.
  leaf_spine,      ///< All NICs of a node on one leaf.
  rail_optimized,  ///< NIC i of the nodes of a pod on leaf i of the pod.
  fat_tree,        ///< Leaves, spines of a pod, cores.
  dragonfly,       ///< Groups of routers, all joined to all in a group and between groups.
  explicit_links   ///< Every wire is listed.
};
template <>
inline const std::vector<std::string> enum_words<FabricLayout>{
    "single_switch", "leaf_spine", "rail_optimized", "fat_tree", "dragonfly", "explicit"};

/// One wire of an explicit fabric, both directions. Ends are switches.
struct FabricLink {
  std::string from;
  std::string to;
  BytesPerSecond bandwidth;
  Seconds latency;
};

/// The NIC of an explicit fabric and the switch that it is plugged into.
struct FabricPort {
  int node = 0;
  int nic = 0;        ///< Numbered as in nics_in_routes().
  int at_switch = 0;  ///< Index into FabricShape::switches.
};

/// The switches between the NICs. Bandwidths are line rates, per direction, of all cables between
/// one pair of switches together: those count as one link. Members that the layout does not use are
/// 0.
struct FabricShape {
  FabricLayout layout = FabricLayout::single_switch;
  std::uint64_t ecmp_seed = 0;
  /// Latency of each switch after the first, on top of System::network_latency.
  Seconds switch_latency;

  /// Nodes that share a leaf (leaf_spine, fat_tree), a row of rail leaves (rail_optimized, and
  /// fat_tree with `rails`) or a router (dragonfly).
  int nodes_per_leaf = 0;
  bool rails = false;      ///< NIC i of such a group of nodes is on leaf i of its row.
  int spines = 0;          ///< Number in the whole fabric; per pod in a fat_tree.
  int leaves_per_pod = 0;  ///< fat_tree. With `rails` a pod holds one rail's leaf of so many rows.
  int cores = 0;           ///< fat_tree.
  BytesPerSecond uplink;   ///< One leaf to one spine.
  BytesPerSecond core_uplink;  ///< One spine to one of its cores.

  int routers_per_group = 0;  ///< dragonfly, as are the next three.
  int groups = 0;
  int global_links = 0;  ///< Number per router.
  BytesPerSecond local_link;
  BytesPerSecond global_link;

  std::vector<std::string> switches;  ///< explicit_links, as are the next two.
  std::vector<FabricLink> links;
  std::vector<FabricPort> ports;  ///< Node by node, NIC by NIC: index node x nics_in_routes + nic.
};

/// NICs of a node in routes: several that serve one GPU count as one.
int nics_in_routes(const System& system);
/// Their names: "nic3", or "nic3x4" for four NICs that count as one.
std::string nic_name(const System& system, int nic);

/// Groups of cores: spine j of a pod reaches the cores c with c mod groups = j mod groups. With k/2
/// spines a pod and (k/2)^2 cores that is the fat tree of Al-Fares et al., SIGCOMM 2008.
int core_groups(const FabricShape& shape);

/// A deviation of a wire or a GPU from the system's plan.
struct LinkOverride {
  Place place;       ///< Place of the name, for errors found later.
  std::string link;  ///< "node3.nic0", "leaf2-spine1": both directions; or one: "node3.nic0.up".
  bool down = false;
  BytesPerSecond bandwidth{};  ///< Line rate instead; 0: as before.
  Seconds extra_latency{};
};
struct GpuOverride {
  int node = 0;
  int gpu = 0;
  double speed = 1.0;  ///< 0.8: takes 1 / 0.8 of the time.
};

/// Reads "fabric_shape" and "overrides" into `system`, whose counts and NICs are known. A fabric of
/// limited size sets System::max_gpus if it is 0. Errors (bad_input): unknown layouts and keys,
/// counts that contradict each other, unknown NICs, switches or GPUs.
void read_fabric(const JsonValue& system_json, System& system);
void read_overrides(const JsonValue& system_json, System& system);

/// "node3.gpu1" with `member` "gpu": node 3 and the rest, "gpu1". nullopt for other words.
struct NodeMember {
  int node = 0;
  std::string member;
};
std::optional<NodeMember> parse_node_member(const std::string& word);

/// A fabric of "switches" and "links". A link that ends at "node0.nic3" plugs that NIC in; every
/// NIC of nodes 0, 1, ... must be plugged in once.
void read_explicit_fabric(const JsonValue& json, System& system);

}  // namespace orrery
