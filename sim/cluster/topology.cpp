#include "sim/cluster/topology.hpp"

#include <array>
#include <cassert>
#include <cstdint>
#include <deque>
#include <map>

#include "sim/cluster/domain_graph.hpp"
#include "sim/cluster/fabric_routes.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {

const std::string& cable_name(LinkKind kind) {
  static const std::array<std::string, 15> names{
      "nvlink",     "nvlink",     "pcie",       "pcie",  "nic",    "nic",    "socket", "leaf-spine",
      "leaf-spine", "spine-core", "spine-core", "local", "global", "switch", "port"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

int nodes_of(const System& system, int gpus) {
  return (gpus + system.gpus_per_node - 1) / system.gpus_per_node;
}

constexpr LinkId no_link{-1};
constexpr int of_ports = -2;

std::string member_of(const std::string& link_name) {
  return link_name.substr(link_name.find('.'));
}

}  // namespace

struct Topology::State {
  // Identifies a link: a wire of the plan, a link of a domain, or a port.
  struct Origin {
    int domain = -1;  // -1: the plan; of_ports.
    int index = 0;
  };

  System system;
  int gpus = 0;
  DomainGraph domain;
  std::map<int, DomainGraph> special;  // Domains with overrides.
  FabricPlan plan;
  FabricRoutes routes;
  std::map<int, double> speeds;  // Speeds of ranks whose GPU has an override.
  std::deque<Link> links;        // A deque keeps references to its links valid.
  std::vector<Origin> origins;   // One per link.
  // Ids of links that exist, by wire of the fabric, and by domain and index in it; else none. A
  // domain's row is empty until a route enters it.
  std::vector<LinkId> wire_ids;
  std::vector<std::vector<LinkId>> domain_ids;
  int ports = 0;

  State(const System& building_plan, int gpu_count)
      : system{building_plan}, gpus{gpu_count}, domain{system}, plan{changed_plan()}, routes{plan} {
    wire_ids.resize(plan.wires().size(), no_link);
    domain_ids.resize(static_cast<std::size_t>((gpus - 1) / system.nvlink_domain + 1));
    add_special_domains();
    for (const GpuOverride& change : system.gpu_overrides)
      speeds[change.node * system.gpus_per_node + change.gpu] = change.speed;
  }

  struct Position {
    int domain, gpu;
  };
  Position position(Rank rank) const {
    assert(0 <= rank.value && rank.value < gpus);
    return {rank.value / system.nvlink_domain, rank.value % system.nvlink_domain};
  }
  int nodes_per_domain() const { return system.nvlink_domain / system.gpus_per_node; }

  static std::optional<std::pair<int, std::string>> in_node(const LinkOverride& change);
  FabricPlan changed_plan() const;
  void add_special_domains();
  DomainGraph& graph(int in_domain) {
    const auto found = special.find(in_domain);
    return found == special.end() ? domain : found->second;
  }

  void enter(LinkId& known, const Link& link, Origin origin) {
    known = LinkId{static_cast<std::int32_t>(links.size())};
    links.push_back(link);
    origins.push_back(origin);
  }

  LinkId domain_link(int in_domain, int index) {
    std::vector<LinkId>& row = domain_ids[static_cast<std::size_t>(in_domain)];
    if (row.empty()) row.resize(domain.links().size(), no_link);
    LinkId& known = row[static_cast<std::size_t>(index)];
    if (known == no_link) {
      Link link = graph(in_domain).links()[static_cast<std::size_t>(index)].link;
      link.node += in_domain * nodes_per_domain();
      enter(known, link, {in_domain, index});
    }
    return known;
  }

  LinkId fabric_link(int wire) {
    const auto index = static_cast<std::size_t>(wire);
    if (wire_ids[index] == no_link) {
      const FabricWire& w = plan.wires()[index];
      enter(wire_ids[index], {w.kind, w.capacity, w.latency, -1, w.from}, {-1, wire});
    }
    return wire_ids[index];
  }

  std::string name(LinkId id) const {
    const auto [in_domain, index] = origins[static_cast<std::size_t>(id.value)];
    if (in_domain == of_ports) return "port" + std::to_string(index);
    if (in_domain < 0) return plan.wire_name(index);
    // The domain's own names count nodes from 0: "node2.gpu1.nvlink.up".
    return "node" + std::to_string(links[static_cast<std::size_t>(id.value)].node) +
           member_of(domain.links()[static_cast<std::size_t>(index)].name);
  }

  void append(std::vector<LinkId>& route, int in_domain, const DomainGraph::Path& path) {
    for (const int index : path.links) route.push_back(domain_link(in_domain, index));
  }

  int switch_of(int in_domain, int nic) const {
    return plan.switch_of(in_domain * nodes_per_domain() + nic / plan.nics_per_node(),
                          nic % plan.nics_per_node());
  }

  struct NicPair {
    int from = -1;
    int to = -1;
  };
  NicPair choose_nics(Position source, Position target);
  [[noreturn]] void fail_unreachable(Rank from, Rank to) const;
};

// "node3.nic0": 3 and ".nic0".
std::optional<std::pair<int, std::string>> Topology::State::in_node(const LinkOverride& change) {
  const std::size_t dot = change.link.find('.');
  if (dot == std::string::npos || !change.link.starts_with("node")) return std::nullopt;
  const std::string digits = change.link.substr(4, dot - 4);
  const bool is_number = !digits.empty() && digits.size() < 8 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) return std::nullopt;
  return std::pair{std::stoi(digits), change.link.substr(dot)};
}

