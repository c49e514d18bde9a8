#include "sim/formats/inventory/cluster_words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string six_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

const std::string* given(const SystemAnswers& words, const std::string& name) {
  const auto found = words.find(name);
  return found == words.end() ? nullptr : &found->second;
}

const std::string& needed(const SystemAnswers& words, const std::string& name,
                          const std::string& remedy) {
  if (const std::string* word = given(words, name)) return *word;
  fail_input({}, "--" + name + " is missing", remedy);
}

int count(const std::string& text, const std::string& name, int most) {
  const auto value = plain_integer(text, most);
  if (!value || *value < 1)
    fail_input(Place{} / name, "'" + shown_text(text) + "' is not such a number",
               "write a whole number from 1 to " + std::to_string(most));
  return static_cast<int>(*value);
}

void read_nics(const std::string& text, SystemDraft& draft) {
  const NicWords words = nic_words(text);
  if (words.rate.empty())
    fail_input(Place{} / "nics", "'" + shown_text(text) + "' has no x",
               "write how many and how fast: --nics 8x400G");
  constexpr int most_nics = 1024;
  draft.nics_per_node = count(words.count, "nics", most_nics);
  draft.nic_gbit_per_s = parse_bandwidth(words.rate, Place{} / "nics").si() * 8e-9;
}

// "3" and "3:1"
double ratio_of(const SystemAnswers& words) {
  const std::string* word = given(words, "oversubscription");
  if (!word) return 1.0;
  const std::string number = word->ends_with(":1") ? word->substr(0, word->size() - 2) : *word;
  const auto value = plain_number(number);
  constexpr double most = 64.0;
  if (!value || *value < 1.0 || *value > most)
    fail_input(Place{} / "oversubscription", "'" + shown_text(*word) + "' is no such ratio",
               "write 3 or 3:1 where leaves have three times as much bandwidth down as up");
  return *value;
}

// The wiring within a node is that of the catalog's system with equal nodes.
void find_wiring(const Gpu& gpu, SystemDraft& draft) {
  draft.nvlink_domain = draft.gpus_per_node;
  if (gpu.nvlink == BytesPerSecond{}) return;
  const BytesPerSecond rate = nvlink_rate(gpu, Place{} / "gpu");
  draft.nvlinks = static_cast<int>(std::lround(gpu.nvlink / rate));
  for (const std::string& name : list_catalog("topologies/systems")) {
    const System system = read_system(name, {});
    if (system.gpu.name != gpu.name || system.gpus_per_node != draft.gpus_per_node) continue;
    draft.wiring = system.wiring;
    draft.nvlink_domain = system.nvlink_domain;
    draft.notes.push_back(
        "GPUs of a node are wired as in " + name + " of the catalog" +
        (draft.nvlink_domain > draft.gpus_per_node
             ? ", with " + std::to_string(draft.nvlink_domain) + " in an NVLink domain"
             : "") +
        "; override with --wiring");
    return;
  }
  // NVIDIA HGX A100 and HGX H100 specifications: boards of four GPUs join each pair directly, those
  // of eight have NVSwitches.
  constexpr int most_without_switch = 4;
  const bool is_mesh = draft.gpus_per_node <= most_without_switch;
  draft.wiring = is_mesh ? NodeWiring::nvlink_mesh : NodeWiring::nvswitch;
  const int others = draft.gpus_per_node - 1;
  if (is_mesh && others > 0 && draft.nvlinks % others == 0)
    for (int first = 0; first < draft.gpus_per_node; ++first)
      for (int second = first + 1; second < draft.gpus_per_node; ++second)
        draft.nvlink_pairs.push_back({first, second, draft.nvlinks / others});
  draft.notes.push_back(std::string{"GPUs of a node are assumed to be joined by "} +
                        (is_mesh ? "NVLinks between each pair, as on HGX boards of four"
                                 : "NVSwitches, as on HGX boards of eight") +
                        "; override with --wiring");
}

