#include <gtest/gtest.h>

#include "sim/layers/attention_ops.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/plan_keys.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

Scenario with(const std::string& documents, int dp = 1, int cp = 1, std::int64_t mbs = 2) {
  PlanRequest request = plan_request(1, 1, mbs, mbs * dp, 1024, "megatron-core");
  request.cp = cp;
  set_plan_flag(request, "documents", documents);
  return scenario_of(small_gpt(2, 1024, 8, 1024), read_system("dgx-b200", test_place), request,
                     dp * cp);
}
double flop(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops) sum += op.flop().si();
  return sum;
}

// A sequence of one document is today's; two of half the length halve attention, four quarter it,
// whatever the context ranks; nothing else of a layer changes.
TEST(PackedDocuments, AttentionIsTheSumOfSquares) {
  for (const int cp : {1, 2, 4}) {
    const double whole = flop(core_attention_forward(with("none", 1, cp), LayerKind::dense));
    const double back = flop(core_attention_backward(with("none", 1, cp), LayerKind::dense));
    for (const int parts : {1, 2, 4, 8}) {
      const Scenario some = with("fixed:" + std::to_string(1024 / parts), 1, cp);
      EXPECT_NEAR(flop(core_attention_forward(some, LayerKind::dense)) / whole, 1.0 / parts, 0.02);
      EXPECT_NEAR(flop(core_attention_backward(some, LayerKind::dense)) / back, 1.0 / parts, 0.02);
    }
  }
  const Ops kernels = core_attention_forward(with("fixed:256"), LayerKind::dense);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].batch, 8);
  EXPECT_EQ(kernels[0].queries, 256);
}

// Documents that differ: the slowest of more ranks attends to more, and to no more than all.
TEST(PackedDocuments, RanksWaitForTheLargestSum) {
  double last = 0.0;
  for (const int dp : {1, 2, 8, 64}) {
    const double now = flop(core_attention_forward(with("lognormal:100,1", dp), LayerKind::dense));
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_LE(last, flop(core_attention_forward(with("none", 64), LayerKind::dense)));
  EXPECT_EQ(flop(core_attention_forward(with("fixed:128", 64), LayerKind::dense)),
            flop(core_attention_forward(with("fixed:128"), LayerKind::dense)));
}

// The flop of the model count what documents attend to.
TEST(PackedDocuments, ModelFlop) {
  const Model model = small_gpt(2, 1024, 8, 1024);
  for (const bool causal : {false, true}) {
    const double none = model_flop(model, 1, 1024, causal).si();
    const double whole = model_flop(model, 1, 1024, causal, true, 1024.0).si();
    const double half = model_flop(model, 1, 1024, causal, true, 512.0).si();
    const double core = 3.0 * 2.0 * 2.0 * 1024 * 1024 * 2.0 * 1024 * (causal ? 0.5 : 1.0);
    EXPECT_DOUBLE_EQ(none, whole);
    EXPECT_NEAR((none - half) / core, 0.5, 0.01);
  }
}

}  // namespace
}  // namespace orrery