FabricPlan Topology::State::changed_plan() const {
  FabricPlan changed{system, nodes_of(system, gpus)};
  for (const LinkOverride& change : system.link_overrides)
    if (!in_node(change)) changed.apply(change);
  return changed;
}

void Topology::State::add_special_domains() {
  std::map<int, std::vector<LinkOverride>> changes;
  for (const LinkOverride& change : system.link_overrides) {
    const auto at = in_node(change);
    if (!at) continue;
    const auto& [node, member] = *at;
    LinkOverride relative = change;
    relative.link = "node" + std::to_string(node % nodes_per_domain()) + member;
    if (!domain.knows(relative.link)) {
      std::vector<std::string> known;
      for (const std::string& cable : domain.cables())
        known.push_back("node" + std::to_string(node) + member_of(cable));
      const std::string near = nearest(change.link, known);
      fail_input(change.place, "'" + change.link + "' is not a link of this system",
                 near.empty() ? "write it like \"" + known.front() + "\""
                              : "did you mean '" + near + "'?");
    }
    if (node < nodes_of(system, gpus)) changes[node / nodes_per_domain()].push_back(relative);
  }
  for (const auto& [in_domain, of_domain] : changes)
    special.emplace(in_domain, DomainGraph{system, of_domain});
}

Topology::State::NicPair Topology::State::choose_nics(Position source, Position target) {
  DomainGraph& out = graph(source.domain);
  const std::vector<int>& exits = out.exits(source.gpu);
  const std::vector<int>& entrances = graph(target.domain).entrances(target.gpu);
  const auto joined = [&](int exit, int entrance) {
    return routes.distance(switch_of(source.domain, exit), switch_of(target.domain, entrance)) >= 0;
  };
  const int nics = plan.nics_per_node();
  for (const int entrance : entrances) {
    if (system.shape.rails)
      for (const int exit : exits) {
        const bool on_rail = exit % nics == entrance % nics;
        const bool pxn = exit == exits.front() || out.to_nic(source.gpu, exit).over_nvlink;
        if (on_rail && pxn && joined(exit, entrance)) return {exit, entrance};
      }
    for (const int exit : exits)
      if (joined(exit, entrance)) return {exit, entrance};
  }
  return {};
}

void Topology::State::fail_unreachable(Rank from, Rank to) const {
  const auto name = [&](Rank rank) {
    return "node" + std::to_string(rank.value / system.gpus_per_node) + ".gpu" +
           std::to_string(rank.value % system.gpus_per_node);
  };
  std::string down;
  for (const LinkOverride& change : system.link_overrides)
    if (change.down) down += (down.empty() ? "" : ", ") + change.link;
  fail_infeasible({"system " + system.name, ""},
                  "no way leads from " + name(from) + " to " + name(to) +
                      (down.empty() ? ", though nothing is down" : " with these down: " + down),
                  down.empty() ? "join the switches of their NICs"
                               : "take one out of the overrides, or add another way");
}

