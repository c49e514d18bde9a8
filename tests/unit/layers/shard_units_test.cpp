#include "sim/layers/shard_units.hpp"

#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::shard_units_test {
namespace {

// h = 64, f = 256, V = 128 padded: the matrices of a layer have 3 h^2, h^2, 4 h^2 and 4 h^2.
constexpr std::int64_t h2 = 64 * 64;
constexpr std::int64_t table = 128 * 64;

Software by_tensor(double calls, double live) {
  Software software = read_software("deepspeed-2021", test_place);
  software.support.clear();
  software.shard_calls = calls;
  software.live_parameters = live;
  return software;
}

Scenario scenario_of(const Software& software, Recompute recompute, int layers = 2) {
  PlanRequest request = plan_request(1, 1, 1, 4, 64, "");
  request.recompute = recompute;
  return make_scenario(small_gpt(layers, 64, 4, 128), read_system("four-by-four", test_place),
                       software, request, 4, test_place);
}

StageCost price(const Scenario& scenario) {
  const GroupShapes shapes{{1, 1, 1}, {1, 1, 1}, {4, 1, 4}};
  return price_step(scenario, nullptr, CollectiveTime{scenario.system}, shapes).stages[0];
}

std::vector<std::int64_t> gathered(const StageCost& stage, bool forward) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < stage.count(forward); ++i) {
    const Bucket& unit = stage.bucket(forward, i);
    all.push_back(forward ? unit.parameters.dense : unit.regathered.dense);
  }
  return all;
}

std::vector<std::int64_t> reduced(const StageCost& stage) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < stage.count(false); ++i)
    all.push_back(stage.bucket(false, i).parameters.dense);
  return all;
}

using Counts = std::vector<std::int64_t>;

// Each layer: qkv, proj, fc1, fc2. What is computed again is gathered again; the last of it, fc2,
// is there when its backward product follows, so that this gathers fc1, proj and qkv alone.
TEST(ShardUnits, EveryMatrixIsGatheredWhereItIsUsed) {
  const StageCost stage = price(scenario_of(by_tensor(0, 1e9), Recompute::full));
  const std::int64_t head = stage.buckets.back().parameters.dense;
  EXPECT_GE(head, table);
  EXPECT_EQ(gathered(stage, true), (Counts{table, 3 * h2, h2, 4 * h2, 4 * h2,  //
                                           3 * h2, h2, 4 * h2, 4 * h2, head}));
  const Counts layer{3 * h2, h2, 4 * h2, 4 * h2, 0, 4 * h2, h2, 3 * h2};
  Counts backward{0};
  for (int l = 0; l < 2; ++l) backward.insert(backward.end(), layer.begin(), layer.end());
  backward.push_back(0);
  EXPECT_EQ(gathered(stage, false), backward);
  EXPECT_EQ(reduced(stage), (Counts{head, 0, 0, 0, 0, 4 * h2, 4 * h2, h2, 3 * h2,  //
                                    0, 0, 0, 0, 4 * h2, 4 * h2, h2, 3 * h2, table}));
}

TEST(ShardUnits, WithoutRecomputationTheBackwardPassGathersAllOnce) {
  const StageCost stage = price(scenario_of(by_tensor(0, 1e9), Recompute::none));
  EXPECT_EQ(gathered(stage, false),
            (Counts{0, 4 * h2, 4 * h2, h2, 3 * h2, 4 * h2, 4 * h2, h2, 3 * h2, 0}));
}

// The same kernels, cut in other places: only the host's floors and the copies may differ.
TEST(ShardUnits, CutsHoldTheSameKernels) {
  Software tensors = by_tensor(0, 1e9);
  tensors.unshard_bytes = tensors.reduce_copy_bytes = 0.0;
  tensors.host_launch = {};
  Software layers = tensors;
  layers.shards_by_tensor = false;
  for (Recompute recompute : {Recompute::none, Recompute::full}) {
    const StageCost a = price(scenario_of(tensors, recompute));
    const StageCost b = price(scenario_of(layers, recompute));
    EXPECT_NEAR(a.forward.compute.si(), b.forward.compute.si(), 1e-12);
    EXPECT_NEAR(a.backward.compute.si(), b.backward.compute.si(), 1e-12);
  }
}

// 2 calls of 5 us for each of 4 ranks are 40 us. Prefetching overlaps only a module whose own
// matrix is below the limit: 3 h^2 + 1 lets qkv and proj (3 and 1 h^2) but not fc1 and fc2 go on.
TEST(ShardUnits, TheHostIsBusyBeforeEachCollective) {
  const Scenario scenario = scenario_of(by_tensor(2, 3 * h2 + 1), Recompute::full);
  EXPECT_NEAR(shard_host_time(scenario).si(), 40e-6, 1e-15);
  const StageCost stage = price(scenario);
  std::vector<bool> ahead;
  for (std::size_t i = 0; i < stage.buckets.size(); ++i)
    ahead.push_back(stage.buckets[i].gathered_ahead);
  // The table has 2 h^2; after fc1 and fc2 nothing is gathered ahead.
  EXPECT_EQ(ahead,
            (std::vector<bool>{false, true, true, true, false, false, true, true, false, false}));
  const StageCost free = price(scenario_of(by_tensor(0, 3 * h2 + 1), Recompute::full));
  EXPECT_NEAR((stage.forward.compute - free.forward.compute).si(), 5 * 40e-6, 1e-12);
}

// Two matrices are whole at a time instead of two layers.
TEST(ShardUnits, LessIsWholeAtATime) {
  const Scenario scenario = scenario_of(by_tensor(0, 1e9), Recompute::full);
  EXPECT_DOUBLE_EQ(two_shard_units(scenario, 0), 2.0 * 4 * h2);
  Scenario layers = scenario;
  layers.software.shards_by_tensor = false;
  EXPECT_GE(two_shard_units(layers, 0), 2.0 * 12 * h2);
  EXPECT_LT(memory_of(scenario).peak(), memory_of(layers).peak());
}

}  // namespace
}  // namespace orrery::shard_units_test
