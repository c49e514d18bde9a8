#include "sim/training/waiting.hpp"

#include <gtest/gtest.h>

#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::waiting_test {
namespace {

// A small model on `gpus` of a system of eight a node.
Scenario scenario_on(int gpus, const char* system = "dgx-h100") {
  return scenario_of(small_gpt(4, 1024, 8, 1024), read_system(system, test_place),
                     plan_request(8, 1, 1, gpus, 1024, "megatron-core"), gpus);
}

double waited(const Scenario& scenario) { return waiting_for_others(scenario, Seconds{2.0}).si(); }

// (0.2 % of 2 s + 20 ms) for each doubling from 64 GPUs on; 1.5 % on RoCE.
TEST(WaitingForOthers, GrowsWithEachDoubling) {
  EXPECT_EQ(waited(scenario_on(8)), 0.0);
  EXPECT_EQ(waited(scenario_on(64)), 0.0);
  EXPECT_NEAR(waited(scenario_on(128)), 0.004 + 0.020, 1e-12);
  EXPECT_NEAR(waited(scenario_on(1024)), 4 * (0.004 + 0.020), 1e-12);
  EXPECT_NEAR(waited(scenario_on(1024, "hgx-h100-roce")), 4 * (0.030 + 0.020), 1e-12);
}

TEST(WaitingForOthers, IsNoneWithoutHostsOrByRequest) {
  Scenario scenario = scenario_on(256);
  scenario.plan.cuda_graphs = CudaGraphs::step;
  EXPECT_NEAR(waited(scenario), 2 * 0.004, 1e-12);
  scenario.plan.wait_for_others = false;
  EXPECT_EQ(waited(scenario), 0.0);
}

// It is a part of the step, of the critical path, of each stage's time and of the range's prices,
// and the shortcut of searches has it as well.
TEST(WaitingForOthers, IsPartOfTheStep) {
  const Scenario with = scenario_on(512);
  Scenario without = with;
  without.plan.wait_for_others = false;
  const Result result = estimate(with).result, alone = estimate(without).result;
  const Seconds waiting = waiting_for_others(with, alone.step_time);
  EXPECT_GT(waiting, Seconds{});
  EXPECT_DOUBLE_EQ(result.step_time.si(), (alone.step_time + waiting).si());
  EXPECT_EQ(result.critical.parts.sum(StepPart::waiting), waiting);
  EXPECT_EQ(result.stages.front().waiting, waiting);
  EXPECT_NO_THROW(require_sound(result));
  EstimateContext context{with.system};
  EXPECT_NEAR(step_time(with, context) / result.step_time, 1.0, 1e-3);
}

}  // namespace
}  // namespace orrery::waiting_test
