#include "sim/plan/expert_dispatcher.hpp"

namespace orrery {

const std::vector<std::string>& expert_dispatcher_names() {
  static const std::vector<std::string> names{"alltoall", "allgather",          "hierarchical",
                                              "deepep",   "deepep_low_latency", "hybridep"};
  return names;
}

const std::string& name(ExpertDispatcher dispatcher) {
  return expert_dispatcher_names()[static_cast<std::size_t>(dispatcher)];
}

bool copies_on_arrival(ExpertDispatcher dispatcher) {
  return dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::hybridep;
}

}  // namespace orrery
