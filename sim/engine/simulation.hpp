#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/engine/wires.hpp"

namespace orrery {

class Simulation;

/// Hears of each task that finishes, while simulation.now() is the time of it, and may add tasks
/// then.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual void finished(Simulation& simulation, TaskId task) = 0;
};

struct EngineChoice {
  Engine engine = Engine::own;
  /// Of Engine::own: more flows than this, joined by common links, are SimGrid's.
  std::size_t most_shared_here = Wires::most_shared_here;
};

/// Tasks that wait for each other and share a topology's links, and that may become more while they
/// run. A task starts when the last task that it waits for finishes; flows share links by max-min
/// fairness. May be made again and again in one process; one runs at a time.
class Simulation {
 public:
  explicit Simulation(const Topology& topology, EngineChoice choice = {});
  /// Begins with all of `graph`, which must outlive it.
  Simulation(const TaskGraph& graph, const Topology& topology, EngineChoice choice = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  /// Before run(), or from a driver. `after`: what it waits for, finished or not. Ids count up,
  /// from the graph's size.
  TaskId add(Task task, std::span<const TaskId> after = {});
  const Task& task(TaskId id) const;
  /// When a task that has started did, and when it finished if it has.
  const Span& span(TaskId id) const;
  Ticks now() const;

  /// Until no task is left. Of all tasks by their ids; once.
  /// Errors: infeasible where simulated time passes the clock's end (Ticks::end()).
  /// Throws std::logic_error naming the tasks that wait where not all can finish (a deadlock).
  Timeline run(Driver* driver = nullptr);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace orrery
