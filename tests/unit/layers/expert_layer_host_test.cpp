#include <gtest/gtest.h>

#include "sim/layers/layer_prices.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::expert_layer_host_test {
namespace {

constexpr ExpertLayerHost host{Seconds{1.0}, Seconds{2.0}, Seconds{4.0}, Seconds{8.0}};

// 8 experts over `ep` of eight ranks, on a host that takes `slowdown` times an x86 host's time.
Scenario mixture(int ep, double slowdown, const ExpertLayerHost& busy = host) {
  PlanRequest request = plan_request(1, 1, 1, 8, 64, "megatron-core");
  request.ep = ep;
  Scenario scenario = scenario_of(small_mixture(2, 512, 8, 1024, 8, 2, 1),
                                  read_system("four-by-four", test_place), request, 8);
  scenario.software.expert_layer_host = busy;
  scenario.system.host_slowdown = slowdown;
  return scenario;
}

LayerPrice layer_of(const Scenario& scenario) {
  const KernelModel kernels{scenario.system.gpu, scenario.plan.dtype, nullptr};
  const CollectiveTime collectives{scenario.system};
  GroupShapes shapes;
  shapes.expert = {scenario.plan.ep, 1, scenario.plan.ep, {}};
  const Pricer pricer{kernels, collectives, shapes, scenario.software, scenario.system.gpu};
  return LayerPrices{scenario, pricer, shapes}.of(LayerKind::experts);
}

// Before: attention 1 and router 2. Experts: the dispatch 4, and 8 for each of 8 / ep. After: the
// combine 4. Alone, a rank exchanges nothing. A backward pass runs from the other end.
TEST(ExpertLayerHost, PartsOfAPass) {
  for (int ep : {1, 2, 8})
    for (double slowdown : {1.0, 2.5}) {
      SCOPED_TRACE(std::to_string(ep) + " ranks, host x" + std::to_string(slowdown));
      const Scenario scenario = mixture(ep, slowdown);
      const double exchange = ep > 1 ? 4.0 : 0.0;
      const ExpertLayerHostParts forward = forward_host(scenario, scenario.model);
      EXPECT_DOUBLE_EQ(forward.before.si(), slowdown * 3.0);
      EXPECT_DOUBLE_EQ(forward.experts.si(), slowdown * (exchange + 8.0 * 8 / ep));
      EXPECT_DOUBLE_EQ(forward.after.si(), slowdown * exchange);
      const ExpertLayerHostParts whole =
          backward_host(scenario, scenario.model, BackwardPart::whole);
      EXPECT_EQ(whole.before, forward.after);
      EXPECT_EQ(whole.experts, forward.experts);
      EXPECT_EQ(whole.after, forward.before);
      for (BackwardPart part : {BackwardPart::inputs, BackwardPart::weights}) {
        const ExpertLayerHostParts half = backward_host(scenario, scenario.model, part);
        EXPECT_DOUBLE_EQ(half.before.si(), 0.5 * whole.before.si());
        EXPECT_DOUBLE_EQ(half.experts.si(), 0.5 * whole.experts.si());
        EXPECT_DOUBLE_EQ(half.after.si(), 0.5 * whole.after.si());
      }
    }
}

// Where two micro-batches' layers are launched by turns, all parts take as much longer.
TEST(ExpertLayerHost, OverlapSlowsTheHost) {
  Scenario scenario = mixture(8, 1.0);
  scenario.software.overlapped_host = 1.5;
  EXPECT_DOUBLE_EQ(forward_host(scenario, scenario.model).before.si(), 3.0);
  scenario.plan.ep_overlap = true;
  EXPECT_DOUBLE_EQ(forward_host(scenario, scenario.model).before.si(), 4.5);
  EXPECT_DOUBLE_EQ(forward_host(scenario, scenario.model).experts.si(), 18.0);
  EXPECT_DOUBLE_EQ(backward_host(scenario, scenario.model, BackwardPart::whole).after.si(), 4.5);
  EXPECT_DOUBLE_EQ(router_host(scenario).si(), 3.0);
}

// Latent attention has a time of its own before the experts.
TEST(ExpertLayerHost, LatentAttentionTakesItsOwnTime) {
  Scenario scenario = mixture(8, 1.0);
  scenario.software.expert_layer_host.latent_attention = Seconds{7.0};
  EXPECT_DOUBLE_EQ(forward_host(scenario, scenario.model).before.si(), 3.0);
  scenario.model.latent = LatentAttention{0, 64, 64, 32, 64};
  const ExpertLayerHostParts parts = forward_host(scenario, scenario.model);
  EXPECT_DOUBLE_EQ(parts.before.si(), 9.0);
  EXPECT_DOUBLE_EQ(parts.experts.si(), 12.0);
}

// Shared experts are launched beside the routed ones, where a layer has them.
TEST(ExpertLayerHost, SharedExpertsTakeTheirTime) {
  Scenario scenario = mixture(8, 1.5);
  scenario.software.expert_layer_host.shared_experts = Seconds{5.0};
  EXPECT_DOUBLE_EQ(forward_host(scenario, scenario.model).experts.si(), 1.5 * 12.0);
  scenario.model.experts->shared_ffn = 64;
  const ExpertLayerHostParts parts = forward_host(scenario, scenario.model);
  EXPECT_DOUBLE_EQ(parts.before.si(), 1.5 * 3.0);
  EXPECT_DOUBLE_EQ(parts.experts.si(), 1.5 * 17.0);
  EXPECT_DOUBLE_EQ(parts.after.si(), 1.5 * 4.0);
}

// A plan's graphs take their parts of a layer from the host, and those of a step its launches too.
TEST(ExpertLayerHost, LaunchesNoGraphs) {
  PlanRequest request = plan_request(1, 1, 1, 8, 64, "megatron-core");
  request.ep = 8;
  Software software = read_software("megatron-core", test_place);
  software.expert_layer_host = host;
  software.host_launch = Seconds{16.0};
  const auto host_with = [&](CudaGraphs graphs) {
    request.cuda_graphs = graphs;
    const Scenario scenario =
        make_scenario(small_mixture(2, 512, 8, 1024, 8, 2, 1),
                      read_system("four-by-four", test_place), software, request, 8, test_place);
    const ExpertLayerHostParts parts = forward_host(scenario, scenario.model);
    return std::vector<double>{parts.before.si(), parts.experts.si(), parts.after.si(),
                               scenario.software.host_launch.si()};
  };
  EXPECT_EQ(host_with(CudaGraphs::none), (std::vector{3.0, 12.0, 4.0, 16.0}));
  EXPECT_EQ(host_with(CudaGraphs::router), (std::vector{1.0, 12.0, 4.0, 16.0}));
  EXPECT_EQ(host_with(CudaGraphs::attention), (std::vector{2.0, 12.0, 4.0, 16.0}));
  EXPECT_EQ(host_with(CudaGraphs::attention_router), (std::vector{0.0, 12.0, 4.0, 16.0}));
  EXPECT_EQ(host_with(CudaGraphs::step), (std::vector{0.0, 0.0, 0.0, 0.0}));
}

// Kernels of microseconds wait for a host of seconds: a pass takes as long as the host, and the
// exchanges, which it starts. A host of no time leaves the kernels as they are, and one that is
// faster than the GPU in one part does not make up for another.
TEST(ExpertLayerHost, TheGpuWaitsPartByPart) {
  for (int ep : {1, 4}) {
    SCOPED_TRACE(ep);
    const Scenario slow = mixture(ep, 1.0);
    const LayerPrice free = layer_of(mixture(ep, 1.0, {}));
    const LayerPrice bound = layer_of(slow);
    const ExpertLayerHostParts parts = forward_host(slow, slow.model);
    const Seconds exchanges = free.forward.exposed(GroupKind::expert);
    const Seconds busy = parts.before + parts.experts + parts.after;
    EXPECT_NEAR(bound.forward.time().si(), (busy + exchanges).si(), 1e-4);
    EXPECT_NEAR(bound.backward.time().si(), (busy + exchanges).si(), 1e-4);
    EXPECT_EQ(bound.forward.exposed(GroupKind::expert), exchanges);

    // Router alone: its part grows to 2 s, the others stay.
    const LayerPrice router = layer_of(mixture(ep, 1.0, {{}, Seconds{2.0}, {}, {}}));
    EXPECT_GT(router.forward.time(), Seconds{2.0});
    EXPECT_LT(router.forward.time(), free.forward.time() + Seconds{2.0});
  }
}

// Time that the host decides counts as the host's own.
TEST(ExpertLayerHost, WaitsAreTheHosts) {
  const PassCost pass = layer_of(mixture(4, 1.0)).forward;
  EXPECT_NEAR(pass.decisive.total().si(), pass.time().si(), 1e-9);
  EXPECT_GT(pass.decisive.at(PriceKind::host, Tag::default_value), 0.99 * pass.time());
}

}  // namespace
}  // namespace orrery::expert_layer_host_test
