#include "sim/formats/inventory/nccl_wires.hpp"

#include <algorithm>
#include <map>
#include <sstream>

namespace orrery {
namespace {

// What NCCL takes for the link between two sockets, GB/s (NCCL 2.28, src/graph/topo.h and
// ncclTopoGetInterCpuBw in topo.cc): by vendor, and Intel's by the model of the family 6.
double socket_gb_s(const std::string& cpu_model) {
  std::istringstream words{cpu_model};
  std::string arch, vendor;
  int family = 0, model = 0;
  words >> arch >> vendor >> family >> model;
  if (vendor == "AuthenticAMD") return 16.0;
  if (vendor != "GenuineIntel" || family != 6) return 0.0;
  if (model >= 0xCF) return 40.0;     // Emerald Rapids.
  if (model >= 0x8F) return 22.0;     // Sapphire Rapids.
  return model >= 0x55 ? 10.0 : 6.0;  // Skylake; Broadwell.
}

// Behind an NVSwitch only NIC traffic crosses PCIe. Where each GPU has a NIC on its own switch, and
// no other GPU does, that path is faster than the NIC and the tree says nothing new.
bool pcie_matters(const SystemDraft& draft, const NcclDump& dump,
                  const std::vector<NcclNic>& nics) {
  if (dump.nodes > 1 || nics.size() > dump.gpus.size()) return false;
  if (draft.wiring != NodeWiring::nvswitch) return true;
  std::map<int, int> gpus_of, nics_of;
  for (const NcclGpu& gpu : dump.gpus) ++gpus_of[gpu.branch];
  for (const NcclNic& nic : nics) ++nics_of[nic.branch];
  return std::any_of(gpus_of.begin(), gpus_of.end(), [&](const auto& place) {
    const auto found = nics_of.find(place.first);
    return found == nics_of.end() || found->second < place.second;
  });
}

}  // namespace

void set_pairs(SystemDraft& draft, const NcclDump& dump) {
  const std::vector<NcclGpu>& gpus = dump.gpus;
  const auto links = [&](const NcclGpu& from, const NcclGpu& to) {
    int count = 0;
    for (const auto& [bus, links_to] : from.peers)
      if (bus == to.bus) count += links_to;
    return count;
  };
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      const int there = links(gpus[a], gpus[b]);
      if (there != links(gpus[b], gpus[a]))
        fail_input(
            {draft.file, "<gpu dev=\"" + std::to_string(gpus[a].dev) + "\">"},
            "has other NVLinks to GPU " + std::to_string(gpus[b].dev) + " than that one has back",
            "the dump is damaged; make it again");
      if (there > 0)
        draft.nvlink_pairs.push_back({static_cast<int>(a), static_cast<int>(b), there});
    }
}

void set_tree(SystemDraft& draft, const NcclDump& dump, const std::vector<NcclNic>& nics) {
  if (!pcie_matters(draft, dump, nics)) return;
  // Branches that hold neither a GPU nor a NIC are left out.
  std::vector<bool> used(dump.branches.size(), false);
  const auto use = [&](int branch) {
    for (; branch >= 0; branch = dump.branches[static_cast<std::size_t>(branch)].parent)
      used[static_cast<std::size_t>(branch)] = true;
  };
  for (const NcclGpu& gpu : dump.gpus) use(gpu.branch);
  for (const NcclNic& nic : nics) use(nic.branch);
  std::vector<int> index(dump.branches.size(), -1);
  int sockets = 0;
  int switches = 0;
  PcieTree tree;
  for (std::size_t i = 0; i < dump.branches.size(); ++i) {
    if (!used[i]) continue;
    const NcclBranch& branch = dump.branches[i];
    index[i] = static_cast<int>(tree.branches.size());
    if (branch.parent < 0) {
      tree.branches.push_back({"cpu" + std::to_string(sockets++), -1, {}});
      continue;
    }
    if (branch.gb_s <= 0.0) {
      draft.notes.push_back("a PCIe switch has no link speed; which GPUs share it is left out");
      return;
    }
    tree.branches.push_back({"switch" + std::to_string(switches++),
                             index[static_cast<std::size_t>(branch.parent)],
                             BytesPerSecond{branch.gb_s * 1e9}});
  }
  for (const NcclGpu& gpu : dump.gpus)
    tree.gpus.push_back(index[static_cast<std::size_t>(gpu.branch)]);
  for (const NcclNic& nic : nics) tree.nics.push_back(index[static_cast<std::size_t>(nic.branch)]);
  if (sockets > 1) tree.socket_link = BytesPerSecond{socket_gb_s(dump.cpu_model) * 1e9};
  draft.pcie_tree = std::move(tree);
}

}  // namespace orrery
