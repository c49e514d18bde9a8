#include "sim/formats/inventory/system_draft.hpp"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string ten_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::optional<Architecture> architecture_of(int compute_capability) {
  // NVIDIA CUDA C++ Programming Guide, "Compute Capabilities": 7.0 Volta (7.5 is Turing), 8.x
  // Ampere but 8.9 Ada, 9.0 Hopper, 10.x and 12.x Blackwell.
  switch (compute_capability / 10) {
    case 7:
      if (compute_capability == 75) return std::nullopt;
      return Architecture::volta;
    case 8:
      return compute_capability == 89 ? Architecture::ada : Architecture::ampere;
    case 9:
      return Architecture::hopper;
    case 10:
    case 12:
      return Architecture::blackwell;
    default:
      return std::nullopt;
  }
}

std::string capability_text(int compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

std::string catalog_gpus_of(const std::optional<Architecture>& architecture) {
  std::vector<std::string> names = list_catalog("topologies/gpus");
  std::erase_if(names, [&](const std::string& name) {
    return architecture && read_gpu(name, {}).architecture != *architecture;
  });
  return names.empty() ? "a path" : joined(names);
}

// A path is read from where the system's file will lie, which is not known here.
std::string portable_word(const std::string& word) {
  const bool is_path = word.find('/') != word.npos || word.ends_with(".json");
  return is_path ? std::filesystem::absolute(word).string() : word;
}

// The file's keys in the order of topologies/README.md, one a line.
class Document {
 public:
  Document(const SystemDraft& draft, const SystemAnswers& answers)
      : draft_{draft}, answers_{answers} {
    add("schema", "orrery.system/1");
  }

  const std::string* answer(const std::string& name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? nullptr : &found->second;
  }

  void add(const std::string& key, const Json& value) {
    lines_ += (lines_.empty() ? "  " : ",\n  ") + Json(key).dump() + ": " +
              value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void add_sourced(const std::string& key, const Json& value, const std::string& source) {
    add(key, Json{{"value", value}, {"source", source}});
  }

  // A number of the file, unless the user knows better.
  void add_known(const std::string& key, const std::string& name, const Json& known,
                 const std::string& source) {
    if (const std::string* word = answer(name)) return add_answer(key, *word, name);
    add_sourced(key, known, source);
  }

  // A constant of the catalog's systems, unless the user knows better.
  void add_assumed(const std::string& key, const std::string& name, const Json& value,
                   const std::string& source) {
    if (const std::string* word = answer(name)) return add_answer(key, *word, name);
    add_sourced(key, value, source);
    notes_.push_back(key + " is assumed to be " +
                     (value.is_string() ? value.get<std::string>() : value.dump()) +
                     " as in the catalog; measure it and give --" + name);
  }

  // Counts and fractions are numbers in JSON, quantities words; parse_system judges both.
  void add_answer(const std::string& key, const std::string& word, const std::string& name) {
    const bool is_number =
        name == "nics" || name == "nvlink-domain" || name == "network-efficiency";
    const Json number = is_number ? Json::parse(word, nullptr, false) : Json{};
    add_sourced(key, number.is_number() ? number : Json(word), "given with --" + name);
  }

  void note(const std::string& text) { notes_.push_back(text); }

  std::string text() const { return "{\n" + lines_ + "\n}\n"; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const SystemDraft& draft_;
  const SystemAnswers& answers_;
  std::string lines_;
  std::vector<std::string> notes_;
};

void require(const SystemDraft& draft, bool known, const std::string& what,
             const std::string& remedy) {
  if (!known) fail_input({draft.file, ""}, "does not say " + what, remedy);
}

void add_scale_up(Document& document, const SystemDraft& draft, NodeWiring wiring, const Gpu& gpu) {
  const bool is_pcie = wiring == NodeWiring::pcie;
  const std::string key = "scale_up_bandwidth", name = "scale-up-bandwidth";
  const auto gb_s = [](BytesPerSecond rate) { return ten_digits(rate.si() / 1e9) + " GB/s"; };
  if (document.answer(name)) {
    document.add_known(key, name, {}, "");
  } else if (is_pcie) {
    if (draft.pcie == BytesPerSecond{})
      document.add_sourced(key, gb_s(gpu.pcie), "PCIe of the GPU " + gpu.name + " in the catalog");
    else
      document.add_sourced(key, gb_s(std::min(draft.pcie, gpu.pcie)),
                           draft.source + ": link speed and width of the GPU's slot");
  } else {
    require(draft, draft.nvlinks > 0, "how many NVLinks a GPU has", "give --" + name);
    const BytesPerSecond rate = nvlink_rate(gpu, {draft.file, ""});
    document.add_sourced(key, gb_s(BytesPerSecond{draft.nvlinks * rate.si()}),
                         (draft.is_from_words ? gpu.name : draft.source) + ": " +
                             std::to_string(draft.nvlinks) + " NVLinks a GPU, of " + gb_s(rate) +
                             " each way (NVIDIA data sheet of the GPU's architecture)");
  }
  // NCCL 2.28, src/graph/tuning.cc: latency of a hop in the LL protocol.
  document.add_assumed("scale_up_latency", "scale-up-latency", is_pcie ? "1 us" : "0.6 us",
                       std::string{"NCCL 2.28, src/graph/tuning.cc: LL latency of "} +
                           (is_pcie ? "a PCIe hop" : "an NVLink hop"));
}

void add_network(Document& document, const SystemDraft& draft) {
  require(draft, draft.nics_per_node > 0 || document.answer("nics"), "how many NICs a node has",
          "give --nics");
  require(draft, draft.nic_gbit_per_s > 0 || document.answer("nic-bandwidth"), "how fast a NIC is",
          "give --nic-bandwidth, such as \"400 Gb/s\"");
  const std::string* fabric_answer = document.answer("network");
  require(draft, !draft.fabric.empty() || fabric_answer, "what fabric joins the nodes",
          "give --network infiniband, ethernet or another that 'orrery list networks' has");
  const std::string fabric = fabric_answer ? *fabric_answer : draft.fabric;
  const NetworkKind network = read_network(fabric, Place{} / "network");
  document.add_known("nics_per_node", "nics", draft.nics_per_node, draft.source);
  document.add_known("nic_bandwidth", "nic-bandwidth", ten_digits(draft.nic_gbit_per_s) + " Gb/s",
                     draft.is_from_words ? draft.source : draft.source + ": port speed");
  bool all_known = true;
  for (const auto& [key, name] : {std::pair{"network_latency", "network-latency"},
                                  std::pair{"network_efficiency", "network-efficiency"}})
    if (const std::string* word = document.answer(name))
      document.add_answer(key, *word, name);
    else
      all_known = false;
  if (!all_known)
    document.note("the network is taken to have the figures of '" + network.name + "' (" +
                  network.title +
                  "); measure its latency and efficiency and give "
                  "--network-latency and --network-efficiency");
  document.add("fabric", portable_word(fabric));
}

// An answer that contradicts the file's wiring of a node leaves these out.
void add_pairs(Document& document, const SystemDraft& draft, NodeWiring wiring, const Gpu& gpu) {
  if (draft.nvlink_pairs.empty() || wiring != draft.wiring) return;
  const BytesPerSecond rate = nvlink_rate(gpu, {draft.file, ""});
  Json pairs = Json::array();
  for (const DraftPair& pair : draft.nvlink_pairs)
    pairs.push_back({{"gpus", {pair.first, pair.second}},
                     {"bandwidth",
                      {{"value", ten_digits(pair.links * rate.si() / 1e9) + " GB/s"},
                       {"source", (draft.is_from_words ? gpu.name : draft.source) + ": " +
                                      std::to_string(pair.links) + " NVLinks"}}}});
  document.add("nvlink_pairs", pairs);
}

void add_tree(Document& document, const SystemDraft& draft) {
  const PcieTree& tree = draft.pcie_tree;
  if (tree.empty()) return;
  if (document.answer("nics") || document.answer("nvlink-domain")) {
    document.note("pcie_tree is left out, as other NICs or domains are given than the file has");
    return;
  }
  const auto name = [&](int branch) {
    return tree.branches[static_cast<std::size_t>(branch)].name;
  };
  Json branches = Json::array();
  int sockets = 0;
  for (const PcieBranch& branch : tree.branches) {
    Json entry{{"name", branch.name}};
    if (branch.parent >= 0) {
      entry["parent"] = name(branch.parent);
      entry["bandwidth"] = {{"value", ten_digits(branch.bandwidth.si() / 1e9) + " GB/s"},
                            {"source", draft.source + ": link speed and width of the switch"}};
    } else {
      ++sockets;
    }
    branches.push_back(std::move(entry));
  }
  Json json{{"branches", std::move(branches)}};
  for (const int gpu : tree.gpus) json["gpus"].push_back(name(gpu));
  for (const int nic : tree.nics) json["nics"].push_back(name(nic));
  if (sockets > 1) {
    const std::string* answer = document.answer("socket-bandwidth");
    require(draft, answer || tree.socket_link > BytesPerSecond{},
            "how fast its CPU sockets are linked", "give --socket-bandwidth, such as \"16 GB/s\"");
    json["socket_bandwidth"] = {
        {"value", answer ? *answer : ten_digits(tree.socket_link.si() / 1e9) + " GB/s"},
        {"source", answer ? "given with --socket-bandwidth"
                          : "NCCL 2.28, src/graph/topo.h, by the CPU's model"}};
  }
  document.add("pcie_tree", json);
}

NodeWiring wiring_of(const SystemDraft& draft, const Document& document) {
  const std::string* word = document.answer("wiring");
  return word ? choice<NodeWiring>(*word, Place{} / "wiring", "is not a wiring") : draft.wiring;
}

}  // namespace

NicWords nic_words(const std::string& text) {
  std::string word = text;
  std::erase(word, ' ');
  const std::size_t times = word.find('x');
  if (times == word.npos) return {word, ""};
  std::string rate = word.substr(times + 1);
  if (rate.ends_with('G')) rate += "b/s";  // The usual short form: "200G" is 200 Gb/s.
  return {word.substr(0, times), rate};
}

SystemAnswers with_rate_of_nics(SystemAnswers answers) {
  const auto nics = answers.find("nics");
  if (nics == answers.end()) return answers;
  const NicWords words = nic_words(nics->second);
  if (!words.rate.empty() && !answers.try_emplace("nic-bandwidth", words.rate).second)
    fail_input(Place{} / "nics", "has a rate, and so has --nic-bandwidth", "give it once");
  nics->second = words.count;
  return answers;
}

const std::vector<std::pair<std::string, std::string>>& system_answer_options() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"name", "of the system; else that of the file"},
      {"title", "what a person calls it"},
      {"gpu", "name in the catalog, or a file"},
      {"nvlink-domain", "GPUs in one NVLink domain, where it spans nodes"},
      {"wiring", "nvswitch | nvlink_mesh | pcie"},
      {"scale-up-bandwidth", "of one GPU to its domain, each way: \"450 GB/s\""},
      {"scale-up-latency", "software to software: \"0.6 us\""},
      {"socket-bandwidth", "from one CPU socket to the other, each way: \"16 GB/s\""},
      {"nics", "NICs of a node that carry GPU traffic, as 8x400G"},
      {"nic-bandwidth", "\"400 Gb/s\""},
      {"network-latency", "software to software through an idle fabric: \"5 us\""},
      {"network-efficiency", "payload over line rate: 0.97"},
      {"network", "infiniband | ethernet | efa-v2 ...: orrery list networks"}};
  return all;
}

