#include "sim/collectives/isolated_collective.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "sim/collectives/collective_flows.hpp"
#include "sim/core/number_text.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/plan/refinement.hpp"

namespace orrery {
namespace {

std::size_t index_of(LinkId link) { return static_cast<std::size_t>(link.value); }

struct Painting {
  Colours flows;
  Colours links;

  std::size_t classes() const { return distinct(flows) + distinct(links); }
};

Painting first_colours(const Topology& topology, const std::vector<Flow>& flows) {
  Painting painting;
  for (const Flow& flow : flows)
    painting.flows.push_back(
        mix(std::bit_cast<Colour>(flow.bytes.si()), std::bit_cast<Colour>(flow.rate.si())));
  for (int l = 0; l < topology.link_count(); ++l)
    painting.links.push_back(std::bit_cast<Colour>(topology.link(LinkId{l}).capacity.si()));
  return painting;
}

// A flow depends on its links in order, a link on the multiset of its flows.
Painting repainted(const Painting& old, const std::vector<Flow>& flows) {
  Painting next{old.flows, Colours(old.links.size(), 0)};
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const LinkUse& use : flows[f].route)
      next.flows[f] = mix(next.flows[f], old.links[index_of(use.link)]);
    for (const LinkUse& use : flows[f].route)
      next.links[index_of(use.link)] += mix(1, next.flows[f]);
  }
  for (std::size_t l = 0; l < old.links.size(); ++l)
    next.links[l] = mix(old.links[l], next.links[l]);
  return next;
}

}  // namespace

std::vector<Flow> fold_flows(const Topology& topology, const std::vector<Flow>& flows) {
  Painting painting = first_colours(topology, flows);
  for (std::size_t before = 0, classes = painting.classes(); classes > before;) {
    painting = repainted(painting, flows);
    before = classes;
    classes = painting.classes();
  }
  std::unordered_map<Colour, LinkId> first_link;
  for (int l = 0; l < topology.link_count(); ++l)
    first_link.try_emplace(painting.links[static_cast<std::size_t>(l)], LinkId{l});

  // Crossings of a class of links by a class of flows, and the number of links of that class.
  std::map<std::pair<Colour, Colour>, int> crossings;
  std::unordered_map<Colour, int> links_of;
  for (Colour link : painting.links) ++links_of[link];
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const LinkUse& use : flows[f].route)
      ++crossings[{painting.flows[f], painting.links[index_of(use.link)]}];

  std::vector<Flow> folded;
  std::unordered_map<Colour, bool> simulated;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (!simulated.try_emplace(painting.flows[f], true).second) continue;
    Flow flow{{}, flows[f].bytes, flows[f].rate};
    for (const LinkUse& use : flows[f].route) {
      const Colour link = painting.links[index_of(use.link)];
      const LinkId canonical = first_link.at(link);
      const bool known = std::any_of(flow.route.begin(), flow.route.end(),
                                     [&](const LinkUse& other) { return other.link == canonical; });
      // Equally many cross each link of the class.
      if (!known)
        flow.route.push_back(
            {canonical, crossings.at({painting.flows[f], link}) / links_of.at(link)});
    }
    folded.push_back(std::move(flow));
  }
  return folded;
}

std::optional<std::vector<Flow>> link_flows(const Topology& topology,
                                            const std::vector<Leg>& legs) {
  struct Load {
    double leg = 0.0;  // Bytes of each leg that crosses the link.
    double all = 0.0;  // Bytes of all of them.
  };
  std::vector<Load> loads;
  const Leg* slowest = nullptr;
  for (const Leg& leg : legs) {
    if (!slowest || leg.bytes / leg.rate > slowest->bytes / slowest->rate) slowest = &leg;
    for (LinkId link : route_of(topology, leg)) {
      if (index_of(link) >= loads.size())
        loads.resize(static_cast<std::size_t>(topology.link_count()));
      Load& load = loads[index_of(link)];
      if (load.all > 0.0 && load.leg != leg.bytes.si()) return std::nullopt;
      load.leg = leg.bytes.si();
      load.all += load.leg;
    }
  }
  std::map<std::pair<double, double>, LinkId> different;  // Keyed by capacity and load.
  for (int l = 0; l < static_cast<int>(loads.size()); ++l)
    different.try_emplace({topology.link(LinkId{l}).capacity.si(), loads[index_of(LinkId{l})].all},
                          LinkId{l});
  std::vector<Flow> flows;
  if (slowest) flows.push_back({{}, slowest->bytes, slowest->rate});
  for (const auto& [kind, link] : different)
    if (kind.second > 0.0)
      flows.push_back({{{link, 1}}, Bytes{kind.second}, BytesPerSecond{kind.first}});
  return flows;
}