void find_network(const SystemAnswers& words, SystemDraft& draft) {
  if (const std::string* word = given(words, "network")) {
    read_network(*word, Place{} / "network");
    draft.fabric = *word;
    return;
  }
  // InfiniBand's EDR, HDR, NDR and XDR.
  const double rates[] = {100.0, 200.0, 400.0, 800.0};
  const bool is_infiniband =
      std::find(std::begin(rates), std::end(rates), draft.nic_gbit_per_s) != std::end(rates);
  draft.fabric = is_infiniband ? "infiniband" : "ethernet";
  draft.notes.push_back("the network is assumed to be " + draft.fabric +
                        "; override with --network");
}

Json sourced(const Json& value, const std::string& source) {
  return {{"value", value}, {"source", source}};
}

// A tree of leaves and spines.
void find_tree(const SystemAnswers& words, bool rails, SystemDraft& draft) {
  constexpr int usual_ports = 64;  // Quantum-2 and 25.6 Tb/s Ethernet switches at 400 Gb/s.
  constexpr int most_ports = 1024;
  const std::string* given_ports = given(words, "switch-ports");
  const int ports = given_ports ? count(*given_ports, "switch-ports", most_ports) : usual_ports;
  const double ratio = ratio_of(words);
  const int up = static_cast<int>(std::floor(ports / (1.0 + ratio)));
  if (up < 1)
    fail_input(Place{} / "oversubscription",
               "leaves a switch of " + std::to_string(ports) + " ports no port up",
               "give --switch-ports, or a smaller ratio");
  const int down = std::min(ports - up, static_cast<int>(std::floor(up * ratio)));
  // A rail's leaf has a NIC of each node.
  const int a_node =
      rails ? std::max(1, draft.nics_per_node / draft.gpus_per_node) : draft.nics_per_node;
  const std::string* given_nodes = given(words, "nodes-per-leaf");
  const int nodes = given_nodes ? count(*given_nodes, "nodes-per-leaf", most_ports) : down / a_node;
  if (nodes < 1)
    fail_input(Place{} / "nics",
               std::to_string(a_node) + " NICs of a node do not fit into the " +
                   std::to_string(down) + " ports that a leaf has down",
               "give --switch-ports, or --fabric rail-optimized");
  const std::string* given_spines = given(words, "spines");
  const int cables = std::max(1, static_cast<int>(std::floor(nodes * a_node / ratio)));
  const int spines = given_spines ? count(*given_spines, "spines", most_ports) : cables;
  const std::string built = "a leaf of " + std::to_string(ports) + " ports";
  const auto mine = [](const std::string* word, const std::string& otherwise) {
    return word ? std::string{own_source} : otherwise;
  };
  const Json shape{
      {"kind", rails ? "rail_optimized" : "leaf_spine"},
      {rails ? "nodes_per_pod" : "nodes_per_leaf",
       sourced(nodes, mine(given_nodes,
                           "assumed: " + built + ", " + std::to_string(down) + " of them down"))},
      {"spines", sourced(spines, mine(given_spines, "assumed: a cable from each leaf to each"))},
      {"oversubscription",
       sourced(ratio, mine(given(words, "oversubscription"), "assumed: none"))}};
  draft.fabric_shape = shape.dump();
  if (!given_nodes)
    draft.notes.push_back(
        std::string{"leaves are assumed to have "} + std::to_string(ports) + " ports, " +
        std::to_string(down) + " of them down: " + std::to_string(nodes) + " nodes a " +
        (rails ? "pod" : "leaf") + "; override with --switch-ports or --nodes-per-leaf");
  if (!given_spines)
    draft.notes.push_back("each leaf is assumed to have a cable to each of " +
                          std::to_string(spines) + " spines; override with --spines");
  // A spine has a port for each leaf.
  const int leaves_a_group = rails ? std::min(draft.nics_per_node, draft.gpus_per_node) : 1;
  const int groups = ports / leaves_a_group;
  if (!given_nodes && !given_spines && groups > 0)
    draft.max_gpus = groups * nodes * draft.gpus_per_node;
}

