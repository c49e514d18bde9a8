#include "sim/layers/host_optimizer.hpp"

#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::host_optimizer_test {
namespace {

// Four replicas of a small model on half a node of a DGX A100: PCIe 4 carries 0.8 x 32 GB/s, and
// the node's host 409.6 GB/s.
Scenario scenario_with(int percent, int zero = 1,
                       const System& system = read_system("dgx-a100-80gb", test_place)) {
  PlanRequest request = plan_request(1, 1, 2, 16, 1024, "megatron-core-fp32-reduce");
  request.offload_optimizer = percent;
  request.zero = zero;
  return scenario_of(small_gpt(8, 512, 8, 1024), system, request, 4);
}
double parameters_of(const Scenario& s) {
  return static_cast<double>(parameters_on_rank(s, 0).sum());
}
double step_of(const Scenario& s) { return estimate(s).result.step_time.si(); }

// 4 bytes of gradient, 4 of master and 8 of moments leave the GPU; it keeps what is not moved.
TEST(HostOptimizer, MemoryOfBothSides) {
  for (const int zero : {0, 1}) {
    const Scenario all = scenario_with(100, zero), half = scenario_with(50, zero);
    const double own = parameters_of(all) / (zero == 1 ? 4 : 1);
    EXPECT_DOUBLE_EQ(memory_of(all).stages[0].optimizer.si(), 0.0);
    EXPECT_DOUBLE_EQ(memory_of(half).stages[0].optimizer.si(), 6.0 * own);
    EXPECT_DOUBLE_EQ(memory_of(scenario_with(0, zero)).stages[0].optimizer.si(), 12.0 * own);
    EXPECT_DOUBLE_EQ(memory_of(all).host.si(), 4.0 * 16.0 * own);  // Of four GPUs.
    EXPECT_DOUBLE_EQ(memory_of(half).host.si(), 4.0 * 8.0 * own);
    EXPECT_DOUBLE_EQ(memory_of(all).stages[0].gradients.si(),
                     memory_of(scenario_with(0, zero)).stages[0].gradients.si());
  }
}

// Gradients of 4 bytes down, weights of 2 up, and 34 bytes a parameter of the host's memory, which
// four GPUs share: Adam's 28 and 6 to make weights of masters. PyTorch's Adam takes 1.834 s for 8
// billion parameters at 512 GB/s, DeepSpeed's 0.769 s (blogs/deepspeed-superoffload, figure 5).
TEST(HostOptimizer, TimeTermByTerm) {
  const Scenario s = scenario_with(100);
  const double own = parameters_of(s) / 4.0;
  const HostOptimizer host = host_optimizer(s, own);
  EXPECT_DOUBLE_EQ(host.down.si(), 4.0 * own / 25.6e9);
  EXPECT_DOUBLE_EQ(host.up.si(), 2.0 * own / 25.6e9);
  const double update = 4.0 * own * 34.0 / 28.0 / 8e9 * 512.0 / 409.6;
  EXPECT_NEAR(host.update.si() / (1.834 * update), 1.0, 0.002);

  Scenario deepspeed = s;
  deepspeed.software.host_adam = read_software("deepspeed", test_place).host_adam;
  EXPECT_NEAR(host_optimizer(deepspeed, own).update.si() / (0.769 * update), 1.0, 0.002);
}

// The step grows by what the host adds, less what the GPU no longer updates: 40 bytes a parameter
// become 12, a norm and a clipping of 4-byte gradients.
TEST(HostOptimizer, TheStepGrowsByIt) {
  const Scenario without = scenario_with(0), s = scenario_with(100);
  const double own = parameters_of(s) / 4.0;
  const double saved =
      (without.software.optimizer_bytes - 12.0) * own / without.system.gpu.memory_bandwidth.si();
  const double grown = step_of(s) - step_of(without);
  const double host = host_optimizer(s, own).time().si();
  EXPECT_LE(grown, host);
  EXPECT_GE(grown, host - 2.0 * saved);  // Copies do not reach the peak.
}

// A faster link or memory of the host is never slower, and more on the host never faster here.
TEST(HostOptimizer, MoreBandwidthIsNeverSlower) {
  System system = read_system("dgx-a100-80gb", test_place);
  double before = step_of(scenario_with(100, 1, system));
  for (int i = 0; i < 3; ++i) {
    (i % 2 == 0 ? system.gpu.host : system.host_memory_bandwidth) =
        2.0 * (i % 2 == 0 ? system.gpu.host : system.host_memory_bandwidth);
    const double after = step_of(scenario_with(100, 1, system));
    EXPECT_LT(after, before);
    before = after;
  }
  double less = 0.0;
  for (const int percent : {0, 25, 50, 100}) {
    const double step = step_of(scenario_with(percent));
    EXPECT_GT(step, less) << percent;
    less = step;
  }
}

TEST(HostOptimizer, TheSameBySimGrid) {
  const double own = step_of(scenario_with(100));
  const SimulatorChoice simgrid{Simulator::simgrid};
  EXPECT_NEAR(step_of(scenario_with(100)), own, 1e-9 * own);
}

// Two micro-batches on four GPUs, without overlap, so that all that the link carries is waited for.
Scenario weights_on_host(const char* software, bool offloaded = true) {
  System system = read_system("dgx-a100-80gb", test_place);
  PlanRequest request = plan_request(1, 1, 2, 16, 1024, software);
  request.zero = 3;
  request.dp_overlap = false;
  if (offloaded) request.offload_optimizer = 100, request.offload_weights = true;
  return scenario_of(small_gpt(8, 512, 8, 1024), system, request, 4);
}

// PyTorch's shards are fp32 masters; DeepSpeed has 2 bytes a parameter more, for 16 bits.
TEST(WeightsOnTheHost, MemoryOfBothSides) {
  for (const bool is_deepspeed : {false, true}) {
    const char* software = is_deepspeed ? "deepspeed" : "torchtitan";
    const Scenario all = weights_on_host(software), none = weights_on_host(software, false);
    const double own = parameters_of(all) / 4.0;
    const StageMemory gpu = memory_of(all).stages[0], before = memory_of(none).stages[0];
    EXPECT_EQ(gpu.optimizer.si(), 0.0);
    EXPECT_EQ(gpu.weights, before.weights);  // Two units, gathered.
    EXPECT_DOUBLE_EQ((before.gradients - gpu.gradients).si(), 4.0 * own);
    EXPECT_DOUBLE_EQ(memory_of(all).host.si(), 4.0 * (is_deepspeed ? 18.0 : 16.0) * own);
  }
}

// What is gathered comes over the link first, in 4 bytes (PyTorch) or 2; gradients leave in 4.
// Twice the bandwidth saves half of it.
TEST(WeightsOnTheHost, TheLinkCarriesEachGatherAndReduction) {
  for (const bool is_deepspeed : {false, true}) {
    Scenario s = weights_on_host(is_deepspeed ? "deepspeed" : "torchtitan");
    const CollectiveTime collectives{s.system};
    const Placement placement{s.plan, s.system};
    const StepCost cost = price_step(s, nullptr, collectives, placement.shapes());
    const StageCost& stage = cost.stages.front();
    double gathered = 0.0, reduced = 0.0;
    for (const bool forward : {true, false})
      for (std::size_t i = 0; i < stage.count(forward); ++i) {
        const Bucket& unit = stage.bucket(forward, i);
        gathered += static_cast<double>((forward ? unit.parameters : unit.regathered).sum());
        if (!forward) reduced += static_cast<double>(unit.parameters.sum());
      }
    EXPECT_NEAR(reduced, parameters_of(s), 0.01 * reduced);
    EXPECT_GT(gathered, 1.5 * reduced);
    const double sent = 2.0 * ((is_deepspeed ? 2.0 : 4.0) * gathered + 4.0 * reduced) / 4.0;
    const double before = step_of(s);
    const double link = s.system.gpu.host.si();
    s.system.gpu.host = 2.0 * s.system.gpu.host;
    EXPECT_NEAR(before - step_of(s), sent / link / 2.0, 1e-9 * before);
  }
}

// Adam's 28 bytes, and the clipping: PyTorch's norm reads 4 and its scaling reads and writes 8;
// DeepSpeed takes the norm on the GPU and makes weights of 4 bytes read and 2 written.
TEST(WeightsOnTheHost, TheHostUpdatesAndClips) {
  for (const bool is_deepspeed : {false, true}) {
    const Scenario s = weights_on_host(is_deepspeed ? "deepspeed" : "torchtitan");
    const double own = parameters_of(s) / 4.0;
    const HostOptimizer host = host_optimizer(s, own);
    EXPECT_EQ(host.down, Seconds{});
    EXPECT_EQ(host.up, Seconds{});
    EXPECT_DOUBLE_EQ(host.update.si(), 4.0 * own * (is_deepspeed ? 28.0 + 8.0 + 6.0 : 28.0 + 12.0) /
                                           (s.software.host_adam * 409.6e9));
  }
}

TEST(HostOptimizer, RefusesWhatNothingPrices) {
  const auto refusal = [](const auto& change) {
    System system = read_system("dgx-a100-80gb", test_place);
    PlanRequest request = plan_request(1, 1, 2, 16, 1024, "megatron-core-fp32-reduce");
    request.offload_optimizer = 100;
    change(system, request);
    return error_text(
        [&] { estimate(scenario_of(small_gpt(8, 512, 8, 1024), system, request, 4)); });
  };
  EXPECT_NE(refusal([](System& s, PlanRequest&) {
              s.host_memory_bandwidth = {};
            }).find("which the system 'dgx-a100-80gb' does not say"),
            std::string::npos);
  EXPECT_NE(refusal([](System&, PlanRequest& r) {
              r.main_params = MainParams::bf16;
            }).find("use main_params=fp32"),
            std::string::npos);
  const auto on_host = [&](const char* software, int zero, int percent, bool weights) {
    return refusal([&](System&, PlanRequest& r) {
      r.software = software;
      r.zero = zero;
      r.offload_optimizer = percent;
      r.offload_weights = weights;
    });
  };
  EXPECT_NE(on_host("torchtitan", 3, 100, false).find("use offload_weights=true"),
            std::string::npos);
  EXPECT_NE(on_host("deepspeed", 3, 50, true).find("use offload_optimizer=100"), std::string::npos);
  EXPECT_NE(on_host("deepspeed", 2, 100, true).find("use zero=3"), std::string::npos);
  EXPECT_EQ(on_host("deepspeed", 3, 100, true), "no error");
  EXPECT_EQ(on_host("deepspeed", 3, 50, false), "no error");
  EXPECT_NE(refusal([](System& s, PlanRequest&) {
              s.host_memory = Bytes{1e6};
            }).find("of a node's host, which has 0.0 GB"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::host_optimizer_test