namespace {

BytesPerSecond per_second(Bytes bytes, Seconds time) {
  return time > Seconds{} ? bytes / time : BytesPerSecond{};
}

// Nodes with only the first so many GPUs in use, as smaller nodes with the NICs next to these.
System with_nodes_of(System system, int gpus) {
  if (gpus == system.gpus_per_node) return system;
  const int nodes_per_domain = system.nvlink_domain / system.gpus_per_node;
  const int sharers = std::max(1, system.gpus_per_node / system.nics_per_node);
  const int nics_of_gpu = std::max(1, system.nics_per_node / system.gpus_per_node);
  system.nics_per_node = (gpus + sharers - 1) / sharers * nics_of_gpu;
  system.gpus_per_node = gpus;
  system.nvlink_domain = gpus * nodes_per_domain;
  return system;
}

// Applies to all-to-all exchanges, whose messages grow with the square of the ranks; all others
// have a few a rank. Peaks of whole processes: 2.6 kB a flow that SimGrid carries, from 4,032 to
// 25,440 of them; up to 64 bytes a folded message, of 10^6.
void require_host_memory(const IsolatedCollective& collective, bool every_message, bool every_flow,
                         Bytes most) {
  if (collective.kind != CollectiveKind::all_to_all || !every_message || most <= Bytes{}) return;
  constexpr Bytes of_a_flow{2600.0};
  constexpr Bytes of_a_message{64.0};
  const double messages = 1.0 * collective.ranks * (collective.ranks - 1);
  const Bytes needed = messages * (every_flow ? of_a_flow : of_a_message);
  if (needed <= most) return;
  fail_infeasible({},
                  "a simulation of " + grouped(static_cast<std::int64_t>(messages)) +
                      " messages needs some " + gigabytes_text(needed) +
                      " of this machine's memory, and may take " + gigabytes_text(most),
                  std::string{every_flow ? "leave --unfolded out" : "take fewer GPUs"} +
                      ", or say --host-memory '" + gigabytes_text(1.2 * needed) + "'");
}

// The ranks, the links between them, and the part of both that is simulated. If all nodes are
// alike, partly used ones become smaller nodes of which all ranks take part.
struct Machine {
  Machine(const System& whole, const IsolatedCollective& collective, bool all)
      : system{whole.uniform() ? with_nodes_of(whole, collective.ranks / collective.nodes) : whole},
        placement{plan_of(collective.nodes * system.gpus_per_node), system},
        unfolded{all} {
    for (int r = 0; r < collective.ranks; ++r) {
      const int in_node = collective.ranks / collective.nodes;
      all_ranks.push_back(Rank{r / in_node * system.gpus_per_node + r % in_node});
    }
  }

  static Plan plan_of(int ranks) {
    Plan plan;
    plan.tp = ranks;
    return plan;
  }

  // True if one rank's flows represent all. Ranks differ in a shift and in a tree; a tree's differ
  // in their network bytes, which matters if these pass a PCIe slot with other flows.
  bool all_alike(const CollectiveCost& cost) const {
    const bool slots = system.wiring == NodeWiring::pcie;
    return system.uniform() && cost.pattern != CollectivePattern::shift &&
           !(slots && cost.pattern == CollectivePattern::tree);
  }

  // The flows of one collective of all ranks.
  std::vector<Flow> flows(const CollectiveCost& cost) {
    if (!unfolded && all_alike(cost)) {
      const RankClasses classes = choose_classes(system, placement, topology, false);
      if (cost.pattern == CollectivePattern::pairs)
        return exchange_flows(topology, classes, all_ranks, exchange_of(placement, all_ranks, cost),
                              cost.scale_up_rate, cost.network_rate);
      return collective_flows(topology, classes, all_ranks, cost);
    }
    return flows(legs_of(placement, all_ranks, cost));
  }

  std::vector<Flow> flows(const std::vector<Leg>& legs) {
    if (unfolded) return flows_of(topology, legs);
    if (const auto a_link = link_flows(topology, legs)) return *a_link;
    return fold_flows(topology, flows_of(topology, legs));
  }

