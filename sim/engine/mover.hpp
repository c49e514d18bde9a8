#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/engine/task.hpp"

namespace orrery {

/// The tasks of a running simulation, as their mover sees them: those that it began with, and those
/// that were added since.
class MovedTasks {
 public:
  const Task& task(TaskId id) const {
    const auto index = static_cast<std::size_t>(id.value);
    return index < begun_with_.size() ? begun_with_[index] : added_[index - begun_with_.size()];
  }
  /// `id` is over. May start others before it returns.
  virtual void finish(TaskId id, Ticks now) = 0;

 protected:
  explicit MovedTasks(std::span<const Task> begun_with) : begun_with_{begun_with} {}
  ~MovedTasks() = default;

  std::span<const Task> begun_with_;
  std::vector<Task> added_;
};

/// Takes tasks through time: a duration or a chain, then flows. A mover knows of no dependencies:
/// it is told when to start a task, and tells when it is over.
class Mover {
 public:
  virtual ~Mover() = default;
  virtual void start(TaskId id, const Task& task) = 0;
  /// The topology may have numbered more links since the mover was made or last told.
  virtual void learn_links() = 0;
  /// Returns when no task is under way.
  virtual void run() = 0;
};

/// By a calendar of its own. A few flows that meet share links as Wires has it; as soon as more
/// than `most_shared_here` are joined, all of them are SimGrid's until they have arrived. A chain
/// that nobody delays is one event.
std::unique_ptr<Mover> own_mover(MovedTasks& tasks, const Topology& topology,
                                 std::size_t most_shared_here);

/// By SimGrid alone: each duration is a timer of it, each flow a Comm, and each phase of a chain
/// its kernels' timers and its flows. SimGrid ends a Comm up to 1e-11 s early
/// (surf/precision, fluid_network.cpp).
std::unique_ptr<Mover> simgrid_mover(MovedTasks& tasks, const Topology& topology);

}  // namespace orrery
