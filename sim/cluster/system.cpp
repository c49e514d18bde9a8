#include "sim/cluster/system.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "sim/core/catalog.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

std::vector<std::string> with_peaks(std::vector<std::string> keys,
                                    const std::vector<std::string>& others) {
  for (const PeakKey& peak : peak_keys) keys.emplace_back(peak.key);
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

}  // namespace

const std::vector<std::string>& figures_of_a_machine() {
  static const std::vector<std::string> keys = with_peaks(
      {},
      {// A GPU.
       "memory_bandwidth", "memory", "multiprocessors", "nvlink_bandwidth", "pcie_bandwidth",
       "host_bandwidth", "power",
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
       "bandwidth", "latency", "speed"});
  return keys;
}

namespace {

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
    at.fail("'" + at.text() + "' is more than the " + rate_text(most) + " that " +
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

// Far above what exists (8 to 16 GPUs a node, 72 to 576 a domain), to catch slips of the pen.
constexpr int most_in_node = 1024;
constexpr int most_in_domain = 4096;
constexpr int most_gpus = 10'000'000;

const std::vector<std::string>& keys_of_a_system() {
  static const std::vector<std::string> keys{"schema",
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
                                             "overrides"};
  return keys;
}

void read_node(ObjectReader& reader, System& system) {
  static const std::vector<std::string> wirings{"nvswitch", "nvlink_mesh", "pcie"};
  reader.required("gpus_per_node",
                  [&](const JsonValue& gpus) { system.gpus_per_node = count(gpus, most_in_node); });
  system.nvlink_domain = system.gpus_per_node;
  reader.optional("nvlink_domain", [&](const JsonValue& domain) {
    system.nvlink_domain = count(domain, most_in_domain);
  });
  reader.required("wiring", [&](const JsonValue& wiring) {
    system.wiring = choice<NodeWiring>(wiring, wirings);
  });
  reader.required("scale_up_bandwidth", [&](const JsonValue& bandwidth) {
    system.scale_up = bandwidth.sourced().bandwidth();
  });
  reader.required("scale_up_latency",
                  [&](const JsonValue& seconds) { system.scale_up_latency = latency(seconds); });
  reader.optional("in_network_reduction", [&](const JsonValue& reduces) {
    system.in_network_reduction = reduces.boolean();
  });
}

void read_network(ObjectReader& reader, System& system) {
  static const std::vector<std::string> fabrics{"infiniband", "ethernet"};
  reader.required("nics_per_node",
                  [&](const JsonValue& nics) { system.nics_per_node = count(nics, most_in_node); });
  reader.required("nic_bandwidth",
                  [&](const JsonValue& nic) { system.nic = nic.sourced().bandwidth(); });
  reader.required("network_latency",
                  [&](const JsonValue& seconds) { system.network_latency = latency(seconds); });
  reader.required("network_efficiency", [&](const JsonValue& share) {
    system.network_efficiency = share.sourced().number(0.01, 1.0);
  });
  reader.required("fabric", [&](const JsonValue& fabric) {
    system.fabric = choice<FabricKind>(fabric, fabrics);
  });
  reader.optional("fabric_reduction",
                  [&](const JsonValue& reduces) { system.fabric_reduction = reduces.boolean(); });
}

}  // namespace

System parse_system(const JsonValue& written) {
  require_schema(written, "orrery.system/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  ObjectReader reader{json, keys_of_a_system()};
  System system;
  reader.required("name", [&](const JsonValue&) { system.name = required_text(json, "name"); });
  reader.required("title", [&](const JsonValue&) { system.title = required_text(json, "title"); });
  reader.required("gpu", [&](const JsonValue& gpu) {
    system.gpu = gpu.is_object() ? parse_gpu(gpu) : read_gpu(gpu_word(gpu), gpu.place());
  });
  read_node(reader, system);
  read_network(reader, system);
  reader.optional("host_slowdown", [&](const JsonValue& host) {
    system.host_slowdown = host.sourced().number(0.1, 10.0);
  });
  reader.optional("host_bandwidth",
                  [&](const JsonValue& host) { system.gpu.host = host.sourced().bandwidth(); });
  reader.optional("max_gpus",
                  [&](const JsonValue& most) { system.max_gpus = count(most, most_gpus); });

  const bool has_values = reader.is_sound();
  // What values say together is judged where those are known.
  const bool has_nics = system.gpus_per_node > 0 && system.nics_per_node > 0 &&
                        system.nic > BytesPerSecond{} &&
                        reader.attempt([&] { check_nics(system, json); });
  if (has_nics) reader.attempt([&] { read_fabric(json, system); });
  if (has_values) {
    reader.attempt([&] {  // One wiring: its first contradiction may be the reason for the next.
      check_domain(system, json);
      check_scale_up(system, json);
      check_reduction(system, json);
    });
    if (has_nics) reader.attempt([&] { read_node_wires(json, system); });
  }
  reader.check([&] { read_overrides(json, system); });
  reader.raise();
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

namespace {

const std::vector<std::string>& architecture_names() {
  static const std::vector<std::string> names{"volta", "ampere", "ada", "hopper", "blackwell"};
  return names;
}

// Power is no quantity of the simulation (nothing is computed from it yet), so it has no type.
double watts(const JsonValue& json) {
  // A whole NVL72 rack takes about 120 kW: no single GPU comes near it.
  constexpr double most = 100e3;
  const std::string text = json.text();
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit{rest, text.data() + text.size()};
  if (error != std::errc{} || !(value > 0.0 && value <= most) || (unit != " W" && unit != "W"))
    json.fail("'" + text.substr(0, 60) + "' is not a power", "write it like \"400 W\"");
  return value;
}

constexpr double usual_share_of_pcie = 0.8;

}  // namespace

const std::string& name(Architecture architecture) {
  return architecture_names()[static_cast<std::size_t>(architecture)];
}

MaybeRefused Gpu::lacks(Dtype dtype) const {
  const NumberFormat& format = facts(dtype);
  if (architecture >= format.since && this->*format.peak > FlopPerSecond{}) return {};
  std::string remedy;
  if (is_wide(dtype)) {
    const auto own = std::find_if(peak_keys.begin(), peak_keys.end(),
                                  [&](const PeakKey& peak) { return peak.peak == format.peak; });
    remedy = "use fp32, or add " + std::string{own->key} + " to its file";
  } else if (is_narrow(dtype) && dtype != Dtype::fp8 && !lacks(Dtype::fp8)) {
    remedy = "use fp8";
  } else {
    remedy = architecture < facts(Dtype::bf16).since ? "use fp16" : "use bf16 or fp16";
  }
  return infeasible("dtype", "the GPU '" + name + "' has no " + orrery::name(dtype) + " units",
                    remedy);
}

FlopPerSecond Gpu::peak(Dtype dtype, const Place& at) const {
  if (const auto no = lacks(dtype)) fail_infeasible(at, no->problem, no->remedy);
  return this->*facts(dtype).peak;
}

Gpu parse_gpu(const JsonValue& written) {
  require_schema(written, "orrery.gpu/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  ObjectReader reader{
      json, with_peaks({"schema", "name", "title", "architecture"},
                       {"memory_bandwidth", "memory", "multiprocessors", "nvlink_bandwidth",
                        "pcie_bandwidth", "host_bandwidth", "power"})};
  Gpu gpu;
  const auto bandwidth = [](BytesPerSecond& into) {
    return [&into](const JsonValue& value) { into = value.sourced().bandwidth(); };
  };
  reader.required("name", [&](const JsonValue&) { gpu.name = required_text(json, "name"); });
  reader.required("title", [&](const JsonValue&) { gpu.title = required_text(json, "title"); });
  reader.required("architecture", [&](const JsonValue& word) {
    gpu.architecture = choice<Architecture>(word, architecture_names());
  });
  for (const PeakKey& peak : peak_keys) {
    const auto read = [&](const JsonValue& value) { gpu.*peak.peak = value.sourced().flop_rate(); };
    const std::string key{peak.key};
    peak.in_all ? reader.required(key, read) : reader.optional(key, read);
  }
  reader.required("memory_bandwidth", bandwidth(gpu.memory_bandwidth));
  reader.required("memory", [&](const JsonValue& value) {
    const JsonValue memory = value.sourced();
    gpu.memory = memory.bytes();
    if (gpu.memory == Bytes{}) memory.fail("a GPU without memory", "write it like \"80 GiB\"");
  });
  // Ten times what any GPU has; a larger number counts cores, not multiprocessors.
  reader.required("multiprocessors", [&](const JsonValue& value) {
    gpu.multiprocessors = static_cast<int>(value.sourced().integer(1, 2000));
  });
  reader.optional("nvlink_bandwidth", bandwidth(gpu.nvlink));
  reader.required("pcie_bandwidth", bandwidth(gpu.pcie));
  gpu.host = usual_share_of_pcie * gpu.pcie;
  reader.optional("host_bandwidth", bandwidth(gpu.host));
  reader.required("power", [&](const JsonValue& value) { gpu.watts = watts(value.sourced()); });
  reader.raise();
  gpu.document = json;
  return gpu;
}

Gpu read_gpu(const std::string& word, const Place& at) {
  return parse_gpu(JsonValue::read_file(find_in_catalog("topologies/gpus", word, at)));
}

}  // namespace orrery
