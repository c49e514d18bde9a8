#include "sim/formats/inventory/nccl_topology.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/formats/inventory/nccl_wires.hpp"

namespace orrery {
namespace {

// PCI device ids of the catalog's GPUs (the PCI ID Repository, pci.ids, vendor 10de).
std::string gpu_of_device(const std::string& device) {
  static const std::map<std::string, std::string> known{
      {"0x1db5", "v100-sxm-32gb"},  {"0x20b0", "a100-sxm-40gb"}, {"0x20b2", "a100-sxm-80gb"},
      {"0x20b5", "a100-pcie-80gb"}, {"0x26b9", "l40s"},          {"0x2324", "h800-sxm"},
      {"0x2330", "h100-sxm"},       {"0x2335", "h200-sxm"},      {"0x2901", "b200-sxm"},
      {"0x2941", "gb200"},          {"0x31c2", "gb300"}};
  const auto found = known.find(device);
  return found == known.end() ? "" : found->second;
}

void set_gpus(SystemDraft& draft, const NcclDump& dump) {
  const NcclGpu& first = dump.gpus[0];
  std::map<int, int> per_node;
  for (const NcclGpu& gpu : dump.gpus) {
    ++per_node[gpu.node];
    if (gpu.sm != first.sm || gpu.device != first.device)
      fail_input({draft.file, ""}, "has GPUs of several kinds",
                 "one system has one kind; dump it from a job on one of them");
  }
  draft.gpus_per_node = per_node[first.node];
  for (const auto& [node, count] : per_node)
    if (count != draft.gpus_per_node)
      fail_input(
          {draft.file, ""},
          "has nodes of " + std::to_string(draft.gpus_per_node) + " and of " + plural(count, "GPU"),
          "dump it from a job that uses all GPUs of its nodes");
  draft.nvlink_domain = static_cast<int>(dump.gpus.size());
  draft.compute_capability = first.sm;
  draft.gpu = gpu_of_device(first.device);
  if (!draft.gpu.empty())
    draft.notes.push_back("the GPU is " + draft.gpu + " by its PCI device id " + first.device);
  draft.pcie = BytesPerSecond{first.pcie_gb_s * 1e9};
}

// Whether every GPU can be reached from the first over NVLinks between GPUs.
bool mesh_reaches_all(const std::vector<NcclGpu>& gpus) {
  std::set<std::string> reached{gpus[0].bus};
  for (bool grew = true; grew;) {
    grew = false;
    for (const NcclGpu& gpu : gpus)
      if (reached.contains(gpu.bus))
        for (const auto& [bus, unused] : gpu.peers) grew |= reached.insert(bus).second;
  }
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const NcclGpu& gpu) { return reached.contains(gpu.bus); });
}

int peer_links(const NcclGpu& gpu) {
  int links = 0;
  for (const auto& [unused, count] : gpu.peers) links += count;
  return links;
}

void set_wiring(SystemDraft& draft, NcclDump& dump) {
  std::set<std::string> buses;
  for (const NcclGpu& gpu : dump.gpus) buses.insert(gpu.bus);
  int strangers = 0;
  for (NcclGpu& gpu : dump.gpus)
    strangers += static_cast<int>(
        std::erase_if(gpu.peers, [&](const auto& peer) { return !buses.contains(peer.first); }));
  if (strangers)
    draft.notes.push_back(plural(strangers, "NVLink entry") +
                          " to devices that the dump does not hold left out");
  const bool switched = std::all_of(dump.gpus.begin(), dump.gpus.end(),
                                    [](const NcclGpu& gpu) { return gpu.switch_links > 0; });
  const bool linked = std::any_of(dump.gpus.begin(), dump.gpus.end(), [](const NcclGpu& gpu) {
    return gpu.switch_links > 0 || !gpu.peers.empty();
  });
  if (switched) {
    draft.wiring = NodeWiring::nvswitch;
  } else if (linked && dump.nodes == 1 && mesh_reaches_all(dump.gpus)) {
    draft.wiring = NodeWiring::nvlink_mesh;
  } else {
    if (linked)
      draft.notes.push_back("NVLinks do not join all GPUs of the node, which counts as PCIe");
    if (linked && dump.nodes == 1) set_pairs(draft, dump);
    return;
  }
  int least = 0, most = 0;
  for (const NcclGpu& gpu : dump.gpus) {
    const int links = switched ? gpu.switch_links : peer_links(gpu);
    least = least ? std::min(least, links) : links;
    most = std::max(most, links);
  }
  if (least != most)
    draft.notes.push_back("GPUs have between " + std::to_string(least) + " and " +
                          std::to_string(most) + " NVLinks; the least count");
  draft.nvlinks = least;
  if (!switched && dump.gpus.size() > 2) set_pairs(draft, dump);
}

void set_nics(SystemDraft& draft, const NcclDump& dump) {
  if (dump.nics.empty()) return;
  double fastest = 0.0;
  for (const NcclNic& nic : dump.nics) fastest = std::max(fastest, nic.mbit_per_s);
  std::map<int, int> per_node;
  std::set<std::string> classes;
  std::vector<NcclNic> kept;
  for (const NcclNic& nic : dump.nics) {
    if (nic.mbit_per_s < fastest) {
      char speed[32];
      std::snprintf(speed, sizeof speed, "%.10g Gb/s", nic.mbit_per_s / 1e3);
      draft.notes.push_back("NIC " + shown_text(nic.name) + " of " + speed + " left out as slower");
      continue;
    }
    ++per_node[nic.node];
    kept.push_back(nic);
    classes.insert(nic.pci_class.substr(0, 6));
  }
  int most = 0;
  for (const auto& [unused, count] : per_node) most = std::max(most, count);
  draft.nics_per_node = most;
  set_tree(draft, dump, kept);
  draft.nic_gbit_per_s = fastest / 1e3;
  // PCI class 02 is the network controllers: 0200 Ethernet, 0207 InfiniBand (PCI Code and ID
  // Assignment Specification 1.11). ConnectX shows the kind that its port is set to.
  if (classes == std::set<std::string>{"0x0207"}) draft.fabric = "infiniband";
  if (classes == std::set<std::string>{"0x0200"}) draft.fabric = "ethernet";
  if (!draft.fabric.empty())
    draft.notes.push_back("the fabric is " + draft.fabric + " by the NICs' PCI class " +
                          *classes.begin());
}

}  // namespace

SystemDraft read_nccl_topology(const std::string& text, const std::string& file) {
  NcclDump dump = read_nccl_dump(text, file);
  SystemDraft draft;
  draft.file = file;
  draft.source =
      "NCCL topology dump " + shown_text(std::filesystem::path{file}.filename().string());
  set_gpus(draft, dump);
  set_wiring(draft, dump);
  set_nics(draft, dump);
  if (draft.wiring != NodeWiring::nvswitch) draft.nvlink_domain = draft.gpus_per_node;
  return draft;
}

}  // namespace orrery
