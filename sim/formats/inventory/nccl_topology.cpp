#include "sim/formats/inventory/nccl_topology.hpp"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

using Tree = boost::property_tree::ptree;

// Real dumps nest some ten deep (bridges behind bridges). The parser recurses, so that a limit
// must be kept before it runs.
constexpr int deepest_nesting = 64;

void check_nesting(const std::string& text, const std::string& file) {
  int depth = 0;
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at)) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text.compare(at, 4, "<!--") == 0) {
      at = std::min(text.find("-->", at + 4), text.size());
      continue;
    }
    if (next == '!') fail_input({file, ""}, "holds a declaration ('<!')", "NCCL writes none");
    char quote = '\0';
    std::size_t end = at + 1;
    for (; end < text.size() && (quote != '\0' || text[end] != '>'); ++end)
      if (quote != '\0' ? text[end] == quote : (text[end] == '"' || text[end] == '\''))
        quote = quote != '\0' ? '\0' : text[end];
    const bool closes_itself = end > at + 1 && text[end - 1] == '/';
    if (next == '/')
      --depth;
    else if (next != '?' && !closes_itself)
      ++depth;
    if (depth > deepest_nesting)
      fail_input({file, ""}, "nests more than 64 levels deep", "no topology does; check the file");
    at = end;
  }
}

Tree parsed(const std::string& text, const std::string& file) {
  require_text(text, file, "the file that NCCL_TOPO_DUMP_FILE names");
  if (!trimmed(text).starts_with('<'))
    fail_input({file, ""}, "is not XML", "give the file that NCCL_TOPO_DUMP_FILE names");
  check_nesting(text, file);
  Tree tree;
  std::istringstream stream{text};
  try {
    boost::property_tree::read_xml(stream, tree, boost::property_tree::xml_parser::no_comments);
  } catch (const boost::property_tree::xml_parser_error& error) {
    const Place place{file, "line " + std::to_string(error.line())};
    if (error.message().find("unexpected end of data") != std::string::npos)
      fail_input(place, "ends in the middle of an element", "the file is cut off; fetch it again");
    fail_input(place, "is not valid XML (" + shown_text(error.message()) + ")",
               "fetch the file again");
  }
  return tree;
}

std::optional<std::string> attribute(const Tree& element, const std::string& name) {
  const auto found = element.get_child_optional("<xmlattr>." + name);
  if (!found) return std::nullopt;
  return found->data();
}

// Collects the used facts of the tree, each with its place in the file.
class TopologyReader {
 public:
  explicit TopologyReader(const std::string& file) : file_{file} {}

  void system(const Tree& system) {
    const auto version = attribute(system, "version");
    if (!version) fail("system", "has no version", "give the file that NCCL itself wrote");
    if (*version != "1")
      fail("system", "has version '" + shown_text(*version) + "', and only 1 is known",
           "dump it with NCCL 2.5 to 2.30");
    for (const auto& [tag, element] : system)
      if (tag == "cpu") cpu(element);
    // CUDA counts GPUs in this order.
    std::stable_sort(dump_.gpus.begin(), dump_.gpus.end(), [](const NcclGpu& a, const NcclGpu& b) {
      return std::pair{a.node, a.dev} < std::pair{b.node, b.dev};
    });
    if (nodes_.empty()) fail("system", "has no <cpu>", "the dump is not whole; make it again");
    if (dump_.gpus.empty())
      fail("system", "has no <gpu>", "dump it from a job that uses all GPUs of a node");
  }

  NcclDump take() {
    dump_.nodes = static_cast<int>(nodes_.size());
    return std::move(dump_);
  }

 private:
  [[noreturn]] void fail(const std::string& element, const std::string& problem,
                         const std::string& remedy) const {
    fail_input({file_, "<" + element + ">"}, problem, remedy);
  }

  // A dump of an NVLink domain has the CPUs of all its nodes, distinguished by their host's hash.
  void cpu(const Tree& element) {
    const std::string host = attribute(element, "host_hash").value_or("");
    const auto found = nodes_.emplace(host, static_cast<int>(nodes_.size()));
    node_ = found.first->second;
    for (const char* name : {"arch", "vendor", "familyid", "modelid"})
      if (dump_.branches.empty()) dump_.cpu_model += attribute(element, name).value_or("?") + " ";
    branch_ = add_branch(-1, 0.0);
    children(element, nullptr);
  }

  int add_branch(int parent, double gb_s) {
    dump_.branches.push_back({parent, gb_s});
    return static_cast<int>(dump_.branches.size()) - 1;
  }

  void children(const Tree& element, const Tree* pci) {
    for (const auto& [tag, child] : element) {
      if (tag == "pci") bridge_or_device(child);
      if (tag == "gpu") gpu(child, pci);
      if (tag == "nic") nic(child, pci);
    }
  }

  void bridge_or_device(const Tree& element) {
    const auto bus = attribute(element, "busid");
    if (!bus) fail("pci", "has no busid", "the dump is not whole; make it again");
    if (!buses_.insert({node_, *bus}).second)
      fail("pci busid=\"" + shown_text(*bus) + "\"", "stands twice in the file",
           "the dump is damaged; make it again");
    const int outside = branch_;
    if (element.count("pci") > 0) branch_ = add_branch(branch_, slot_gb_s(element));
    children(element, &element);
    branch_ = outside;
  }

