#include "sim/calibration/shapes.hpp"

#include <gtest/gtest.h>

#include <map>

#include "calibration/host/work_list.hpp"

namespace orrery::shapes_test {
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
  // Sequence parallel, 4096 x 4096 values of 2 bytes. Each layer gathers what attention and MLP
  // read, forward and again for the weights' gradients, and the gradients of what they wrote: six.
  // The head gathers its input twice, the embedding its output's gradient.
  EXPECT_EQ(weight_of(cases, "collective all_gather ranks=2 bytes=33554432"), 32.0 * 6 + 3);
  // What they wrote is scattered forward, what they read backward; the embedding and the head once.
  EXPECT_EQ(weight_of(cases, "collective reduce_scatter ranks=2 bytes=33554432"), 32.0 * 4 + 2);
  // Maximum, predicted logit and sum of exponentials: 4 bytes a token.
  EXPECT_EQ(weight_of(cases, "collective all_reduce ranks=2 bytes=16384"), 3.0);
}

// As many kernels as on two ranks, and nothing but them.
TEST(CalibrationShapes, OneRankHasNoCollectives) {
  const auto kinds = [](int tp) {
    std::map<std::string, int> count;
    for (const calibration::Case& one : shapes("llama3-8b", tp)) ++count[one.kind];
    return count;
  };
  std::map<std::string, int> expected = kinds(2);
  EXPECT_EQ(expected["collective"], 3);
  expected.erase("collective");
  EXPECT_EQ(kinds(1), expected);
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
  const auto read = calibration::parse_work_list(text, "w.json");
  ASSERT_EQ(read.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(read[i].id(), cases[i].id());
    EXPECT_EQ(read[i].weight, cases[i].weight) << cases[i].id();
  }
  EXPECT_GT(cases.size(), 100u);
}

}  // namespace
}  // namespace orrery::shapes_test
