#include "sim/layers/expert_layer_host.hpp"

namespace orrery {

namespace {

double slowdown_of(const Scenario& scenario) {
  return scenario.system.host_slowdown *
         (scenario.plan.ep_overlap ? scenario.software.overlapped_host : 1.0);
}

}  // namespace

Seconds router_host(const Scenario& scenario) {
  return slowdown_of(scenario) * scenario.software.expert_layer_host.router;
}

ExpertLayerHostParts forward_host(const Scenario& scenario) {
  const ExpertLayerHost& host = scenario.software.expert_layer_host;
  const double slowdown = slowdown_of(scenario);
  const auto experts = static_cast<double>(scenario.model.experts->count / scenario.plan.ep);
  const Seconds exchange = scenario.plan.ep > 1 ? host.exchange : Seconds{};
  return {slowdown * host.attention + router_host(scenario),
          slowdown * (exchange + experts * host.expert), slowdown * exchange};
}

ExpertLayerHostParts backward_host(const Scenario& scenario, BackwardPart part) {
  const ExpertLayerHostParts forward = forward_host(scenario);
  const double share = part == BackwardPart::whole ? 1.0 : 0.5;
  return {share * forward.after, share * forward.experts, share * forward.before};
}

}  // namespace orrery