  void gpu(const Tree& element, const Tree* pci) {
    const std::string dev = shown_text(attribute(element, "dev").value_or("?"));
    const std::string where = "gpu dev=\"" + dev + "\"";
    if (!pci) fail(where, "stands outside of a <pci>", "the dump is damaged; make it again");
    NcclGpu gpu;
    gpu.node = node_;
    gpu.branch = branch_;
    gpu.dev = plain_integer(dev, 1 << 20).value_or(0);
    gpu.bus = *attribute(*pci, "busid");
    gpu.device = attribute(*pci, "device").value_or("");
    gpu.pcie_gb_s = slot_gb_s(*pci);
    const auto sm = attribute(element, "sm");
    if (!sm) fail(where, "has no sm", "the dump is not whole; make it again");
    gpu.sm = integer(where, "sm", *sm, 1000);
    for (const auto& [tag, link] : element)
      if (tag == "nvlink") nvlink(gpu, link, where);
    dump_.gpus.push_back(std::move(gpu));
  }

  void nvlink(NcclGpu& gpu, const Tree& link, const std::string& where) {
    const auto target = attribute(link, "target");
    const auto count = attribute(link, "count");
    if (!target || !count)
      fail(where, "has an <nvlink> without target or count", "the dump is damaged; make it again");
    // The most that exist are 18 (H100, B200); a switch's entry may hold them all.
    const int links = integer(where, "count", *count, 64);
    if (*target == gpu.bus)
      fail(where, "has an <nvlink> to itself", "the dump is damaged; make it again");
    const std::string target_class = attribute(link, "tclass").value_or("");
    if (target_class.starts_with("0x0680"))  // A bridge that is no PCI bridge: NVSwitch.
      gpu.switch_links += links;
    else
      gpu.peers.emplace_back(*target, links);
  }

  void nic(const Tree& element, const Tree* pci) {
    for (const auto& [tag, net] : element) {
      if (tag != "net") continue;
      NcclNic nic;
      nic.node = node_;
      nic.branch = branch_;
      nic.name = attribute(net, "name").value_or("");
      const std::string where = "net name=\"" + shown_text(nic.name) + "\"";
      const auto speed = attribute(net, "speed");
      if (nic.name.empty()) fail("net", "has no name", "the dump is not whole; make it again");
      if (!speed) fail(where, "has no speed", "the dump is not whole; make it again");
      // 10 Tbit/s is above every port that exists.
      nic.mbit_per_s = integer(where, "speed", *speed, 10'000'000);
      if (nic.mbit_per_s <= 0.0) fail(where, "has the speed 0", "its link is down; mend it");
      // The ports of one NIC have one name.
      const std::string port = attribute(net, "port").value_or("");
      if (!names_.insert({node_, nic.name, port}).second)
        fail(where, "stands twice in the file, for one port", "the dump is damaged; make it again");
      if (pci) nic.pci_class = attribute(*pci, "class").value_or("");
      dump_.nics.push_back(std::move(nic));
    }
  }

  int integer(const std::string& where, const std::string& name, const std::string& word,
              int maximum) const {
    if (const auto value = plain_integer(word, maximum)) return *value;
    fail(where,
         name + " is '" + shown_text(word) + "', which is not a count up to " +
             std::to_string(maximum),
         "the dump is damaged; make it again");
  }

  // "32.0 GT/s PCIe" and "16": 64 GB/s. 128b/130b coding is neglected, as data sheets do; the
  // first two generations lose a fifth to 8b/10b (PCI Express Base Specification 1.0 to 5.0).
  static double slot_gb_s(const Tree& pci) {
    const std::string speed = attribute(pci, "link_speed").value_or("");
    const auto width = plain_integer(attribute(pci, "link_width").value_or(""), 32);
    const auto rate = plain_number(std::string_view{speed}.substr(0, speed.find(' ')));
    if (!width || !rate) return 0.0;
    return *rate * *width / 8.0 * (*rate <= 5.0 ? 0.8 : 1.0);
  }

  std::string file_;
  NcclDump dump_;
  int node_ = 0;
  int branch_ = 0;
  std::map<std::string, int> nodes_;
  std::set<std::pair<int, std::string>> buses_;
  std::set<std::tuple<int, std::string, std::string>> names_;
};

}  // namespace

NcclDump read_nccl_dump(const std::string& text, const std::string& file) {
  const Tree tree = parsed(text, file);
  const auto system = tree.get_child_optional("system");
  if (!system)
    fail_input({file, ""}, "has no <system>, so it is not a topology of NCCL",
               "give the file that NCCL_TOPO_DUMP_FILE names");
  TopologyReader reader{file};
  reader.system(*system);
  return reader.take();
}

namespace {

// NCCL's bandwidth of the link between two sockets, GB/s (NCCL 2.28, src/graph/topo.h and
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
// no other GPU does, that path is faster than the NIC and the tree adds nothing.
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

// Every GPU can be reached from the first over NVLinks between GPUs.
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
    draft.notes.push_back("the NICs are of " + draft.fabric + " by their PCI class " +
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
