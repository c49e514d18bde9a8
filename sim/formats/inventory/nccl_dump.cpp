#include "sim/formats/inventory/nccl_dump.hpp"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
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
    // In the order in which CUDA counts them.
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

  // A dump of a NVLink domain has the CPUs of all its nodes, told apart by their host's hash.
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
  Walk walk{file};
  walk.system(*system);
  return walk.take();
}

}  // namespace orrery
