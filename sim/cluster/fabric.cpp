#include "sim/cluster/fabric.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/cluster/explicit_fabric.hpp"
#include "sim/cluster/system.hpp"
#include "sim/core/choice.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

// Far above what is built (64 to 1024 ports a switch, a few thousand switches), to catch slips.
constexpr int most_of_a_kind = 65'536;

void read_count(ObjectReader& reader, const std::string& key, int& into) {
  reader.required(key, [&](const JsonValue& value) {
    into = static_cast<int>(value.sourced().integer(1, most_of_a_kind));
  });
}

Seconds hop_latency(const JsonValue& json) {
  const JsonValue value = json.sourced();
  const Seconds seconds = value.duration();
  if (seconds > Seconds{0.001})
    value.fail("'" + value.text() + "' is not a latency of a switch", "write it like \"0.2 us\"");
  return seconds;
}

// One link of `links` that carry together what comes from below, less the oversubscription; or the
// bandwidth as it is written.
BytesPerSecond uplink(const JsonValue& json, const std::string& prefix, BytesPerSecond below,
                      int links) {
  const std::string ratio_key = prefix + "oversubscription";
  const std::string bandwidth_key = prefix + "uplink_bandwidth";
  const auto ratio = json.find(ratio_key);
  const auto bandwidth = json.find(bandwidth_key);
  if (ratio && bandwidth)
    bandwidth->fail("contradicts " + ratio_key + ", which says the same in another way",
                    "leave one of the two out");
  if (bandwidth) return bandwidth->sourced().bandwidth();
  if (!ratio)
    json.fail("the speed of the uplinks is missing",
              "add \"" + ratio_key + "\" (2 for 2:1) or \"" + bandwidth_key + "\"");
  return below / (ratio->sourced().number(0.01, 1000.0) * links);
}

// What the NICs of a full leaf bring.
BytesPerSecond leaf_input(const FabricShape& shape, const System& system) {
  const int per_node =
      shape.rails ? system.nics_per_node / nics_in_routes(system) : system.nics_per_node;
  return static_cast<double>(shape.nodes_per_leaf * per_node) * system.nic;
}

const std::vector<std::string> common_keys{"kind", "ecmp_seed", "switch_latency"};

ObjectReader reader_of(const JsonValue& json, std::vector<std::string> keys) {
  keys.insert(keys.end(), common_keys.begin(), common_keys.end());
  return {json, keys};
}

void read_leaf_spine(const JsonValue& json, const System& system, FabricShape& shape) {
  shape.rails = shape.layout == FabricLayout::rail_optimized;
  const std::string nodes = shape.rails ? "nodes_per_pod" : "nodes_per_leaf";
  ObjectReader reader = reader_of(json, {nodes, "spines", "oversubscription", "uplink_bandwidth"});
  read_count(reader, nodes, shape.nodes_per_leaf);
  read_count(reader, "spines", shape.spines);
  reader.check([&] { shape.uplink = uplink(json, "", leaf_input(shape, system), shape.spines); });
  reader.raise();
}

void read_fat_tree(const JsonValue& json, const System& system, FabricShape& shape) {
  ObjectReader reader =
      reader_of(json, {"nodes_per_leaf", "rails", "leaves_per_pod", "spines_per_pod", "cores",
                       "oversubscription", "uplink_bandwidth", "core_oversubscription",
                       "core_uplink_bandwidth"});
  reader.optional("rails", [&](const JsonValue& rails) { shape.rails = rails.boolean(); });
  read_count(reader, "nodes_per_leaf", shape.nodes_per_leaf);
  read_count(reader, "leaves_per_pod", shape.leaves_per_pod);
  read_count(reader, "spines_per_pod", shape.spines);
  read_count(reader, "cores", shape.cores);
  reader.raise();
  shape.uplink = uplink(json, "", leaf_input(shape, system), shape.spines);
  const int cores_of_a_spine = shape.cores / core_groups(shape);
  const BytesPerSecond into_spine = static_cast<double>(shape.leaves_per_pod) * shape.uplink;
  shape.core_uplink = uplink(json, "core_", into_spine, cores_of_a_spine);
}

