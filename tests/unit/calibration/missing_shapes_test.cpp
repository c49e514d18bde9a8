#include <gtest/gtest.h>

#include "calibration/host/work_list.hpp"
#include "sim/calibration/shapes.hpp"

namespace orrery::missing_shapes_test {
namespace {

Scenario scenario(int tp, int pp, const char* system = "dgx-h100") {
  PlanRequest request;
  request.tp = tp;
  request.pp = pp;
  request.dp = 1;
  request.mbs = 1;
  request.gbs = 6;
  request.seq = 4096;
  return make_scenario(read_model("llama3-8b", {}), read_system(system, {}), request, 0, {});
}

std::vector<calibration::Case> missing(const Scenario& plan, int stage,
                                       const KernelTables* tables) {
  const KernelModel kernels{plan.system.gpu, plan.plan.dtype, tables};
  const CollectiveTime collectives{plan.system};
  GroupShapes shapes;
  shapes.tensor = {plan.plan.tp, 1, plan.plan.tp};
  const Pricer pricer{kernels, collectives, shapes, plan.software, plan.system.gpu};
  return missing_shapes(plan, kernels, pricer, stage);
}

double weight_of(const std::vector<calibration::Case>& cases, const std::string& id) {
  for (const calibration::Case& one : cases)
    if (one.id() == id) return one.weight;
  return 0.0;
}

// qkv, 4096 tokens to 6144 channels, is a row of the H100's table until it is erased. 6
// micro-batches x 16 layers of the second stage.
TEST(MissingShapes, AreThoseWithoutARow) {
  auto tables = read_kernel_tables("h100-sxm");
  const std::string id = "gemm forward bf16 m=4096 n=6144 k=4096";
  const Scenario plan = scenario(1, 2);
  ASSERT_EQ(weight_of(missing(plan, 1, &*tables), id), 0.0);
  std::erase_if(tables->gemm[0].rows,
                [](const GemmRow& row) { return row.m == 4096 && row.n == 6144 && row.k == 4096; });
  const KernelModel kernels{plan.system.gpu, Dtype::bf16, &*tables};
  const Seconds once = kernels.gemm(GemmPass::forward, 4096, 6144, 4096).time;
  EXPECT_NEAR(weight_of(missing(plan, 1, &*tables), id),
              6 * 16 * once.si() / plan.software.gemm_efficiency, 1e-12);
}

// The embedding is on the first stage, the head on the last.
TEST(MissingShapes, AreTheStages) {
  const std::string head = "gemm forward bf16 m=4096 n=128256 k=4096";
  EXPECT_EQ(weight_of(missing(scenario(1, 2), 0, nullptr), head), 0.0);
  EXPECT_GT(weight_of(missing(scenario(1, 2), 1, nullptr), head), 0.0);
}

// What is written is read as the same list, heaviest first.
TEST(MissingShapes, AreAWorkList) {
  const auto cases = missing(scenario(2, 1), 0, nullptr);
  ASSERT_GT(cases.size(), 10u);
  for (std::size_t i = 1; i < cases.size(); ++i)
    EXPECT_GE(cases[i - 1].weight, cases[i].weight) << cases[i].id();
  const auto again = calibration::parse_work_list(calibration::work_list_json(cases), "w.json");
  ASSERT_EQ(again.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(again[i].id(), cases[i].id());
    EXPECT_DOUBLE_EQ(again[i].weight, cases[i].weight);
  }
}

}  // namespace
}  // namespace orrery::missing_shapes_test