Topology::Topology(std::unique_ptr<State> state) : state_{std::move(state)} {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

Topology Topology::build(const System& system, int gpus) {
  assert(gpus >= 1);
  return Topology{std::make_unique<State>(system, gpus)};
}

int Topology::gpus() const { return state_->gpus; }
int Topology::node(Rank rank) const { return rank.value / state_->system.gpus_per_node; }
bool Topology::same_domain(Rank a, Rank b) const {
  return state_->position(a).domain == state_->position(b).domain;
}

std::vector<LinkId> Topology::route(Rank from, Rank to, int channel) const {
  const State::Position source = state_->position(from);
  const State::Position target = state_->position(to);
  std::vector<LinkId> route;
  if (source.domain == target.domain) {
    const DomainGraph::Path& path = state_->graph(source.domain).inside(source.gpu, target.gpu);
    if (path.exists) {
      route.reserve(path.links.size());
      state_->append(route, source.domain, path);
      return route;
    }
  }
  const State::NicPair nics = state_->choose_nics(source, target);
  if (nics.from < 0) state_->fail_unreachable(from, to);
  state_->append(route, source.domain, state_->graph(source.domain).to_nic(source.gpu, nics.from));
  const FlowKey flow{state_->system.shape.ecmp_seed, from, to, channel};
  for (const int wire : state_->routes.path(state_->switch_of(source.domain, nics.from),
                                            state_->switch_of(target.domain, nics.to), flow))
    route.push_back(state_->fabric_link(wire));
  state_->append(route, target.domain, state_->graph(target.domain).from_nic(nics.to, target.gpu));
  return route;
}

Seconds Topology::latency(Rank from, Rank to) const {
  Seconds sum;
  for (const LinkId id : route(from, to)) sum += link(id).latency;
  return sum;
}

Seconds Topology::further_switches(Rank from, Rank to) const {
  Seconds sum;
  for (const LinkId id : route(from, to)) {
    const Link& crossed = link(id);
    if (crossed.node < 0) sum += crossed.latency;
    // A NIC has half of the network's latency, and more if an explicit fabric has it so.
    if (crossed.is_nic()) sum += crossed.latency - 0.5 * state_->system.network_latency;
  }
  return sum;
}

std::optional<LinkId> Topology::nic_of(Rank rank, bool outward) const {
  const auto [domain, gpu] = state_->position(rank);
  DomainGraph& graph = state_->graph(domain);
  const std::vector<int>& nics = outward ? graph.exits(gpu) : graph.entrances(gpu);
  if (nics.empty()) return std::nullopt;
  const DomainGraph::Path& path =
      outward ? graph.to_nic(gpu, nics.front()) : graph.from_nic(nics.front(), gpu);
  for (const int index : path.links)
    if (graph.links()[static_cast<std::size_t>(index)].link.is_nic())
      return state_->domain_link(domain, index);
  return std::nullopt;
}

LinkId Topology::add_port(BytesPerSecond capacity) {
  LinkId id = no_link;
  state_->enter(id, {LinkKind::port, capacity, {}, -1, 0}, {of_ports, state_->ports++});
  return id;
}

int Topology::link_count() const { return static_cast<int>(state_->links.size()); }

const Link& Topology::link(LinkId id) const {
  assert(0 <= id.value && id.value < link_count());
  return state_->links[static_cast<std::size_t>(id.value)];
}

std::string Topology::name(LinkId id) const {
  assert(0 <= id.value && id.value < link_count());
  return state_->name(id);
}

double Topology::gpu_speed(Rank rank) const {
  const auto found = state_->speeds.find(rank.value);
  return found == state_->speeds.end() ? 1.0 : found->second;
}

const FabricPlan& Topology::fabric() const { return state_->plan; }
const std::vector<NamedLink>& Topology::domain_links() const { return state_->domain.links(); }

}  // namespace orrery
