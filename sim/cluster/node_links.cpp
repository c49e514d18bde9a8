#include "sim/cluster/node_links.hpp"

#include <algorithm>
#include <set>

#include "sim/cluster/system.hpp"
#include "sim/core/field.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

void read_pairs(const JsonValue& json, System& system) {
  if (system.wiring == NodeWiring::nvswitch)
    json.fail("GPUs on an NVSwitch have no pairs",
              "leave nvlink_pairs out, or write \"wiring\": \"nvlink_mesh\" or \"pcie\"");
  if (system.gpu.nvlink == BytesPerSecond{})
    json.fail("the GPU '" + system.gpu.name + "' has no NVLink",
              "leave nvlink_pairs out, or name another GPU");
  std::set<std::pair<int, int>> seen;
  std::vector<BytesPerSecond> sum(static_cast<std::size_t>(system.gpus_per_node));
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only({"gpus", "bandwidth"});
    const JsonValue gpus = entry.at("gpus");
    const std::vector<JsonValue> ends = gpus.elements();
    if (ends.size() != 2) gpus.fail("a pair has two ends", "write them like [0, 3]");
    int first = static_cast<int>(ends[0].integer(0, system.gpus_per_node - 1));
    int second = static_cast<int>(ends[1].integer(0, system.gpus_per_node - 1));
    if (first > second) std::swap(first, second);
    if (first == second) gpus.fail("an NVLink joins two GPUs", "write two different numbers");
    if (!seen.insert({first, second}).second)
      gpus.fail("the GPUs " + std::to_string(first) + " and " + std::to_string(second) +
                    " are a pair already",
                "give all their NVLinks in one entry");
    const BytesPerSecond bandwidth = entry.at("bandwidth").sourced().bandwidth();
    system.nvlink_pairs.push_back({first, second, bandwidth});
    for (const int gpu : {first, second}) {
      BytesPerSecond& total = sum[static_cast<std::size_t>(gpu)];
      total += bandwidth;
      // Sums of decimal figures may miss by a rounding error.
      if (total > 1.000001 * system.gpu.nvlink)
        gpus.fail("the NVLinks of GPU " + std::to_string(gpu) + " add up to " + rate_text(total) +
                      ", but the GPU '" + system.gpu.name + "' has " + rate_text(system.gpu.nvlink),
                  "bandwidths are per direction: halve figures for both");
    }
  }
}

int branch_of(const JsonValue& json, const std::vector<PcieBranch>& branches) {
  return choice<int>(json, names_of(branches), "is not a branch of this tree");
}

// Reads the branches in two passes: a parent may come after its children.
void read_branches(const JsonValue& json, PcieTree& tree) {
  const std::vector<JsonValue> entries = json.elements();
  if (entries.empty())
    json.fail("a PCIe tree has at least one socket", "write {\"name\": \"cpu0\"}");
  std::set<std::string> names;
  for (const JsonValue& entry : entries) {
    entry.allow_only({"name", "parent", "bandwidth"});
    const JsonValue name = entry.at("name");
    if (name.text().empty() || name.text().find_first_of(".- ") != std::string::npos)
      name.fail("'" + shown_text(name.text()) + "' is not the name of a branch",
                "use letters and digits, as in \"switch0\"");
    if (!names.insert(name.text()).second)
      name.fail("'" + name.text() + "' is a branch already", "give each its own name");
    tree.branches.push_back({.name = name.text(), .parent = -1, .bandwidth = {}});
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto parent = entries[i].find("parent");
    if (!parent) {
      if (const auto bandwidth = entries[i].find("bandwidth"))
        bandwidth->fail("a socket has no link upward", "give it a parent, or leave bandwidth out");
      continue;
    }
    tree.branches[i].parent = branch_of(*parent, tree.branches);
    tree.branches[i].bandwidth = entries[i].at("bandwidth").sourced().bandwidth();
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::size_t steps = 0;
    for (int at = static_cast<int>(i); at >= 0;
         at = tree.branches[static_cast<std::size_t>(at)].parent)
      if (++steps > entries.size())
        entries[i].at("parent").fail(
            "'" + tree.branches[i].name + "' hangs, link by link, on itself",
            "let one branch of the cycle have no parent: a socket");
  }
}

std::vector<int> read_places(const JsonValue& json, const std::vector<PcieBranch>& branches,
                             int wanted, const std::string& what) {
  std::vector<int> places;
  for (const JsonValue& entry : json.elements()) places.push_back(branch_of(entry, branches));
  if (static_cast<int>(places.size()) != wanted)
    json.fail(std::to_string(places.size()) + " places for " + std::to_string(wanted) + " " + what,
              "name the branch of each");
  return places;
}

void read_tree(const JsonValue& json, System& system) {
  json.allow_only({"branches", "gpus", "nics", "socket_bandwidth"});
  PcieTree& tree = system.pcie_tree;
  read_branches(json.at("branches"), tree);
  tree.gpus = read_places(json.at("gpus"), tree.branches, system.gpus_per_node, "GPUs");
  const std::vector<int> nics =
      read_places(json.at("nics"), tree.branches, system.nics_per_node, "NICs");
  const int together = system.nics_per_node / nics_in_routes(system);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (i % static_cast<std::size_t>(together) == 0)
      tree.nics.push_back(nics[i]);
    else if (nics[i] != tree.nics.back())
      json.at("nics").fail("the NICs of one GPU count as one, but hang on two branches",
                           "let each " + std::to_string(together) + " in a row share a branch");
  }
  const auto sockets = std::count_if(tree.branches.begin(), tree.branches.end(),
                                     [](const PcieBranch& b) { return b.parent < 0; });
  if (sockets > 1)
    tree.socket_link = json.at("socket_bandwidth").sourced().bandwidth();
  else if (const auto link = json.find("socket_bandwidth"))
    link->fail("there is only one socket", "leave socket_bandwidth out, or add a socket");
}

}  // namespace

void read_node_wires(const JsonValue& system_json, System& system) {
  if (const auto pairs = system_json.find("nvlink_pairs")) read_pairs(*pairs, system);
  if (const auto tree = system_json.find("pcie_tree")) {
    if (system.nvlink_domain != system.gpus_per_node)
      tree->fail("the NVLink domain spans several nodes", "leave pcie_tree out");
    read_tree(*tree, system);
  }
}

}  // namespace orrery
