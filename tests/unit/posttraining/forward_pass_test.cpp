#include <gtest/gtest.h>

#include "sim/posttraining/rl_step.hpp"
#include "sim/training/estimate.hpp"

namespace orrery::forward_pass_test {
namespace {

Scenario scenario(int pp, int zero, std::int64_t gbs) {
  PlanRequest request;
  request.pp = pp;
  request.zero = zero;
  request.gbs = gbs;
  request.mbs = 1;
  request.seq = 4096;
  if (zero == 3) request.software = "torchtitan";
  return make_scenario(read_model("llama3.1-8b", {}), read_system("dgx-h100", {}), request, 8, {});
}

// m micro-batches pass p equal stages in m + p - 1 times that of one, with a transfer between each
// two; the last stage has the head, and is the longest.
TEST(ForwardPass, APipelineFillsAndThenTakesItsLongestStage) {
  for (const int pp : {1, 2, 4}) {
    const Scenario few = scenario(pp, 0, 8 / pp * 4), many = scenario(pp, 0, 8 / pp * 12);
    EstimateContext context{few.system};
    const Seconds first = forward_time(few, context), second = forward_time(many, context);
    Detail detail;
    detail.most_memory = 1e9;
    const Estimate step = estimate(few, context, detail);
    Seconds longest, sum;
    for (const StageCost& stage : step.step.cost->stages) {
      longest = std::max(longest, stage.forward.time(1.0));
      sum += stage.forward.time(1.0);
    }
    EXPECT_NEAR((second - first) / longest, 8.0, 0.01) << pp;
    EXPECT_GE(first, sum + 3.0 * longest - Seconds{1e-6}) << pp;
    EXPECT_NEAR(first / (sum + 3.0 * longest), 1.0, 0.01) << pp;
  }
}

// Weights that ZeRO-1 gathers in a training step are whole in a pass without gradients.
TEST(ForwardPass, GathersNothingThatIsWhole) {
  const Scenario whole = scenario(1, 0, 64), sharded_state = scenario(1, 1, 64);
  EstimateContext context{whole.system};
  EXPECT_EQ(forward_time(whole, context), forward_time(sharded_state, context));
}

// It is less than half of a training step, and with shards it gathers weights as well.
TEST(ForwardPass, IsAThirdOfAStepOrSo) {
  for (const int zero : {1, 3}) {
    const Scenario plan = scenario(1, zero, 64);
    EstimateContext context{plan.system};
    Detail detail;
    detail.most_memory = 1e9;
    const Seconds step = estimate(plan, context, detail).result.step_time;
    const Seconds forward = forward_time(plan, context);
    EXPECT_LT(forward, 0.45 * step) << zero;
    EXPECT_GT(forward, 0.25 * step) << zero;
  }
}

}  // namespace
}  // namespace orrery::forward_pass_test
