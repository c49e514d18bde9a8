#pragma once

#include "sim/cluster/topology.hpp"
#include "sim/collectives/collective_program.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// What moving a message costs by itself.
struct MessagePrices {
  Seconds launch;              ///< Once, before the first step: one kernel runs the program.
  Seconds hop_inside;          ///< Each message inside a domain; outside: Topology::latency.
  BytesPerSecond rate_inside;  ///< Alone on its links.
  BytesPerSecond rate_outside;
};

struct ProgramGraph {
  TaskGraph graph;
  std::vector<TaskId> messages;  ///< In the program's order.
};

/// Rank r is GPU r of `topology`. A message without bytes takes no time. A join for each rank and
/// step says that the rank has done it. Errors (infeasible, at `place`): messages that wait for
/// each other in a circle, with ranks, steps and bytes; no way between two ranks.
ProgramGraph program_graph(const CollectiveProgram& program, const Topology& topology,
                           const MessagePrices& prices, const Place& place);

}  // namespace orrery
