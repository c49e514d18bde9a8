#include "sim/input/machine/system.hpp"

#include <filesystem>
#include <sstream>

#include "sim/base/text/catalog.hpp"
#include "sim/base/text/choice.hpp"

namespace orrery {
namespace {

std::string gigabytes(BytesPerSecond rate) {
  std::ostringstream out;
  out << rate.si() / 1e9 << " GB/s";
  return out.str();
}

int count(const JsonValue& json, int maximum) {
  return static_cast<int>(json.sourced().integer(1, maximum));
}

// A network may be slow but not absent: anything above is a slip of the unit.
Seconds latency(const JsonValue& json) {
  const JsonValue value = json.sourced();
  const Seconds seconds = value.duration();
  if (seconds > Seconds{0.1})
    value.fail("'" + value.text() + "' is not a latency of a link", "write it like \"5 us\"");
  return seconds;
}

// A path is meant from where the system's file lies, so that the two can be moved together.
std::string gpu_word(const JsonValue& json) {
  const std::string word = json.text();
  const bool is_path = word.find('/') != word.npos || word.ends_with(".json");
  if (!is_path) return word;
  const std::filesystem::path folder = std::filesystem::path{json.place().file}.parent_path();
  return (folder / word).string();
}

void check_domain(const System& system, const JsonValue& json) {
  if (system.nvlink_domain == system.gpus_per_node) return;
  const JsonValue at = json.at("nvlink_domain").at("value");
  const std::string node = std::to_string(system.gpus_per_node);
  if (system.nvlink_domain % system.gpus_per_node != 0)
    at.fail("an NVLink domain of " + std::to_string(system.nvlink_domain) +
                " GPUs is not a whole number of nodes of " + node,
            "write a multiple of " + node);
  if (system.wiring != NodeWiring::nvswitch)
    at.fail("only NVSwitch spans several nodes", "write " + node + ", or \"wiring\": \"nvswitch\"");
}

void check_scale_up(const System& system, const JsonValue& json) {
  const bool is_pcie = system.wiring == NodeWiring::pcie;
  if (!is_pcie && system.gpu.nvlink == BytesPerSecond{})
    json.at("wiring").fail("the GPU '" + system.gpu.name + "' has no NVLink",
                           "write \"pcie\", or name another GPU");
  const BytesPerSecond most = is_pcie ? system.gpu.pcie : system.gpu.nvlink;
  const JsonValue at = json.at("scale_up_bandwidth").at("value");
  if (system.scale_up > most)
    at.fail("'" + at.text() + "' is more than the " + gigabytes(most) + " that " +
                (is_pcie ? "PCIe" : "all NVLinks") + " of the GPU '" + system.gpu.name +
                "' carry in one direction",
            "bandwidths are per direction: halve a figure for both");
}

void check_nics(const System& system, const JsonValue& json) {
  const int gpus = system.gpus_per_node;
  const int nics = system.nics_per_node;
  if (gpus % nics != 0 && nics % gpus != 0)
    json.at("nics_per_node")
        .at("value")
        .fail(std::to_string(nics) + " NICs cannot be shared evenly by " + std::to_string(gpus) +
                  " GPUs",
              "count the NICs that carry GPU traffic: a divisor or a multiple of " +
                  std::to_string(gpus));
}

// NVLink SHARP came with Hopper and the NVSwitch of its time (NCCL, src/graph/tuning.cc: NVLS has
// no efficiency before compute capability 9.0).
void check_reduction(const System& system, const JsonValue& json) {
  if (system.fabric_reduction && system.fabric != FabricKind::infiniband)
    json.at("fabric_reduction").fail("only InfiniBand switches reduce", "write false");
  if (!system.in_network_reduction) return;
  const JsonValue at = json.at("in_network_reduction");
  if (system.wiring != NodeWiring::nvswitch)
    at.fail("only NVSwitch reduces in the network", "write false");
  if (system.gpu.architecture < Architecture::hopper)
    at.fail("NVSwitches reduce in the network from hopper on, but the GPU '" + system.gpu.name +
                "' is " + name(system.gpu.architecture),
            "write false");
}

}  // namespace

System parse_system(const JsonValue& json) {
  static const std::vector<std::string> wirings{"nvswitch", "nvlink_mesh", "pcie"};
  static const std::vector<std::string> fabrics{"infiniband", "ethernet"};
  // Far above what exists (8 to 16 GPUs a node, 72 to 576 a domain), to catch slips of the pen.
  constexpr int most_in_node = 1024;
  constexpr int most_in_domain = 4096;
  constexpr int most_gpus = 10'000'000;

  require_schema(json, "orrery.system/1");
  json.allow_only({"schema",
                   "name",
                   "title",
                   "gpu",
                   "gpus_per_node",
                   "nvlink_domain",
                   "wiring",
                   "scale_up_bandwidth",
                   "scale_up_latency",
                   "nics_per_node",
                   "nic_bandwidth",
                   "network_latency",
                   "network_efficiency",
                   "fabric",
                   "in_network_reduction",
                   "fabric_reduction",
                   "max_gpus",
                   "host_slowdown",
                   "host_bandwidth",
                   "nvlink_pairs",
                   "pcie_tree",
                   "fabric_shape",
                   "overrides"});
  System system;
  system.name = required_text(json, "name");
  system.title = required_text(json, "title");
  const JsonValue gpu = json.at("gpu");
  system.gpu = gpu.is_object() ? parse_gpu(gpu) : read_gpu(gpu_word(gpu), gpu.place());
  system.gpus_per_node = count(json.at("gpus_per_node"), most_in_node);
  const auto domain = json.find("nvlink_domain");
  system.nvlink_domain = domain ? count(*domain, most_in_domain) : system.gpus_per_node;
  system.wiring = choice<NodeWiring>(json.at("wiring"), wirings);
  system.scale_up = json.at("scale_up_bandwidth").sourced().bandwidth();
  system.scale_up_latency = latency(json.at("scale_up_latency"));
  system.nics_per_node = count(json.at("nics_per_node"), most_in_node);
  system.nic = json.at("nic_bandwidth").sourced().bandwidth();
  system.network_latency = latency(json.at("network_latency"));
  system.network_efficiency = json.at("network_efficiency").sourced().number(0.01, 1.0);
  system.fabric = choice<FabricKind>(json.at("fabric"), fabrics);
  const auto reduction = json.find("in_network_reduction");
  system.in_network_reduction = reduction && reduction->boolean();
  const auto in_fabric = json.find("fabric_reduction");
  system.fabric_reduction = in_fabric && in_fabric->boolean();
  if (const auto host = json.find("host_slowdown"))
    system.host_slowdown = host->sourced().number(0.1, 10.0);
  if (const auto host = json.find("host_bandwidth")) system.gpu.host = host->sourced().bandwidth();
  if (const auto most = json.find("max_gpus")) system.max_gpus = count(*most, most_gpus);

  check_domain(system, json);
  check_scale_up(system, json);
  check_nics(system, json);
  check_reduction(system, json);
  read_node_wires(json, system);
  read_fabric(json, system);
  read_overrides(json, system);
  system.document = json.with("gpu", *system.gpu.document);
  return system;
}

System read_system(const std::string& word, const Place& at) {
  return parse_system(JsonValue::read_file(find_in_catalog("topologies/systems", word, at)));
}

System filled_evenly(const System& system, int gpus) {
  System filled = system;
  if (gpus <= system.nvlink_domain || gpus % system.nvlink_domain == 0) return filled;
  for (int used = system.nvlink_domain - system.gpus_per_node; 2 * used > system.nvlink_domain;
       used -= system.gpus_per_node)
    if (gpus % used == 0) {
      filled.nvlink_domain = used;
      return filled;
    }
  return filled;
}

}  // namespace orrery
