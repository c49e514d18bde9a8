#include "sim/calibrate/shapes.hpp"

#include <gtest/gtest.h>

#include "calibration/host/work_list.hpp"

namespace orrery {
namespace {

std::vector<calibration::Case> shapes(const std::string& model, int tp, Dtype dtype = Dtype::bf16) {
  PlanRequest request;
  request.tp = tp;
  request.dp = 1;
  request.mbs = 1;
  request.gbs = 1;
  request.seq = 4096;
  request.dtype = dtype;
  return shapes_of(
      make_scenario(read_model(model, {}), read_system("dgx-h100", {}), request, 0, {}));
}

double weight_of(const std::vector<calibration::Case>& cases, const std::string& id) {
  for (const calibration::Case& one : cases)
    if (one.id() == id) return one.weight;
  return 0.0;
}

// Llama 3 8B over two ranks: 32 layers; 4096 hidden; 16 heads and 4 kv heads of 128 a rank, so that
// qkv is (16 + 2 * 4) * 128 = 3072 wide; MLP 14336 / 2, gate and up together 14336; head 128256 / 2
// (a multiple of 128 tp already).
TEST(CalibrationShapes, AreThoseOfALayerOnOneRank) {
  const auto cases = shapes("llama3-8b", 2);
  EXPECT_EQ(weight_of(cases, "gemm forward bf16 m=4096 n=3072 k=4096"), 32.0);
  EXPECT_EQ(weight_of(cases, "gemm dgrad bf16 m=4096 n=4096 k=3072"), 32.0);
  EXPECT_EQ(weight_of(cases, "gemm wgrad bf16 m=3072 n=4096 k=4096"), 32.0);
  EXPECT_EQ(weight_of(cases, "gemm forward bf16 m=4096 n=14336 k=4096"), 32.0);
  EXPECT_EQ(weight_of(cases, "gemm forward bf16 m=4096 n=64128 k=4096"), 1.0);
  EXPECT_EQ(weight_of(cases,
                      "attention backward bf16 batch=1 sequence=4096 heads=16 kv_heads=4 "
                      "head_dim=128"),
            32.0);
  // Sequence parallel: each layer gathers twice forward, and once more each way backward.
  EXPECT_GT(weight_of(cases, "collective all_gather ranks=2 bytes=33554432"), 64.0);
}

TEST(CalibrationShapes, OneRankHasNoCollectives) {
  for (const calibration::Case& one : shapes("llama3-8b", 1)) EXPECT_NE(one.kind, "collective");
}

TEST(CalibrationShapes, FormatsAreThoseThatAreMeasured) {
  EXPECT_EQ(weight_of(shapes("llama3-8b", 1, Dtype::fp8), "gemm forward fp8 m=4096 n=6144 k=4096"),
            32.0);
}

// What the simulator asks for, the measuring program accepts.
TEST(CalibrationShapes, AreAWorkList) {
  std::vector<calibration::Case> cases;
  for (const int tp : {1, 2, 4, 8})
    for (const char* model : {"llama3-8b", "gpt3-175b", "llama3-70b"})
      merge_shapes(cases, shapes(model, tp));
  const std::string text = calibration::work_list_json(cases);
  EXPECT_EQ(calibration::parse_work_list(text, "w.json").size(), cases.size());
  EXPECT_GT(cases.size(), 100u);
}

}  // namespace
}  // namespace orrery