void find_fabric(const SystemAnswers& words, SystemDraft& draft) {
  const std::string* word = given(words, "fabric");
  std::string kind = word ? *word : "single-switch";
  std::replace(kind.begin(), kind.end(), '_', '-');
  if (kind == "leaf-spine" || kind == "rail-optimized")
    return find_tree(words, kind == "rail-optimized", draft);
  if (kind != "single-switch")
    fail_input(Place{} / "fabric", "'" + shown_text(*word) + "' is not drawn from a few words",
               suggestion(kind, {"single-switch", "leaf-spine", "rail-optimized"}) +
                   " (docs/guides/own-models-and-systems.md has the others)");
  for (const char* name : {"oversubscription", "switch-ports", "nodes-per-leaf", "spines"})
    if (given(words, name))
      fail_input(Place{} / name, "is of a tree of switches",
                 "add --fabric leaf-spine or --fabric rail-optimized");
  if (!word)
    draft.notes.push_back(
        "the nodes are assumed to be on one switch that never blocks; override with --fabric");
}

std::string title_of(const Gpu& gpu, const SystemDraft& draft, const SystemAnswers& words) {
  const bool is_tree = !draft.fabric_shape.empty();
  return std::to_string(draft.gpus_per_node) + " x " + gpu.title + ", " +
         std::to_string(draft.nics_per_node) + " x " + six_digits(draft.nic_gbit_per_s) + " Gb/s " +
         read_network(draft.fabric, {}).title +
         (is_tree ? ", " + *given(words, "fabric") + " " + six_digits(ratio_of(words)) + ":1" : "");
}

}  // namespace

const std::vector<ClusterOption>& cluster_options() {
  static const std::vector<ClusterOption> all{
      {"gpu", "NAME|FILE", "the GPU: orrery list gpus"},
      {"gpus-per-node", "N", "how many are in a node"},
      {"nics", "NxRATE", "NICs of a node that carry GPU traffic, as 8x400G"},
      {"fabric", "single-switch|leaf-spine|rail-optimized",
       "how switches join the nodes (default: one that never blocks)"},
      {"oversubscription", "RATIO", "of the leaves, as 3 or 3:1 (default 1:1)"},
      {"network", "NAME",
       "its kind: orrery list networks (default: infiniband where it has NICs so fast)"},
      {"switch-ports", "N", "ports of a switch, of a NIC's speed (default 64)"},
      {"nodes-per-leaf", "N", "of a pod where rails are kept apart (default: as many as fit)"},
      {"spines", "N", "(default: as many as a leaf has cables up)"},
      {"wiring", "nvswitch|nvlink_mesh|pcie", "in a node (default: as the catalog's)"},
      {"nvlink-domain", "N", "GPUs in one NVLink domain, where it spans nodes"},
      {"scale-up-bandwidth", "RATE", "of one GPU to its domain, each way (default: all NVLinks)"},
      {"scale-up-latency", "TIME", "software to software: \"0.6 us\""},
      {"network-latency", "TIME", "software to software: \"5 us\""},
      {"network-efficiency", "SHARE", "payload over line rate: 0.97"},
      {"name", "NAME", "of the system (default: that of the file)"},
      {"title", "TEXT", "what a person calls it"}};
  return all;
}

ImportedSystem cluster_json(const SystemAnswers& words) {
  constexpr int most_in_node = 1024;
  SystemDraft draft;
  draft.is_from_words = true;
  draft.source = own_source;
  draft.file = "my-cluster.json";
  const Gpu gpu = read_gpu(needed(words, "gpu", "name one: orrery list gpus"), Place{} / "gpu");
  draft.gpus_per_node = count(needed(words, "gpus-per-node", "write how many: --gpus-per-node 8"),
                              "gpus-per-node", most_in_node);
  read_nics(needed(words, "nics", "write how many and how fast: --nics 8x400G"), draft);
  find_wiring(gpu, draft);
  find_network(words, draft);
  find_fabric(words, draft);
  SystemAnswers answers{{"title", title_of(gpu, draft, words)}};
  for (const char* name : {"gpu", "name", "title", "wiring", "nvlink-domain", "scale-up-bandwidth",
                           "scale-up-latency", "network-latency", "network-efficiency"})
    if (const std::string* word = given(words, name)) answers[name] = *word;
  return system_json(draft, answers);
}

}  // namespace orrery
