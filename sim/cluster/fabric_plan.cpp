#include "sim/cluster/fabric_plan.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <map>

#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

int groups_of(int things, int size) { return (things + size - 1) / size; }

// "leaf12": its kind, and 12; or -1 where it ends in no number.
std::pair<std::string, int> split(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  int number = -1;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return {name.substr(0, digits), number};
}

}  // namespace

FabricPlan::FabricPlan(const System& system, int nodes)
    : shape_{system.shape},
      nodes_{nodes},
      nics_{nics_in_routes(system)},
      nic_{static_cast<double>(system.nics_per_node / nics_in_routes(system)) *
           system.network_efficiency * system.nic},
      efficiency_{system.network_efficiency} {
  assert(nodes >= 1);
  constexpr std::int64_t most_wires = 10'000'000;
  if (const std::int64_t wires = count_wires(); wires > most_wires)
    fail_infeasible({"system " + system.name, ""},
                    "its fabric has " + std::to_string(wires) + " links between switches, more " +
                        "than the " + std::to_string(most_wires) + " that are simulated",
                    "check the counts of fabric_shape, or use fewer GPUs");
  switch (shape_.layout) {
    case FabricLayout::single_switch:
      names_.emplace_back("fabric");
      levels_.push_back(0);
      break;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      build_leaf_spine();
      break;
    case FabricLayout::fat_tree:
      build_fat_tree();
      break;
    case FabricLayout::dragonfly:
      build_dragonfly();
      break;
    case FabricLayout::explicit_links:
      build_explicit();
      break;
  }
}

int FabricPlan::switch_of(int node, int nic) const {
  assert(0 <= node && node < nodes_ && 0 <= nic && nic < nics_);
  if (shape_.layout == FabricLayout::single_switch) return 0;
  if (shape_.layout == FabricLayout::explicit_links)
    return shape_.ports[index(node * nics_ + nic)].at_switch;
  const int row = node / shape_.nodes_per_leaf;
  return shape_.rails ? row * nics_ + nic : row;  // Leaves are the first switches.
}

std::string FabricPlan::wire_name(int wire) const {
  const FabricWire& w = wires_[index(wire)];
  return name(w.from) + "-" + name(w.to);
}

std::int64_t FabricPlan::count_wires() const {
  const std::int64_t rails = shape_.rails ? nics_ : 1;
  const std::int64_t rows =
      shape_.nodes_per_leaf > 0 ? groups_of(nodes_, shape_.nodes_per_leaf) : 0;
  switch (shape_.layout) {
    case FabricLayout::single_switch:
      return 0;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      return 2 * rows * rails * shape_.spines;
    case FabricLayout::fat_tree: {
      const std::int64_t pods = (rows + shape_.leaves_per_pod - 1) / shape_.leaves_per_pod * rails;
      return 2 * (rows * rails + pods * (shape_.cores / core_groups(shape_))) * shape_.spines;
    }
    case FabricLayout::dragonfly: {
      const std::int64_t routers = shape_.routers_per_group;
      return shape_.groups * routers * (routers - 1 + shape_.global_links);
    }
    case FabricLayout::explicit_links:
      return 2 * static_cast<std::int64_t>(shape_.links.size());
  }
  return 0;
}

int FabricPlan::add_switch(const std::string& kind, int number, int level) {
  names_.push_back(kind + std::to_string(number));
  levels_.push_back(level);
  return switches() - 1;
}

void FabricPlan::join(int lower, int upper, LinkKind up, LinkKind down, BytesPerSecond line_rate,
                      Seconds latency) {
  const BytesPerSecond capacity = efficiency_ * line_rate;
  wires_.push_back({lower, upper, up, capacity, latency, false});
  wires_.push_back({upper, lower, down, capacity, latency, false});
}

void FabricPlan::build_leaf_spine() {
  const int leaves = groups_of(nodes_, shape_.nodes_per_leaf) * (shape_.rails ? nics_ : 1);
  for (int leaf = 0; leaf < leaves; ++leaf) add_switch("leaf", leaf, 0);
  for (int spine = 0; spine < shape_.spines; ++spine) add_switch("spine", spine, 1);
  for (int leaf = 0; leaf < leaves; ++leaf)
    for (int spine = 0; spine < shape_.spines; ++spine)
      join(leaf, leaves + spine, LinkKind::leaf_up, LinkKind::leaf_down, shape_.uplink,
           shape_.switch_latency);
}