  System system;
  Placement placement;
  Topology topology = Topology::build(system, placement.ranks());
  std::vector<Rank> all_ranks;
  bool unfolded;
};

// Collectives one after another.
IsolatedCollectiveTime run(const std::vector<CollectiveCost>& costs,
                           const std::vector<std::vector<Flow>>& flows, const Machine& machine) {
  IsolatedCollectiveTime result;
  TaskGraph graph;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    Task task;
    task.stream = Stream::tensor;
    task.duration = costs[i].latency;
    task.flows = flows[i];
    result.flows += static_cast<int>(task.flows.size());
    const TaskId id = graph.add(std::move(task));
    if (i > 0) graph.depends(id, TaskId{id.value - 1});
  }
  result.simulator = chosen_simulator();
  result.time = execute(graph, machine.topology).makespan.seconds();
  return result;
}

void append(std::vector<Leg>& legs, const std::vector<Leg>& more) {
  legs.insert(legs.end(), more.begin(), more.end());
}

IsolatedCollectiveTime run_hierarchical(const IsolatedCollective& collective, GroupShape group,
                                        const CollectiveTime& price, Machine& machine) {
  if (group.per_domain * group.domains != group.ranks)
    fail_infeasible({}, "a hierarchical all-reduce needs equally many ranks in every NVLink domain",
                    "use a multiple of the domain's GPUs");
  std::vector<std::vector<Rank>> domains;
  std::vector<std::vector<Rank>> rails(static_cast<std::size_t>(group.per_domain));
  for (Rank rank : machine.all_ranks) {
    if (domains.empty() || !machine.placement.same_domain(domains.back().front(), rank))
      domains.emplace_back();
    rails[domains.back().size()].push_back(rank);
    domains.back().push_back(rank);
  }
  const GroupShape inside{group.per_domain, 1, group.per_domain};
  const GroupShape across{group.domains, group.domains, 1, group.further_switches};
  const std::vector<CollectiveCost> costs{
      price(CollectiveKind::reduce_scatter, collective.bytes, inside),
      price(CollectiveKind::all_reduce, collective.bytes / group.per_domain, across),
      price(CollectiveKind::all_gather, collective.bytes, inside)};
  std::vector<std::vector<Flow>> flows;
  for (std::size_t part = 0; part < costs.size(); ++part) {
    std::vector<Leg> legs;
    for (const auto& members : part == 1 ? rails : domains)
      if (members.size() > 1) append(legs, legs_of(machine.placement, members, costs[part]));
    flows.push_back(machine.flows(legs));
  }
  IsolatedCollectiveTime result = run(costs, flows, machine);
  result.cost = costs[group.domains > 1 ? 1 : 0];
  result.cost.algorithm = "hierarchical";
  return result;
}

}  // namespace

BytesPerSecond IsolatedCollectiveTime::algorithm_bandwidth(const IsolatedCollective& of) const {
  return per_second(of.bytes, time);
}

BytesPerSecond IsolatedCollectiveTime::bus_bandwidth(const IsolatedCollective& of) const {
  return of.ranks < 2 ? BytesPerSecond{} : wire_share(of.kind, of.ranks) * algorithm_bandwidth(of);
}

IsolatedCollectiveTime run_alone(const IsolatedCollective& collective, const System& whole,
                                 const CollectiveOptions& options, bool unfolded,
                                 Bytes host_memory) {
  const System system = filled_evenly(whole, collective.nodes * whole.gpus_per_node);
  GroupShape group = group_on(system, collective.ranks, collective.nodes);
  if (collective.ranks == 1 || collective.bytes.si() <= 0.0) return {{}, {}, 0, chosen_simulator()};

  require_host_memory(collective, unfolded || !system.uniform(), unfolded, host_memory);
  Machine machine{system, collective, unfolded};
  if (!system.uniform())
    group.further_switches =
        further_switches(machine.placement, machine.topology, machine.all_ranks);
  CollectiveOptions on_idle_nodes = options;
  on_idle_nodes.alone = true;
  const CollectiveTime price{system, on_idle_nodes};
  const CollectiveCost cost = price(collective.kind, collective.bytes, group);
  if (collective.hierarchical) return run_hierarchical(collective, group, price, machine);
  IsolatedCollectiveTime result = run({cost}, {machine.flows(cost)}, machine);
  result.cost = cost;
  // The sweeps were measured without overridden links and GPUs.
  if (cost.tag == Tag::measured && !(whole.link_overrides.empty() && whole.gpu_overrides.empty()))
    result.cost.tag = Tag::interpolated;
  // The bound also holds if NCCL chooses a tree, which sends fewer bytes than a ring.
  CollectiveCost least = cost;
  if (collective.kind == CollectiveKind::all_reduce)
    least.network_bytes = std::min(cost.network_bytes, collective.bytes / group.per_domain);
  result.least = least.at_line_rates(system.scale_up, system.network_rate(group.per_domain));
  return result;
}

}  // namespace orrery
