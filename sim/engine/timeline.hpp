#pragma once

#include <string>
#include <vector>

#include "sim/core/ticks.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Who moves tasks through time (docs/notes/engines.md says which does what, and at which cost).
enum class Engine {
  own,     ///< A calendar of ticks and max-min sharing here; SimGrid where many flows meet.
  simgrid  ///< SimGrid alone: a timer for each duration and a Comm for each flow.
};
inline const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names{"own", "simgrid"};
  return names;
}
inline const std::string& name(Engine engine) {
  return engine_names()[static_cast<std::size_t>(engine)];
}

struct Span {
  Ticks start;
  Ticks finish;

  Seconds length() const { return (finish - start).seconds(); }
};

/// When each task of a graph ran, by task id, from the run's beginning. What engine and output
/// share: no SimGrid type in it.
struct Timeline {
  std::vector<Span> spans;
  Ticks makespan;
  Engine engine = Engine::own;

  const Span& of(TaskId id) const { return spans[static_cast<std::size_t>(id.value)]; }
};

}  // namespace orrery