void FabricPlan::build_fat_tree() {
  const int rows = groups_of(nodes_, shape_.nodes_per_leaf);
  const int rails = shape_.rails ? nics_ : 1;
  const int leaves = rows * rails;
  const int pods = groups_of(rows, shape_.leaves_per_pod) * rails;
  for (int leaf = 0; leaf < leaves; ++leaf) add_switch("leaf", leaf, 0);
  for (int spine = 0; spine < pods * shape_.spines; ++spine) add_switch("spine", spine, 1);
  for (int core = 0; core < shape_.cores; ++core) add_switch("core", core, 2);
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const int pod = leaf / rails / shape_.leaves_per_pod * rails + leaf % rails;
    for (int spine = 0; spine < shape_.spines; ++spine)
      join(leaf, leaves + pod * shape_.spines + spine, LinkKind::leaf_up, LinkKind::leaf_down,
           shape_.uplink, shape_.switch_latency);
  }
  const int groups = core_groups(shape_);
  const int first_core = leaves + pods * shape_.spines;
  for (int spine = 0; spine < pods * shape_.spines; ++spine)
    for (int core = spine % shape_.spines % groups; core < shape_.cores; core += groups)
      join(leaves + spine, first_core + core, LinkKind::spine_up, LinkKind::spine_down,
           shape_.core_uplink, shape_.switch_latency);
}

// Global cable k of a group goes to the (k / cables)th group after it, counting round; its router
// is k / global_links. Both groups of a pair thus agree on which of their cables join them.
void FabricPlan::build_dragonfly() {
  const int in_group = shape_.routers_per_group;
  for (int router = 0; router < shape_.groups * in_group; ++router) add_switch("router", router, 0);
  for (int group = 0; group < shape_.groups; ++group)
    for (int a = 0; a < in_group; ++a)
      for (int b = a + 1; b < in_group; ++b)
        join(group * in_group + a, group * in_group + b, LinkKind::local_link, LinkKind::local_link,
             shape_.local_link, shape_.switch_latency);
  if (shape_.groups == 1) return;
  const int cables = in_group * shape_.global_links / (shape_.groups - 1);
  const auto router_of = [&](int group, int peer, int cable) {
    const int turn = (peer - group - 1 + shape_.groups) % shape_.groups;
    return group * in_group + (turn * cables + cable) / shape_.global_links;
  };
  for (int a = 0; a < shape_.groups; ++a)
    for (int b = a + 1; b < shape_.groups; ++b) {
      std::map<std::pair<int, int>, int> between;  // Cables of the same two routers are one link.
      for (int cable = 0; cable < cables; ++cable)
        ++between[{router_of(a, b, cable), router_of(b, a, cable)}];
      for (const auto& [ends, count] : between)
        join(ends.first, ends.second, LinkKind::global_link, LinkKind::global_link,
             static_cast<double>(count) * shape_.global_link, shape_.switch_latency);
    }
}

void FabricPlan::build_explicit() {
  names_ = shape_.switches;
  levels_.assign(names_.size(), 0);
  const auto find = [&](const std::string& name) {
    return static_cast<int>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  };
  for (const FabricLink& link : shape_.links)
    join(find(link.from), find(link.to), LinkKind::switch_link, LinkKind::switch_link,
         link.bandwidth, link.latency);
}

void FabricPlan::apply(const LinkOverride& change) {
  const std::size_t dash = change.link.find('-');
  const std::string first = change.link.substr(0, dash);
  const std::string second = dash == std::string::npos ? "" : change.link.substr(dash + 1);
  bool found = false;
  for (FabricWire& wire : wires_) {
    const std::string& from = names_[index(wire.from)];
    const std::string& to = names_[index(wire.to)];
    if (!(from == first && to == second) && !(from == second && to == first)) continue;
    found = true;
    wire.down = wire.down || change.down;
    if (change.bandwidth > BytesPerSecond{}) wire.capacity = efficiency_ * change.bandwidth;
  }
  if (found) return;
  const auto beyond = [&](const std::string& word) {
    const auto [kind, number] = split(word);
    int most = -1;
    for (const std::string& name : names_)
      if (const auto [known, last] = split(name); known == kind) most = std::max(most, last);
    return shape_.layout != FabricLayout::explicit_links && most >= 0 && number > most;
  };
  // Of a fixed number of spines or cores none is beyond the cluster.
  const auto grows = [&](const std::string& word) {
    return word.starts_with("leaf") ||
           (word.starts_with("spine") && shape_.layout == FabricLayout::fat_tree);
  };
  if ((beyond(first) && grows(first)) || (beyond(second) && grows(second))) return;
  std::vector<std::string> known;
  for (std::size_t wire = 0; wire < wires_.size() && wire < 1000; wire += 2)
    known.push_back(wire_name(static_cast<int>(wire)));
  if (known.size() > 16) known.resize(16);
  fail_input(change.place, "'" + change.link + "' is not a link of this system",
             known.empty() ? "name a NIC, as in \"node0.nic0\": this fabric is one switch"
                           : "write it like \"" + known.front() + "\"");
}

}  // namespace orrery
