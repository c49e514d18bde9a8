#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/core/json_value.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// One message of a user-defined collective.
struct Message {
  int step = 0;       ///< The sender's step.
  int recv_step = 0;  ///< The receiver's step.
  int src = 0;
  int dst = 0;
  Bytes bytes;
};

/// An explicit collective. Each rank goes through its own steps: it begins one when all that it
/// sends and receives in its earlier steps has arrived. A message moves when both its ends have
/// reached their step. (docs/guides/operations.md, "One collective".)
struct CollectiveProgram {
  std::vector<Message> messages;
  int ranks = 1;  ///< The highest named rank plus one.
};

/// A list of {"step": 0, "src": 0, "dst": 1, "bytes": 4096, "recv_step": 0}; without the last the
/// receiver's step is the sender's. Errors (bad_input): no list, or an empty one; missing, unknown
/// or misspelled keys; numbers out of range; a rank that sends to itself.
CollectiveProgram parse_collective_program(const JsonValue& json);

/// The costs of moving a message.
struct MessagePrices {
  Seconds launch;              ///< Once, before the first step: one kernel runs the program.
  Seconds hop_inside;          ///< Each message inside a domain; outside: Topology::latency.
  BytesPerSecond rate_inside;  ///< Alone on its links.
  BytesPerSecond rate_outside;
};

struct ProgramGraph {
  TaskGraph graph;
  std::vector<TaskId> messages;  ///< One task per message of the program.
};

/// Rank r is GPU r of `topology`. A message without bytes takes no time. A join for each rank and
/// step marks its end. Errors (infeasible, at `place`): messages that wait for each other in a
/// cycle, with ranks, steps and bytes; no route between two ranks.
ProgramGraph program_graph(const CollectiveProgram& program, const Topology& topology,
                           const MessagePrices& prices, const Place& place);

/// The messages that are sent in one step.
struct ProgramStep {
  int messages = 0;
  Bytes bytes;
  Seconds start;   ///< Start of the first.
  Seconds finish;  ///< Finish of the last.
};

struct ProgramTime {
  Seconds time;
  std::map<int, ProgramStep> steps;  ///< Keyed by the sender's step.
  Simulator simulator = Simulator::own;
};

/// Runs a user-defined collective on `system`, rank r on GPU r: one kernel is launched, and each
/// message takes one hop and then its bytes over the real route, at the rate of a send, less where
/// messages meet. Errors (infeasible): a deadlock, no route between two ranks, at `place`; more
/// ranks than GPUs.
ProgramTime run_program(const CollectiveProgram& program, const System& system, const Place& place);

}  // namespace orrery
