// Models whose layers attend to windows of unlike patterns, so that no two stages need be alike:
// every shortcut must give the same time for every small plan, and a window as long as the sequence
// must change nothing.
#include <gtest/gtest.h>

#include "tests/exhaustive/all_plans.hpp"

namespace orrery::windows_test {
namespace {

// Sequences of for_each_plan have 240 tokens.
Model local_model(std::int64_t window, int global_every) {
  Model model = small_gpt(8, 256, 8, 2048);
  model.window = window;
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_is_local.push_back((layer + 1) % global_every != 0);
  return model;
}

TEST(Windows, EveryShortcutGivesTheSameTime) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  for (int global_every : {2, 3, 5}) {
    const Model model = local_model(60, global_every);
    const int plans = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
      SCOPED_TRACE(describe(scenario) + " global_every=" + std::to_string(global_every));
      expect_one_time(scenario, context);
    });
    EXPECT_GT(plans, 50);
  }
}

TEST(Windows, AWindowOfTheWholeSequenceIsNone) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  const Model global = small_gpt(8, 256, 8, 2048);
  for_each_plan(local_model(240, 3), system, 8, [&](const Scenario& scenario) {
    Scenario without = scenario;
    without.model = global;
    EXPECT_EQ(step_time(scenario, context), step_time(without, context)) << describe(scenario);
  });
}

// A local layer is never slower, and holds what a global one holds.
TEST(Windows, SaveTimeAndNoMemory) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  const Model global = small_gpt(8, 256, 8, 2048);
  for_each_plan(local_model(16, 2), system, 4, [&](const Scenario& scenario) {
    SCOPED_TRACE(describe(scenario));
    Scenario without = scenario;
    without.model = global;
    EXPECT_LE(step_time(scenario, context), step_time(without, context));
    EXPECT_EQ(memory_of(scenario).peak(), memory_of(without).peak());
  });
}

}  // namespace
}  // namespace orrery::windows_test
