#include "sim/collectives/lone_collective.hpp"

#include "sim/collectives/collective_legs.hpp"
#include "sim/collectives/fold_flows.hpp"
#include "sim/collectives/group_flows.hpp"
#include "sim/core/number_text.hpp"
#include "sim/engine/execute.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/choose_cast.hpp"
#include "sim/plan/hops.hpp"

namespace orrery {
namespace {

BytesPerSecond per_second(Bytes bytes, Seconds time) {
  return time > Seconds{} ? bytes / time : BytesPerSecond{};
}

// Nodes of which so many GPUs are used, as smaller nodes in which each GPU keeps its share of the
// NICs.
System with_nodes_of(System system, int gpus) {
  if (gpus == system.gpus_per_node) return system;
  const int nodes_per_domain = system.nvlink_domain / system.gpus_per_node;
  system.nic = static_cast<double>(system.nics_per_node) / system.gpus_per_node * system.nic;
  system.gpus_per_node = system.nics_per_node = gpus;
  system.nvlink_domain = gpus * nodes_per_domain;
  return system;
}

// Of exchanges of all with all, whose messages grow with the square of the ranks; all others have a
// few a rank. Peaks of whole processes: 2.6 kB a flow that SimGrid carries, from 4,032 to 25,440 of
// them; up to 64 bytes a message that is folded with others, of 10^6.
void require_host_memory(const LoneCollective& collective, bool every_message, bool every_flow,
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

// The ranks, the links between them, and how much of both is simulated. Where all nodes are alike,
// those that are used in part become smaller ones and all ranks of them take part.
struct Machine {
  Machine(const System& whole, const LoneCollective& collective, bool all)
      : system{whole.uniform() ? with_nodes_of(whole, collective.ranks / collective.nodes) : whole},
        placement{plan_of(collective.nodes * system.gpus_per_node), system},
        unfolded{all} {
    for (int r = 0; r < collective.ranks; ++r) {
      const int in_node = collective.ranks / collective.nodes;
      everyone.push_back(Rank{r / in_node * system.gpus_per_node + r % in_node});
    }
  }

  static Plan plan_of(int ranks) {
    Plan plan;
    plan.tp = ranks;
    return plan;
  }

  // Whether one rank's flows tell of all. In a shift and in a tree ranks differ; a tree's differ in
  // what they send to the network, which counts where that passes a PCIe slot with other flows.
  bool all_alike(const CollectiveCost& cost) const {
    const bool slots = system.wiring == NodeWiring::pcie;
    return system.uniform() && cost.pattern != CollectivePattern::shift &&
           !(slots && cost.pattern == CollectivePattern::tree);
  }

  // The flows of one collective of all ranks.
  std::vector<Flow> flows(const CollectiveCost& cost) {
    if (!unfolded && all_alike(cost)) {
      const Cast cast = choose_cast(system, placement, topology, false);
      if (cost.pattern == CollectivePattern::pairs)
        return exchange_flows(topology, cast, everyone, exchange_of(placement, everyone, cost),
                              cost.scale_up_rate, cost.network_rate);
      return collective_flows(topology, cast, everyone, cost);
    }
    return flows(legs_of(placement, everyone, cost));
  }

  std::vector<Flow> flows(const std::vector<Leg>& legs) {
    if (unfolded) return flows_of(topology, legs);
    if (const auto a_link = link_flows(topology, legs)) return *a_link;
    return fold_flows(topology, flows_of(topology, legs));
  }

  System system;
  Placement placement;
  Topology topology = Topology::build(system, placement.ranks());
  std::vector<Rank> everyone;
  bool unfolded;
};

// Collectives one after another.
LoneCollectiveTime run(const std::vector<CollectiveCost>& costs,
                       const std::vector<std::vector<Flow>>& flows, const Machine& machine,
                       Engine engine) {
  LoneCollectiveTime result;
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
  result.engine = engine;
  result.time = execute(graph, machine.topology, {engine}).makespan.seconds();
  return result;
}

void append(std::vector<Leg>& legs, const std::vector<Leg>& more) {
  legs.insert(legs.end(), more.begin(), more.end());
}

LoneCollectiveTime run_hierarchical(const LoneCollective& collective, GroupShape group,
                                    const CollectiveTime& price, Machine& machine, Engine engine) {
  if (group.per_domain * group.domains != group.ranks)
    fail_infeasible({}, "a hierarchical all-reduce needs equally many ranks in every NVLink domain",
                    "use a multiple of the domain's GPUs");
  std::vector<std::vector<Rank>> domains;
  std::vector<std::vector<Rank>> rails(static_cast<std::size_t>(group.per_domain));
  for (Rank rank : machine.everyone) {
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
  LoneCollectiveTime result = run(costs, flows, machine, engine);
  result.cost = costs[group.domains > 1 ? 1 : 0];
  result.cost.algorithm = "hierarchical";
  return result;
}

}  // namespace

BytesPerSecond LoneCollectiveTime::algorithm_bandwidth(const LoneCollective& of) const {
  return per_second(of.bytes, time);
}

BytesPerSecond LoneCollectiveTime::bus_bandwidth(const LoneCollective& of) const {
  return of.ranks < 2 ? BytesPerSecond{} : wire_share(of.kind, of.ranks) * algorithm_bandwidth(of);
}

LoneCollectiveTime run_alone(const LoneCollective& collective, const System& system,
                             const CollectiveOptions& options, bool unfolded, Engine engine,
                             Bytes host_memory) {
  GroupShape group = group_on(system, collective.ranks, collective.nodes);
  if (collective.ranks == 1 || collective.bytes.si() <= 0.0) return {{}, {}, 0, engine};

  require_host_memory(collective, unfolded || !system.uniform(), unfolded, host_memory);
  Machine machine{system, collective, unfolded};
  if (!system.uniform())
    group.further_switches =
        further_switches(machine.placement, machine.topology, machine.everyone);
  const CollectiveTime price{system, options};
  const CollectiveCost cost = price(collective.kind, collective.bytes, group);
  if (collective.hierarchical) return run_hierarchical(collective, group, price, machine, engine);
  LoneCollectiveTime result = run({cost}, {machine.flows(cost)}, machine, engine);
  result.cost = cost;
  return result;
}

}  // namespace orrery
