#include "sim/estimate/lone_collective.hpp"

#include "sim/engine/execute.hpp"
#include "sim/graph/choose_cast.hpp"
#include "sim/graph/group_flows.hpp"
#include "sim/graph/task_graph.hpp"

namespace orrery {
namespace {

BytesPerSecond per_second(Bytes bytes, Seconds time) {
  return time > Seconds{} ? bytes / time : BytesPerSecond{};
}

// Ranks fill nodes in turn, so that nodes which are used in part become smaller ones, in which each
// GPU keeps its share of the NICs.
System with_nodes_of(System system, int gpus) {
  if (gpus == system.gpus_per_node) return system;
  const int nodes_per_domain = system.nvlink_domain / system.gpus_per_node;
  system.nic = static_cast<double>(system.nics_per_node) / system.gpus_per_node * system.nic;
  system.gpus_per_node = system.nics_per_node = gpus;
  system.nvlink_domain = gpus * nodes_per_domain;
  return system;
}

}  // namespace

BytesPerSecond LoneCollectiveTime::algorithm_bandwidth(const LoneCollective& of) const {
  return per_second(of.bytes, time);
}

BytesPerSecond LoneCollectiveTime::bus_bandwidth(const LoneCollective& of) const {
  return of.ranks < 2 ? BytesPerSecond{} : wire_share(of.kind, of.ranks) * algorithm_bandwidth(of);
}

LoneCollectiveTime run_alone(const LoneCollective& collective, const System& system,
                             const CollectiveOptions& options) {
  const GroupShape group = group_on(system, collective.ranks, collective.nodes);
  const CollectiveCost cost =
      CollectiveTime{system, options}(collective.kind, collective.bytes, group);
  if (collective.ranks == 1 || collective.bytes.si() <= 0.0) return {cost, {}};

  const System used = with_nodes_of(system, collective.ranks / collective.nodes);
  Plan plan;
  plan.tp = collective.ranks;
  const Placement placement{plan, used};
  Topology topology = Topology::build(used, collective.ranks);
  const Cast cast = choose_cast(used, placement, topology, false);
  Task task;
  task.kind = Task::Kind::transfer;
  task.what = Task::What::collective;
  task.stream = Stream::tensor;
  task.duration = cost.latency;
  task.flows = collective_flows(topology, cast, Rank{0}, {cost, GroupKind::tensor});
  TaskGraph graph;
  graph.add(std::move(task));
  return {cost, execute(graph, topology).makespan};
}

}  // namespace orrery