Gpu gpu_of(const SystemDraft& draft, const SystemAnswers& answers) {
  const auto architecture = architecture_of(draft.compute_capability);
  const auto answer = answers.find("gpu");
  if (answer == answers.end() && draft.gpu.empty()) {
    const std::string capability =
        draft.compute_capability
            ? " (compute capability " + capability_text(draft.compute_capability) + ")"
            : "";
    fail_input({draft.file, ""}, "does not say which GPU it has" + capability,
               "give --gpu NAME: " + catalog_gpus_of(architecture));
  }
  const std::string word = answer == answers.end() ? draft.gpu : answer->second;
  const Gpu gpu = read_gpu(word, Place{} / "gpu");
  if (architecture && gpu.architecture != *architecture)
    fail_input(Place{} / "gpu",
               "'" + gpu.name + "' is " + name(gpu.architecture) + ", but " + draft.file +
                   " has GPUs of compute capability " + capability_text(draft.compute_capability) +
                   ", " + name(*architecture),
               "name one of " + catalog_gpus_of(architecture));
  return gpu;
}

BytesPerSecond nvlink_rate(const Gpu& gpu, const Place& at) {
  switch (gpu.architecture) {
    // 25 GB/s each way a link: NVIDIA V100 (6 links, 300 GB/s both ways), A100 (12, 600) and H100
    // (18, 900) data sheets. NVLink 5 has 50: GB200 NVL72 data sheet (18, 1.8 TB/s).
    case Architecture::volta:
    case Architecture::ampere:
    case Architecture::hopper:
      return BytesPerSecond{25e9};
    case Architecture::blackwell:
      return BytesPerSecond{50e9};
    case Architecture::ada:
      break;
  }
  fail_input(at, "has NVLinks, but the GPU '" + gpu.name + "' has none",
             "check --gpu, or give --wiring pcie");
}

