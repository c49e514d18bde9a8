#include "sim/input/expert_dispatcher.hpp"

namespace orrery {

const std::vector<std::string>& expert_dispatcher_names() {
  static const std::vector<std::string> names{"alltoall", "allgather", "hierarchical", "deepep",
                                              "deepep_low_latency"};
  return names;
}

const std::string& name(ExpertDispatcher dispatcher) {
  return expert_dispatcher_names()[static_cast<std::size_t>(dispatcher)];
}

}  // namespace orrery
