#include "sim/search/single_changes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "sim/cluster/system.hpp"
#include "sim/core/catalog.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/dimension.hpp"

namespace orrery::single_changes_test {
namespace {

PlanRequest request_of(const std::string& flags) {
  PlanRequest request;
  std::istringstream words{flags};
  for (std::string key, value; words >> key >> value;) set_plan_flag(request, key.substr(2), value);
  return request;
}

struct Case {
  std::string flags;
  int gpus;
};

Scenario scenario_of(const Case& plan, const std::string& more = "") {
  return make_scenario(read_model("llama3-8b", {}), read_system("dgx-h100", {}),
                       request_of(plan.flags + " " + more), plan.gpus, {});
}

// 32 layers on 4 stages: 8 each; the ends have 6 to 10 where the others have 8, and 5 to 9 of 14
// where they have 9. On two stages, 12 to 18 and the rest, but for what it is already.
TEST(SingleChanges, SplitLayersNextToTheEnds) {
  const auto texts = [](const std::string& flags) {
    std::vector<std::string> found;
    for (const StageLayers& split : neighbour_splits(scenario_of({"--gbs 128 " + flags, 16})))
      found.push_back(stage_layers_text(split));
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("--tp 4"), Texts{});
  EXPECT_EQ(texts("--pp 4"), (Texts{"6+8x2+10", "7+8x2+9", "9+8x2+7", "10+8x2+6", "5+9x3",
                                    "6+9x2+8", "7+9x2+7", "8+9x2+6", "9x3+5"}));
  EXPECT_EQ(texts("--pp 2"), (Texts{"14+18", "15+17", "17+15", "18+14", "13+19", "19+13"}));
}

// Each change is what a user gets who adds its words to the plan's own, a key is named once, and
// the list rises from the shortest step.
TEST(SingleChanges, AreWhatTheirFlagsGive) {
  for (const Case& plan :
       {Case{"--gbs 128 --pp 2 --tp 4 --dp_overlap false", 16},
        Case{"--gbs 128 --pp 4 --vpp 4 --recompute full", 16},
        Case{"--gbs 64 --tp 2 --mbs 2 --schedule 1f1b --pp 2", 16},
        Case{"--gbs 64 --tp 2 --zero 3", 16}, Case{"--gbs 64 --pp 2 --zero 3", 16},
        Case{"--gbs 128 --pp 2 --tp 4 --exp_avg bf16 --cuda_graphs step", 16}}) {
    const Scenario scenario = scenario_of(plan);
    EstimateContext context{scenario.system};
    const Result before = estimate(scenario, context).result;
    const std::vector<SingleChange> changes = single_changes(before, context);
    EXPECT_FALSE(changes.empty()) << plan.flags;
    std::set<std::string> keys;
    Seconds last;
    for (const SingleChange& change : changes) {
      const std::string merged = plan.flags + " " + change.flags;
      const Seconds step = estimate(scenario_of(plan, change.flags), context).result.step_time;
      EXPECT_EQ(step, change.step) << merged;
      EXPECT_LT(change.step, before.step_time) << merged;
      EXPECT_GE(change.step, last) << merged;
      EXPECT_NEAR(change.difference.mean.si(), (step - before.step_time).si(), 1e-9);
      EXPECT_TRUE(keys.insert(change.flags.substr(0, change.flags.find(' '))).second) << merged;
      last = change.step;
    }
  }
}

// Of all micro-batches that are half or twice as long, the fastest is named or none is faster.
TEST(SingleChanges, TheBestOfAKey) {
  const Case plan{"--gbs 128 --tp 2 --mbs 2", 16};
  const Scenario scenario = scenario_of(plan);
  EstimateContext context{scenario.system};
  const Result before = estimate(scenario, context).result;
  const Seconds half = estimate(scenario_of(plan, "--mbs 1"), context).result.step_time;
  Seconds named = before.step_time;
  for (const SingleChange& change : single_changes(before, context))
    if (change.flags.starts_with("--mbs ")) named = change.step;
  EXPECT_EQ(named, std::min(before.step_time, half));  // Four sequences do not fit.
}

// Of a model with windows a search has a dimension whose values are words.
TEST(SingleChanges, OfAModelWithWindows) {
  Model model = read_model("llama3-8b", {});
  model.window = 1024;
  model.layer_is_local.assign(static_cast<std::size_t>(model.layers), true);
  const std::string flags = "--gbs 128 --tp 4 --pp 2 --dp_overlap false";
  const auto changed = [&](const std::string& more) {
    return make_scenario(model, read_system("dgx-h100", {}), request_of(flags + " " + more), 16,
                         {});
  };
  const Scenario scenario = changed("");
  EstimateContext context{scenario.system};
  const auto changes = single_changes(estimate(scenario, context).result, context);
  ASSERT_FALSE(changes.empty());
  for (const SingleChange& change : changes)
    EXPECT_EQ(change.step, estimate(changed(change.flags), context).result.step_time)
        << change.flags;
}

// Software that is in no catalog is kept, and so is what it does otherwise than others.
TEST(SingleChanges, KeepTheSoftware) {
  Scenario scenario = scenario_of({"--gbs 128 --pp 2 --tp 4 --dp_overlap false", 16});
  EstimateContext context{scenario.system};
  const auto changes = single_changes(estimate(scenario, context).result, context);
  scenario.software.name = scenario.plan.software = "ours";
  scenario.software.gemm_efficiency *= 0.5;
  const auto of_ours = single_changes(estimate(scenario, context).result, context);
  int in_both = 0;
  for (const SingleChange& change : of_ours)
    for (const SingleChange& other : changes)
      if (other.flags == change.flags) {
        ++in_both;
        EXPECT_GT(change.step, 1.3 * other.step) << change.flags;
      }
  EXPECT_GE(in_both, 2);
}

}  // namespace
}  // namespace orrery::single_changes_test
