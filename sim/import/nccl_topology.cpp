#include "sim/import/nccl_topology.hpp"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "sim/import/text_file.hpp"
#include "sim/input/json_value.hpp"

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
    fail_input({file, ""}, "is no XML", "give the file that NCCL_TOPO_DUMP_FILE names");
  check_nesting(text, file);
  Tree tree;
  std::istringstream stream{text};
  try {
    boost::property_tree::read_xml(stream, tree, boost::property_tree::xml_parser::no_comments);
  } catch (const boost::property_tree::xml_parser_error& error) {
    const Place place{file, "line " + std::to_string(error.line())};
    if (error.message().find("unexpected end of data") != std::string::npos)
      fail_input(place, "ends in the middle of an element", "the file is cut off; fetch it again");
    fail_input(place, "is no valid XML (" + shown_text(error.message()) + ")",
               "fetch the file again");
  }
  return tree;
}

std::optional<std::string> attribute(const Tree& element, const std::string& name) {
  const auto found = element.get_child_optional("<xmlattr>." + name);
  if (!found) return std::nullopt;
  return found->data();
}

struct Gpu {
  std::string bus;
  int node = 0;
  int sm = 0;
  std::string device;  ///< PCI device id; "": not told.
  double pcie_gb_s = 0.0;
  int switch_links = 0;
  std::vector<std::pair<std::string, int>> peers;  ///< Bus id of another GPU, links to it.
};

struct Nic {
  std::string name;
  int node = 0;
  double mbit_per_s = 0.0;
  std::string pci_class;
};

// Which of the tree's facts count, with where they were found.
class Walk {
 public:
  explicit Walk(const std::string& file) : file_{file} {}

  void system(const Tree& system) {
    const auto version = attribute(system, "version");
    if (!version) fail("system", "has no version", "give the file that NCCL itself wrote");
    if (*version != "1")
      fail("system", "has version '" + shown_text(*version) + "', and only 1 is known",
           "dump it with NCCL 2.5 to 2.30");
    for (const auto& [tag, element] : system)
      if (tag == "cpu") cpu(element);
    if (nodes_.empty()) fail("system", "has no <cpu>", "the dump is not whole; make it again");
    if (gpus.empty())
      fail("system", "has no <gpu>", "dump it from a job that uses all GPUs of a node");
  }

  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  int nodes() const { return static_cast<int>(nodes_.size()); }

 private:
  [[noreturn]] void fail(const std::string& element, const std::string& problem,
                         const std::string& remedy) const {
    fail_input({file_, "<" + element + ">"}, problem, remedy);
  }

  // A dump of a NVLink domain has the CPUs of all its nodes, told apart by their host's hash.
  void cpu(const Tree& element) {
    const std::string host = attribute(element, "host_hash").value_or("");
    const auto found = nodes_.emplace(host, static_cast<int>(nodes_.size()));
    node_ = found.first->second;
    children(element, nullptr);
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
    children(element, &element);
  }

  void gpu(const Tree& element, const Tree* pci) {
    const std::string dev = shown_text(attribute(element, "dev").value_or("?"));
    const std::string where = "gpu dev=\"" + dev + "\"";
    if (!pci) fail(where, "stands outside of a <pci>", "the dump is damaged; make it again");
    Gpu gpu;
    gpu.node = node_;
    gpu.bus = *attribute(*pci, "busid");
    gpu.device = attribute(*pci, "device").value_or("");
    gpu.pcie_gb_s = slot_gb_s(*pci);
    const auto sm = attribute(element, "sm");
    if (!sm) fail(where, "has no sm", "the dump is not whole; make it again");
    gpu.sm = integer(where, "sm", *sm, 1000);
    for (const auto& [tag, link] : element)
      if (tag == "nvlink") nvlink(gpu, link, where);
    gpus.push_back(std::move(gpu));
  }

