#include "sim/training/waiting.hpp"

#include <cmath>

namespace orrery {

Seconds waiting_for_others(const Scenario& scenario, Seconds step) {
  return waiting_for_others(scenario, step, scenario.plan.gpus());
}

Seconds with_waiting(const Scenario& scenario, Seconds step) {
  return step + waiting_for_others(scenario, step);
}

Seconds waiting_for_others(const Scenario& scenario, Seconds step, int gpus) {
  const Plan& plan = scenario.plan;
  if (!plan.wait_for_others || gpus <= largest_cluster_without_waiting) return {};
  const double doublings = std::log2(static_cast<double>(gpus) / largest_cluster_without_waiting);
  const bool one_graph = plan.cuda_graphs == CudaGraphs::step;
  const Seconds of_hosts = one_graph ? Seconds{} : scenario.software.wait_time;
  return doublings * (scenario.system.network.wait_share * step + of_hosts);
}

}  // namespace orrery
