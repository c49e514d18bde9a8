#include "sim/cluster/system.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {

// A network may be slow but not absent: anything above is a slip of the unit.
Seconds link_latency(const JsonValue& value) {
  const Seconds seconds = value.duration();
  if (seconds > Seconds{0.1})
    value.fail("'" + value.text() + "' is not a latency of a link", "write it like \"5 us\"");
  return seconds;
}

namespace {

// A path is relative to the system's file, so that the two can be moved together.
std::string word_or_path(const JsonValue& json) {
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
  if (system.fabric_reduction && system.network.technology != NetworkTechnology::infiniband)
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

// Far above real systems (8 to 16 GPUs a node, 72 to 576 a domain), to catch slips of the pen.
constexpr int most_in_node = 1024;
constexpr int most_in_domain = 4096;
constexpr int most_gpus = 10'000'000;

std::vector<Field<System>> system_keys() {
  using S = System;
  const auto latencies = quantity(link_latency);
  const auto bandwidth = quantity(&JsonValue::bandwidth);
  return {
      field("name", &S::name, some_text("name")),
      field("title", &S::title, some_text("title")),
      {"gpu",
       [](S& system, const JsonValue& gpu) {
         system.gpu = gpu.is_object() ? parse_gpu(gpu) : read_gpu(word_or_path(gpu), gpu.place());
       }},
      figure("gpus_per_node", &S::gpus_per_node, whole(1, most_in_node)),
      optional(figure("nvlink_domain", &S::nvlink_domain, whole(1, most_in_domain))),
      field("wiring", &S::wiring, one_of<NodeWiring>()),
      figure("scale_up_bandwidth", &S::scale_up, bandwidth),
      figure("scale_up_latency", &S::scale_up_latency, latencies),
      figure("nics_per_node", &S::nics_per_node, whole(1, most_in_node)),
      figure("nic_bandwidth", &S::nic, bandwidth),
      {"fabric",
       [](S& system, const JsonValue& network) {
         system.network = network.is_object()
                              ? parse_network(network)
                              : read_network(word_or_path(network), network.place());
       }},
      optional(figure("network_latency", &S::network_latency, latencies)),
      optional(figure("network_chunk_latency", &S::network_chunk_latency, latencies)),
      optional(figure("network_efficiency", &S::network_efficiency, real(0.01, 1.0))),
      optional(field("in_network_reduction", &S::in_network_reduction, truth())),
      optional(field("fabric_reduction", &S::fabric_reduction, truth())),
      optional(figure("max_gpus", &S::max_gpus, whole(1, most_gpus))),
      optional(field("provider", &S::provider, some_text("provider"))),
      optional(figure("host_slowdown", &S::host_slowdown, real(0.1, 10.0))),
      optional(figure("host_memory", &S::host_memory, quantity(&JsonValue::bytes))),
      optional(figure("host_memory_bandwidth", &S::host_memory_bandwidth, bandwidth)),
      optional(within(&S::gpu, figure("host_bandwidth", &Gpu::host, bandwidth))),
  };
}

}  // namespace

System parse_system(const JsonValue& written) {
  require_schema(written, "orrery.system/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  static const std::vector<Field<System>> fields = system_keys();
  System system;
  ObjectReader reader = read_fields_of(
      json, fields, system, {"schema", "nvlink_pairs", "pcie_tree", "fabric_shape", "overrides"});
  if (!json.has("nvlink_domain")) system.nvlink_domain = system.gpus_per_node;
  if (!json.has("network_efficiency")) system.network_efficiency = system.network.efficiency;
  if (!json.has("network_latency")) system.network_latency = system.network.latency;
  if (!json.has("network_chunk_latency"))
    system.network_chunk_latency = system.network.chunk_latency;

  const bool has_values = reader.is_sound();
  // Constraints between values are checked if these are known.
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
  // A described fabric adds the switches behind the first.
  if (!json.has("network_latency") && system.shape.layout != FabricLayout::single_switch)
    system.network_latency = system.network_latency - 2.0 * system.network.switch_latency;
  system.document = json.with("gpu", *system.gpu.document).with("fabric", *system.network.document);
  return system;
}

System read_system(const std::string& word, const Place& at) {
  const std::string path = find_in_catalog("topologies/systems", word, at);
  return parse_system(carried_or_self(JsonValue::read_file(path), "systems"));
}

BytesPerSecond System::bridge(int one, int other) const {
  if (wiring != NodeWiring::pcie) return {};
  for (const NvlinkPair& pair : nvlink_pairs)
    if (pair.first == std::min(one, other) && pair.second == std::max(one, other))
      return pair.bandwidth;
  return {};
}

bool System::same_domain(const System& other) const {
  return gpu.name == other.gpu.name && gpus_per_node == other.gpus_per_node &&
         wiring == other.wiring && scale_up == other.scale_up &&
         scale_up_latency == other.scale_up_latency &&
         in_network_reduction == other.in_network_reduction;
}

bool System::same_network(const System& other) const {
  return nics_per_node == other.nics_per_node && nic == other.nic &&
         network_latency == other.network_latency &&
         network_chunk_latency == other.network_chunk_latency &&
         network_efficiency == other.network_efficiency;
}

BytesPerSecond System::network_rate(int members) const {
  const double nics_of_gpu = static_cast<double>(nics_per_node) / gpus_per_node;
  return std::min(std::max(1.0, nics_of_gpu), nics_of_gpu * nvlink_domain / members) * nic;
}

int used_of_domain(const System& system, int gpus) {
  if (gpus <= system.nvlink_domain || gpus % system.nvlink_domain == 0) return system.nvlink_domain;
  for (int used = system.nvlink_domain - system.gpus_per_node; 2 * used > system.nvlink_domain;
       used -= system.gpus_per_node)
    if (gpus % used == 0) return used;
  return system.nvlink_domain;
}

System filled_evenly(const System& system, int gpus) {
  System filled = system;
  filled.nvlink_domain = used_of_domain(system, gpus);
  filled.idle_of_domain += system.nvlink_domain - filled.nvlink_domain;
  return filled;
}

namespace {

// Power has no type of its own, as nothing is computed from it here.
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

namespace {

std::vector<Field<Gpu>> gpu_keys() {
  using G = Gpu;
  const auto rate = quantity(&JsonValue::flop_rate);
  const auto bandwidth = quantity(&JsonValue::bandwidth);
  const auto memory = quantity([](const JsonValue& v) {
    if (v.bytes() == Bytes{}) v.fail("a GPU without memory", "write it like \"80 GiB\"");
    return v.bytes();
  });
  std::vector<Field<Gpu>> fields{field("name", &G::name, some_text("name")),
                                 field("title", &G::title, some_text("title")),
                                 field("architecture", &G::architecture, one_of<Architecture>())};
  for (const PeakKey& peak : peak_keys) {
    const Field<G> read = figure<G, FlopPerSecond>(std::string{peak.key}, peak.peak, rate);
    fields.push_back(peak.in_all ? read : optional(read));
  }
  const std::vector<Field<Gpu>> others{
      figure("memory_bandwidth", &G::memory_bandwidth, bandwidth),
      figure("memory", &G::memory, memory),
      // Ten times what any GPU has; a larger number counts cores, not multiprocessors.
      figure("multiprocessors", &G::multiprocessors, whole(1, 2000)),
      optional(figure("nvlink_bandwidth", &G::nvlink, bandwidth)),
      figure("pcie_bandwidth", &G::pcie, bandwidth),
      optional(figure("host_bandwidth", &G::host, bandwidth)),
      figure("power", &G::watts, quantity(watts)),
  };
  fields.insert(fields.end(), others.begin(), others.end());
  return fields;
}

}  // namespace

const std::vector<std::string>& figures_of_a_machine() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{
        // The switches between NICs.
        "nodes_per_leaf", "nodes_per_pod", "leaves_per_pod", "spines_per_pod", "spines", "cores",
        "oversubscription", "uplink_bandwidth", "core_oversubscription", "core_uplink_bandwidth",
        "switch_latency", "chunk_latency", "efficiency", "nodes_per_router", "routers_per_group",
        "groups", "global_links_per_router", "local_bandwidth", "global_bandwidth",
        // Sockets, a wire, and what overrides say.
        "socket_bandwidth", "bandwidth", "latency", "speed"};
    for (const auto& key : gpu_keys())
      if (key.sourced) all.push_back(key.name);
    for (const auto& key : system_keys())
      if (key.sourced) all.push_back(key.name);
    return all;
  }();
  return names;
}

Gpu parse_gpu(const JsonValue& written) {
  require_schema(written, "orrery.gpu/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  static const std::vector<Field<Gpu>> fields = gpu_keys();
  Gpu gpu;
  ObjectReader reader = read_fields_of(json, fields, gpu, {"schema"});
  if (!json.has("host_bandwidth")) gpu.host = usual_share_of_pcie * gpu.pcie;
  reader.raise();
  gpu.document = json;
  return gpu;
}

Gpu read_gpu(const std::string& word, const Place& at) {
  return parse_gpu(JsonValue::read_file(find_in_catalog("topologies/gpus", word, at)));
}

}  // namespace orrery