void read_dragonfly(const JsonValue& json, FabricShape& shape) {
  ObjectReader reader =
      reader_of(json, {"nodes_per_router", "routers_per_group", "groups", "global_links_per_router",
                       "local_bandwidth", "global_bandwidth"});
  read_count(reader, "nodes_per_router", shape.nodes_per_leaf);
  read_count(reader, "routers_per_group", shape.routers_per_group);
  read_count(reader, "groups", shape.groups);
  reader.required("local_bandwidth",
                  [&](const JsonValue& value) { shape.local_link = value.sourced().bandwidth(); });
  if (shape.groups != 1) {
    read_count(reader, "global_links_per_router", shape.global_links);
    reader.required("global_bandwidth", [&](const JsonValue& value) {
      shape.global_link = value.sourced().bandwidth();
    });
  }
  reader.raise();
  if (shape.groups == 1) return;
  const std::int64_t ports = std::int64_t{shape.routers_per_group} * shape.global_links;
  if (ports > most_of_a_kind)
    json.fail("a group has " + std::to_string(ports) + " global links",
              "let routers_per_group x global_links_per_router be at most " +
                  std::to_string(most_of_a_kind));
  if (ports % (shape.groups - 1) != 0)
    json.at("global_links_per_router")
        .at("value")
        .fail(std::to_string(ports) + " global links of a group do not go evenly to " +
                  std::to_string(shape.groups - 1) + " other groups",
              "let routers_per_group x global_links_per_router be a multiple of groups - 1");
}

void limit_size(const JsonValue& json, System& system) {
  const FabricShape& shape = system.shape;
  std::int64_t nodes = 0;
  if (shape.layout == FabricLayout::dragonfly)
    nodes = std::int64_t{shape.nodes_per_leaf} * shape.routers_per_group * shape.groups;
  else if (shape.layout == FabricLayout::explicit_links)
    nodes = static_cast<std::int64_t>(shape.ports.size()) / nics_in_routes(system);
  else
    return;
  const std::int64_t gpus = nodes * system.gpus_per_node;
  if (gpus > 10'000'000)
    json.fail("this fabric holds " + std::to_string(gpus) + " GPUs",
              "write one of at most 10,000,000");
  if (system.max_gpus > gpus)
    json.fail("this fabric holds " + std::to_string(gpus) + " GPUs, but max_gpus says " +
                  std::to_string(system.max_gpus),
              "let max_gpus be at most " + std::to_string(gpus));
  if (system.max_gpus == 0) system.max_gpus = static_cast<int>(gpus);
}

}  // namespace

const std::vector<std::string>& fabric_layout_names() {
  static const std::vector<std::string> names{"single_switch", "leaf_spine", "rail_optimized",
                                              "fat_tree",      "dragonfly",  "explicit"};
  return names;
}

int nics_in_routes(const System& system) {
  return std::min(system.nics_per_node, system.gpus_per_node);
}

std::string nic_name(const System& system, int nic) {
  const int together = system.nics_per_node / nics_in_routes(system);
  return "nic" + std::to_string(nic) + (together > 1 ? "x" + std::to_string(together) : "");
}

int core_groups(const FabricShape& shape) { return std::gcd(shape.spines, shape.cores); }

void read_fabric(const JsonValue& system_json, System& system) {
  const auto found = system_json.find("fabric_shape");
  if (!found) return;
  const JsonValue& json = *found;
  FabricShape& shape = system.shape;
  shape.layout = choice<FabricLayout>(json.at("kind"), fabric_layout_names());
  if (shape.layout == FabricLayout::single_switch) {
    json.allow_only({"kind"});
    return;
  }
  if (const auto seed = json.find("ecmp_seed"))
    shape.ecmp_seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int32_t>::max()));
  switch (shape.layout) {
    case FabricLayout::single_switch:
      break;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      read_leaf_spine(json, system, shape);
      break;
    case FabricLayout::fat_tree:
      read_fat_tree(json, system, shape);
      break;
    case FabricLayout::dragonfly:
      read_dragonfly(json, shape);
      break;
    case FabricLayout::explicit_links:
      read_explicit_fabric(json, system);
      break;
  }
  if (shape.layout != FabricLayout::explicit_links)
    shape.switch_latency = hop_latency(json.at("switch_latency"));
  limit_size(json, system);
}

}  // namespace orrery
