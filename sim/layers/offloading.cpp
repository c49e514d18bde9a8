#include "sim/layers/offloading.hpp"

#include "sim/layers/layer_activations.hpp"

namespace orrery {

Seconds host_copies(const Scenario& scenario) {
  if (scenario.plan.offload_layers == 0) return {};
  return activations_on_host(scenario) / scenario.system.gpu.host;
}

void wait_for_host_copies(const Scenario& scenario, StageCost& cost) {
  const Seconds copy = host_copies(scenario);
  if (copy == Seconds{}) return;
  for (const bool forward : {true, false}) {
    Seconds computed;
    for (std::size_t i = 0; i < cost.count(forward); ++i) {
      const Bucket& bucket = cost.bucket(forward, i);
      computed += (forward ? bucket.forward : bucket.backward).time();
    }
    if (copy <= computed) continue;
    Bucket& waits = cost.bucket(forward, forward ? cost.count(true) - 1 : 0);
    (forward ? waits.forward : waits.backward)
        .append(waiting(copy - computed, "wait for host copies"));
  }
}

}  // namespace orrery
