#include "sim/training/context.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/training/estimate.hpp"
#include "tests/exhaustive/all_plans.hpp"

namespace orrery::context_test {
namespace {

// What is printed of a time.
long long nanoseconds(Seconds time) { return std::llround(time.si() * 1e9); }

// A search asks with the whole system, an estimate with the part that the job fills: 384 GPUs are
// six racks of which 64 are used.
TEST(Context, RacksThatAJobFillsInPart) {
  const System system = read_system("gb200-nvl72", test_place);
  EstimateContext context{system};
  for (const int gpus : {72, 384, 144, 256}) {
    PlanRequest request;
    request.tp = 4;
    request.pp = 2;
    request.gbs = gpus / 8;
    request.seq = 2048;
    request.zero = 0;
    const Scenario scenario =
        scenario_of(read_model("llama3-8b", test_place), system, request, gpus);
    EXPECT_EQ(estimate(scenario, context).result.step_time, estimate(scenario).result.step_time)
        << gpus;
  }
}

// All plans of 8 GPUs, one after another with one context, against each on its own.
void expect_warm_is_cold(const System& system) {
  const Model model = small_gpt(8, 256, 8, 2048);
  EstimateContext context{system};
  const int plans = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
    SCOPED_TRACE(describe(scenario));
    const Estimate cold = estimate(scenario);
    const Estimate warm = estimate(scenario, context);
    EXPECT_EQ(nanoseconds(warm.result.step_time), nanoseconds(cold.result.step_time));
    EXPECT_EQ(warm.result.tasks, cold.result.tasks);
    EXPECT_EQ(warm.result.provenance, cold.result.provenance);
    ASSERT_EQ(warm.result.links.size(), cold.result.links.size());
    for (std::size_t i = 0; i < cold.result.links.size(); ++i) {
      EXPECT_EQ(warm.result.links[i].name, cold.result.links[i].name);
      EXPECT_EQ(warm.result.links[i].bytes, cold.result.links[i].bytes);
    }
    EXPECT_EQ(nanoseconds(step_time(scenario, context)), nanoseconds(cold.result.step_time));
  });
  EXPECT_GT(plans, 50);
}

TEST(EstimateContext, WarmIsColdOnAUniformSystem) {
  System system = read_system("four-by-four", test_place);
  expect_warm_is_cold(system);
}

TEST(EstimateContext, WarmIsColdWhereRanksShareLinks) {
  System system = read_system("four-by-four", test_place);
  system.shape.layout = FabricLayout::leaf_spine;
  system.shape.nodes_per_leaf = 1;
  system.shape.spines = 2;
  system.shape.uplink = system.nic;
  expect_warm_is_cold(system);
}

TEST(EstimateContext, RefusesAFormatThatTheGpuHasNot) {
  EstimateContext context{read_system("dgx-a100-80gb", test_place)};
  EXPECT_THROW(context.kernels(Dtype::fp8), Error);
  context.kernels(Dtype::bf16);
}

}  // namespace
}  // namespace orrery::context_test
