#pragma once

#include <functional>
#include <vector>

#include "sim/base/core/units.hpp"
#include "sim/cluster/topology/topology.hpp"
#include "sim/engine/graph/task.hpp"

namespace orrery {

/// The only contact with SimGrid, as two calls: wait for a time, and move bytes over links. One
/// exists in a process; its clock goes on from run to run.
class Platform {
 public:
  static Platform& instance();

  /// Forgets the links of the run before and takes these, also those that `topology` numbers later.
  /// It must outlive the run.
  void use_links(const Topology& topology);

  double now() const;
  void timer(Seconds duration, std::function<void()> done);
  void flow(const Flow& flow, std::function<void()> done);
  /// Returns when nothing is pending.
  void run();

 private:
  Platform();
  struct State;
  struct Transfer;
  State*
      state_;  // Lives as long as the process: SimGrid's engine cannot be taken down and rebuilt.
};

}  // namespace orrery
