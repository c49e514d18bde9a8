#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

struct Span {
  Ticks start;
  Ticks finish;

  Seconds length() const { return (finish - start).seconds(); }
};

/// The times of all tasks of a graph, by task id, from the run's beginning.
struct Timeline {
  std::vector<Span> spans;
  Ticks makespan;
  Simulator simulator = Simulator::own;

  const Span& of(TaskId id) const { return spans[static_cast<std::size_t>(id.value)]; }
};

class Simulation;

/// Is notified of each task that finishes, while simulation.now() is the time of it, and may add
/// tasks then.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual void finished(Simulation& simulation, TaskId task) = 0;
};

/// Tasks that wait for each other and share a topology's links, and that may become more while they
/// run. A task starts when its last predecessor finishes; flows share links as the network model of
/// `simulator` decides. One runs at a time in a process.
class Simulation {
 public:
  explicit Simulation(const Topology& topology, Simulator simulator = chosen_simulator());
  /// Begins with all of `graph`, which must outlive it.
  Simulation(const TaskGraph& graph, const Topology& topology,
             Simulator simulator = chosen_simulator());
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  /// Adds a task before run(), or from a driver. Predecessors `after` may have finished or not. Ids
  /// count up, from the graph's size.
  TaskId add(Task task, std::span<const TaskId> after = {});
  const Task& task(TaskId id) const;
  /// The start of a task that has started, and its finish if it has finished.
  const Span& span(TaskId id) const;
  Ticks now() const;

  /// Runs once, until no task is left. Returns the times of all tasks by their ids. Errors:
  /// infeasible if simulated time passes the clock's end (Ticks::end()). Throws std::logic_error
  /// naming the waiting tasks if not all can finish (a deadlock).
  Timeline run(Driver* driver = nullptr);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

/// Runs a task graph that does not grow.
inline Timeline execute(const TaskGraph& graph, const Topology& topology,
                        Simulator simulator = chosen_simulator()) {
  return Simulation{graph, topology, simulator}.run();
}

}  // namespace orrery
