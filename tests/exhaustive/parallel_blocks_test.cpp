// Every small plan of a model with parallel blocks, folded and expanded; and what they save.
#include <gtest/gtest.h>

#include "tests/exhaustive/all_plans.hpp"

namespace orrery::parallel_blocks_test {
namespace {

Model parallel_model(int norms) {
  Model model = small_gpt(8, 256, 8, 2048);
  model.parallel_residual = true;
  model.norms_per_layer = norms;
  return model;
}

TEST(ParallelBlocks, EveryShortcutGivesTheSameTime) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  for (int norms : {1, 2}) {
    const int plans = for_each_plan(parallel_model(norms), system, 8, [&](const Scenario& one) {
      SCOPED_TRACE(describe(one) + " norms=" + std::to_string(norms));
      expect_one_time(one, context);
    });
    EXPECT_GT(plans, 50);
  }
}

// One norm is never slower than two, nor two than serial blocks, where tensor parallelism is to
// save anything.
TEST(ParallelBlocks, SaveTime) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  for_each_plan(parallel_model(1), system, 4, [&](const Scenario& one_norm) {
    if (one_norm.plan.tp == 1) return;
    SCOPED_TRACE(describe(one_norm));
    Scenario two_norms = one_norm;
    two_norms.model = parallel_model(2);
    Scenario serial = one_norm;
    serial.model = small_gpt(8, 256, 8, 2048);
    EXPECT_LT(step_time(one_norm, context), step_time(two_norms, context));
    EXPECT_LT(step_time(two_norms, context), step_time(serial, context));
  });
}

}  // namespace
}  // namespace orrery::parallel_blocks_test
