#include "sim/sweep/point_evaluator.hpp"

#include <gtest/gtest.h>

#include "sim/core/write_file.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/sweep/grid.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::point_evaluator_test {
namespace {

// All-reduce among the four GPUs of a node in `us`, whatever its size.
std::string measured(double us) {
  const std::string time = std::to_string(us);
  return R"({"schema": "orrery.calibration/1", "gpu": "test-gpu", "sources": [{"file": "a.log"}],
    "collectives": {"schema": "orrery.curves/1", "curves": [{"id": "a", "source": {"title": "a"},
      "collective": "all_reduce", "ranks": 4, "nodes": 1, "columns": ["bytes", "time_us"],
      "points": [[1024, )" +
         time + "], [1073741824, " + time + "]]}]}}";
}

Sweep sweep_of(const std::string& calibrations, const std::string& system) {
  SweepBuilder builder;
  builder.add_axes("model=llama3-8b gpus=4 tp=4 gbs=4 seq=2048 recompute=full system=" + system +
                       " calibration=" + calibrations,
                   {"", "--sweep"});
  return builder.sweep();
}

// Two calibrations are two machines: the one whose collectives take longer takes longer.
TEST(PointEvaluator, EachCalibrationIsAMachineOfItsOwn) {
  const TemporaryFolder folder;
  const std::string fast = (folder.path() / "fast.json").string();
  const std::string slow = (folder.path() / "slow.json").string();
  write_file(fast, measured(10.0));
  write_file(slow, measured(1e6));
  const Sweep sweep = sweep_of(fast + "," + slow, "four-by-four");
  const SweepInputs inputs = read_inputs(sweep);
  ASSERT_EQ(inputs.systems.size(), 2u);
  EXPECT_EQ(inputs.systems.at({"four-by-four", slow}).calibration->file, slow);
  const Grid grid{sweep};
  PointEvaluator evaluate{sweep, grid, inputs};
  const auto step_s = [&](std::int64_t point) {
    const std::string row = evaluate(point).bytes, key = "\"step_time_s\":";
    const std::size_t at = row.find(key);
    EXPECT_NE(at, row.npos) << row;
    return at == row.npos ? 0.0 : std::stod(row.substr(at + key.size()));
  };
  EXPECT_GT(step_s(1), step_s(0) + 1.0);
}

TEST(PointEvaluator, ACalibrationOfAnotherGpuIsRefusedBeforeTheSweep) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "c.json").string();
  write_file(file, measured(10.0));
  const Sweep sweep = sweep_of(file, "dgx-h100");
  EXPECT_NE(error_text([&] { read_inputs(sweep); }).find("was measured on 'test-gpu', but "),
            std::string::npos);
}

// A plan that fits as long as its experts are visited alike.
TEST(PointEvaluator, MemoryIsThatOfTheFullestRank) {
  for (const bool memory_only : {true, false}) {
    SweepBuilder builder;
    builder.add_axes(
        "model=mixtral-8x7b system=dgx-h100 gpus=64 gbs=512 seq=4096 mbs=2 ep=8 pp=4 "
        "recompute=none routing=uniform,zipf:1.2",
        {"", "--sweep"});
    if (memory_only) builder.set_memory_only();
    const Sweep sweep = builder.sweep();
    const SweepInputs inputs = read_inputs(sweep);
    const Grid grid{sweep};
    PointEvaluator evaluate{sweep, grid, inputs};
    EXPECT_NE(evaluate(0).bytes.find("\"ok\""), std::string::npos) << evaluate(0).bytes;
    EXPECT_NE(evaluate(1).bytes.find("infeasible"), std::string::npos) << evaluate(1).bytes;
    EXPECT_NE(evaluate(1).bytes.find("the plan does not fit"), std::string::npos);
  }
}

// As estimate does: where no software is named and the default has not what a point asks for, the
// nearest one that has, and the row says so. One that is named is kept.
TEST(PointEvaluator, TakesTheNearestSoftwareThatCanDoThePoint) {
  const auto row_of = [](const std::string& more, std::int64_t point) {
    SweepBuilder builder;
    builder.add_axes("model=gpt2 system=dgx-h100 gpus=8 gbs=16 pp=2 " + more, {"", "--sweep"});
    const Sweep sweep = builder.sweep();
    const SweepInputs inputs = read_inputs(sweep);
    const Grid grid{sweep};
    return PointEvaluator{sweep, grid, inputs}(point).bytes;
  };
  EXPECT_NE(row_of("schedule=1f1b,gpipe", 0).find("\"status\":\"ok\",\"step_time_s\""),
            std::string::npos);
  const std::string row = row_of("schedule=1f1b,gpipe", 1);
  EXPECT_NE(row.find("\"status\":\"ok\",\"reason\":\"software "), std::string::npos) << row;
  EXPECT_NE(row.find(" is taken, as no software is named and "), std::string::npos) << row;
  PlanRequest request;
  set_plan_flag(request, "pp", "2");
  set_plan_flag(request, "gbs", "16");
  set_plan_flag(request, "schedule", "gpipe");
  const Result estimated =
      estimate(make_scenario(read_model("gpt2", {}), read_system("dgx-h100", {}), request, 8, {}))
          .result;
  EXPECT_NE(row.find("software " + estimated.scenario.software.name + " is taken"),
            std::string::npos)
      << row;
  const std::string key = "\"step_time_s\":";
  // Rows have times in nanoseconds.
  EXPECT_NEAR(std::stod(row.substr(row.find(key) + key.size())), estimated.step_time.si(), 1e-9);
  EXPECT_NE(row_of("schedule=gpipe software=megatron-core", 0).find("\"infeasible\""),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::point_evaluator_test