ImportedSystem system_json(const SystemDraft& draft, const SystemAnswers& answers) {
  const Gpu gpu = gpu_of(draft, answers);
  Document document{draft, answers};
  const NodeWiring wiring = wiring_of(draft, document);
  const std::string* given_name = document.answer("name");
  const std::string* given_title = document.answer("title");
  const std::string* given_gpu = document.answer("gpu");
  const std::string stem = std::filesystem::path{draft.file}.stem().string();
  document.add("name", given_name ? *given_name : stem);
  document.add("title", given_title ? *given_title
                                    : std::to_string(draft.gpus_per_node) + " x " + gpu.title +
                                          ", from " + draft.source);
  document.add("gpu", given_gpu ? portable_word(*given_gpu) : draft.gpu);
  document.add_sourced("gpus_per_node", draft.gpus_per_node, draft.source);
  if (document.answer("nvlink-domain") || draft.nvlink_domain > draft.gpus_per_node)
    document.add_known("nvlink_domain", "nvlink-domain", draft.nvlink_domain, draft.source);
  document.add("wiring", name(wiring));
  add_scale_up(document, draft, wiring, gpu);
  add_network(document, draft);
  // NVLink SHARP came with Hopper's NVSwitch (NCCL, src/graph/tuning.cc: no NVLS before 9.0).
  document.add("in_network_reduction",
               wiring == NodeWiring::nvswitch && gpu.architecture >= Architecture::hopper);
  add_pairs(document, draft, wiring, gpu);
  add_tree(document, draft);
  if (draft.max_gpus > 0)
    document.add_sourced("max_gpus", draft.max_gpus, "what the switches have ports for");
  if (!draft.fabric_shape.empty()) document.add("fabric_shape", Json::parse(draft.fabric_shape));

  ImportedSystem imported{document.text(), draft.notes};
  for (const std::string& note : document.notes()) imported.notes.push_back(note);
  parse_system(JsonValue::parse(imported.json, "system of " + draft.file));
  return imported;
}

}  // namespace orrery