  void nvlink(Gpu& gpu, const Tree& link, const std::string& where) {
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
      Nic nic;
      nic.node = node_;
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
      nics.push_back(std::move(nic));
    }
  }

  int integer(const std::string& where, const std::string& name, const std::string& word,
              int maximum) const {
    if (const auto value = plain_integer(word, maximum)) return *value;
    fail(
        where,
        name + " is '" + shown_text(word) + "', which is no count up to " + std::to_string(maximum),
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
  int node_ = 0;
  std::map<std::string, int> nodes_;
  std::set<std::pair<int, std::string>> buses_;
  std::set<std::tuple<int, std::string, std::string>> names_;
};

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

std::string plural(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

void set_gpus(SystemDraft& draft, const Walk& walk) {
  const Gpu& first = walk.gpus[0];
  std::map<int, int> per_node;
  for (const Gpu& gpu : walk.gpus) {
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
  draft.nvlink_domain = static_cast<int>(walk.gpus.size());
  draft.compute_capability = first.sm;
  draft.gpu = gpu_of_device(first.device);
  if (!draft.gpu.empty())
    draft.notes.push_back("the GPU is " + draft.gpu + " by its PCI device id " + first.device);
  draft.pcie = BytesPerSecond{first.pcie_gb_s * 1e9};
}

// Whether every GPU can be reached from the first over NVLinks between GPUs.
bool mesh_reaches_all(const std::vector<Gpu>& gpus) {
  std::set<std::string> reached{gpus[0].bus};
  for (bool grew = true; grew;) {
    grew = false;
    for (const Gpu& gpu : gpus)
      if (reached.contains(gpu.bus))
        for (const auto& [bus, unused] : gpu.peers) grew |= reached.insert(bus).second;
  }
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const Gpu& gpu) { return reached.contains(gpu.bus); });
}

int peer_links(const Gpu& gpu) {
  int links = 0;
  for (const auto& [unused, count] : gpu.peers) links += count;
  return links;
}

void set_wiring(SystemDraft& draft, Walk& walk) {
  std::set<std::string> buses;
  for (const Gpu& gpu : walk.gpus) buses.insert(gpu.bus);
  int strangers = 0;
  for (Gpu& gpu : walk.gpus)
    strangers += static_cast<int>(
        std::erase_if(gpu.peers, [&](const auto& peer) { return !buses.contains(peer.first); }));
  if (strangers)
    draft.notes.push_back(plural(strangers, "NVLink entry") +
                          " to devices that the dump does not hold left out");
  const bool switched = std::all_of(walk.gpus.begin(), walk.gpus.end(),
                                    [](const Gpu& gpu) { return gpu.switch_links > 0; });
  const bool linked = std::any_of(walk.gpus.begin(), walk.gpus.end(), [](const Gpu& gpu) {
    return gpu.switch_links > 0 || !gpu.peers.empty();
  });
  if (switched) {
    draft.wiring = NodeWiring::nvswitch;
  } else if (linked && walk.nodes() == 1 && mesh_reaches_all(walk.gpus)) {
    draft.wiring = NodeWiring::nvlink_mesh;
  } else {
    if (linked)
      draft.notes.push_back("NVLinks do not join all GPUs of the node, which counts as PCIe");
    return;
  }
  int least = 0, most = 0;
  for (const Gpu& gpu : walk.gpus) {
    const int links = switched ? gpu.switch_links : peer_links(gpu);
    least = least ? std::min(least, links) : links;
    most = std::max(most, links);
  }
  if (least != most)
    draft.notes.push_back("GPUs have between " + std::to_string(least) + " and " +
                          std::to_string(most) + " NVLinks; the least count");
  draft.nvlinks = least;
}

void set_nics(SystemDraft& draft, const Walk& walk) {
  if (walk.nics.empty()) return;
  double fastest = 0.0;
  for (const Nic& nic : walk.nics) fastest = std::max(fastest, nic.mbit_per_s);
  std::map<int, int> per_node;
  std::set<std::string> classes;
  for (const Nic& nic : walk.nics) {
    if (nic.mbit_per_s < fastest) {
      char speed[32];
      std::snprintf(speed, sizeof speed, "%.10g Gb/s", nic.mbit_per_s / 1e3);
      draft.notes.push_back("NIC " + shown_text(nic.name) + " of " + speed + " left out as slower");
      continue;
    }
    ++per_node[nic.node];
    classes.insert(nic.pci_class.substr(0, 6));
  }
  int most = 0;
  for (const auto& [unused, count] : per_node) most = std::max(most, count);
  draft.nics_per_node = most;
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
  const Tree tree = parsed(text, file);
  const auto system = tree.get_child_optional("system");
  if (!system)
    fail_input({file, ""}, "has no <system>, so it is no topology of NCCL",
               "give the file that NCCL_TOPO_DUMP_FILE names");
  SystemDraft draft;
  draft.file = file;
  draft.source =
      "NCCL topology dump " + shown_text(std::filesystem::path{file}.filename().string());
  Walk walk{file};
  walk.system(*system);
  set_gpus(draft, walk);
  set_wiring(draft, walk);
  set_nics(draft, walk);
  if (draft.wiring != NodeWiring::nvswitch) draft.nvlink_domain = draft.gpus_per_node;
  return draft;
}

}  // namespace orrery
