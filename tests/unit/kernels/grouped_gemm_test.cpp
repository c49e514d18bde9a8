// Grouped matrix products: the formula over all experts' tiles, and how far it is from what SimuMax
// measured on B200 and A100. `ctest --verbose -R GroupedGemm` prints the table that
// docs/notes/kernel-errors.md shows.

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sim/kernels/gemm_formula.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "tests/support/row_errors.hpp"

namespace orrery::grouped_gemm_test {
namespace {

const Place nowhere{"test", ""};
using Tokens = std::vector<std::int64_t>;

KernelModel model_of(const std::string& gpu, Dtype dtype = Dtype::bf16) {
  const auto tables = read_kernel_tables(gpu);
  return {read_gpu(gpu, nowhere), dtype, tables ? &*tables : nullptr};
}

TEST(GroupedGemm, OneExpertIsAPlainProduct) {
  for (const char* gpu : {"a100-sxm-80gb", "h100-sxm", "b200-sxm", "gb200", "test-gpu"}) {
    const KernelModel model = model_of(gpu);
    const Tokens one{0, 4096, 0};
    const GroupedGemm forward{GemmPass::forward, 2048, 4096};
    EXPECT_EQ(model.grouped_gemm(forward, one).time,
              model.gemm(GemmPass::forward, 4096, 2048, 4096).time);
    const GroupedGemm dgrad{GemmPass::dgrad, 2048, 4096};
    EXPECT_EQ(model.grouped_gemm(dgrad, one).time,
              model.gemm(GemmPass::dgrad, 4096, 4096, 2048).time);
    const GroupedGemm wgrad{GemmPass::wgrad, 2048, 4096};
    EXPECT_EQ(model.grouped_gemm(wgrad, one).time,
              model.gemm(GemmPass::wgrad, 2048, 4096, 4096).time);
  }
}

TEST(GroupedGemm, NoTokensTakeNoTime) {
  const KernelModel model = model_of("h100-sxm");
  EXPECT_EQ(model.grouped_gemm({GemmPass::forward, 2048, 4096}, Tokens{0, 0, 0}).time.si(), 0.0);
}

// Times of experts are kept: whatever was asked before, an answer is that of an object of its own.
// Of 1024 rows, 2048 and 4096 a forward product, a gradient and a weight gradient have each other's
// shapes; the last two have more rows than are kept.
TEST(GroupedGemm, EarlierQueriesChangeNothing) {
  const Gpu gpu = read_gpu("h100-sxm", nowhere);
  const auto tables = read_kernel_tables("h100-sxm");
  const GemmTime kept{gpu, Dtype::bf16, &*tables};
  const Tokens tokens{1024, 2048, 4096, 1024, (1 << 20) - 1, 1 << 20, (1 << 20) + 1};
  for (int again = 0; again < 2; ++again)
    for (const GemmPass pass : {GemmPass::forward, GemmPass::dgrad, GemmPass::wgrad})
      for (const auto& [out, in] : {std::pair{2048, 1024}, {1024, 2048}, {4096, 2048}})
        for (const double accumulate : {0.0, 4.0})
          for (const double clock : {1.0, 0.9}) {
            const GroupedGemm layer{pass, out, in, accumulate};
            const auto products = products_of(layer, tokens);
            const GemmTime fresh{gpu, Dtype::bf16, &*tables};
            ASSERT_TRUE(fresh.one_by_one(layer));
            EXPECT_EQ(kept.grouped(layer, products, clock).time,
                      fresh.grouped(layer, products, clock).time);
          }
}

// On a GPU without tables the roofline: all weights and rows are read, all results written.
TEST(GroupedGemm, WithoutTablesEachExpertsWeightsAreRead) {
  const Gpu gpu = read_gpu("test-gpu", nowhere);
  const GemmTime gemm{gpu, Dtype::bf16, nullptr};
  const GroupedGemm layer{GemmPass::forward, 500, 400};
  const Roofline roofline;
  const double bytes = 4 * (2.0 * 400 * (1 + 500) + 2.0 * 500);
  const Seconds traffic = Bytes{bytes} / (roofline.memory_efficiency * gpu.memory_bandwidth);
  EXPECT_NEAR(gemm.grouped(layer, products_of(layer, Tokens{1, 1, 1, 1}), 1.0).time.si(),
              (traffic + roofline.launch).si(), 1e-12);
}

// An expert of 32 tokens computes a whole tile of 64 rows or more and reads all of its weights.
TEST(GroupedGemm, SmallExpertsCostAWholeTileEach) {
  const KernelModel model = model_of("h100-sxm");
  const auto time = [&](std::int64_t experts, std::int64_t each) {
    return model.grouped_gemm({GemmPass::forward, 2048, 7168}, Tokens(experts, each)).time.si();
  };
  // The same 8192 tokens: the fewer an expert has, the slower.
  EXPECT_GT(time(256, 32), 1.5 * time(64, 128));
  EXPECT_GT(time(64, 128), time(8, 1024));
  // A busy expert with idle neighbours is also faster than all of them busy.
  Tokens uneven(8, 0);
  uneven[3] = 8192;
  EXPECT_LT(model.grouped_gemm({GemmPass::forward, 2048, 7168}, uneven).time.si(), time(8, 1024));
}

// Blackwell runs experts one after the other: eight of them take eight times one, except for the
// residual between its knots. On Ampere they share the multiprocessors: 616 rows are 12 tiles of
// 256 x 128 x 6 on 108 multiprocessors, so that eight experts take much less.
TEST(GroupedGemm, ExpertsShareAnAmpereAndFollowEachOtherOnBlackwell) {
  const auto ratio = [](const char* gpu) {
    const auto tables = read_kernel_tables(gpu);
    const GemmTime gemm{read_gpu(gpu, nowhere), Dtype::bf16, &*tables};
    const GroupedGemm layer{GemmPass::forward, 768, 4096};
    const auto time = [&](std::size_t experts) {
      return gemm.grouped(layer, products_of(layer, Tokens(experts, 616)), 1.0).time;
    };
    return time(8) / time(1);
  };
  EXPECT_NEAR(ratio("b200-sxm"), 8.0, 1e-9);
  EXPECT_LT(ratio("a100-sxm-80gb"), 5.0);
}

// One kernel for all: eight experts of 616 rows are 240 tiles of 256 x 96 or so on 148
// multiprocessors, two waves instead of eight, and no host launches each.
TEST(GroupedGemm, OneKernelSharesTheMultiprocessorsOfAnyGpu) {
  const KernelModel model = model_of("b200-sxm");
  const auto time = [&](bool together, std::size_t experts) {
    const GroupedGemm layer{GemmPass::forward, 768, 4096, 0.0, together};
    return model.grouped_gemm(layer, Tokens(experts, 616)).time;
  };
  EXPECT_LT(time(true, 8), 0.6 * time(false, 8));
  EXPECT_LT(time(true, 8), 8 * microseconds(9.0));
  EXPECT_GE(time(false, 8), 8 * microseconds(9.0));
  EXPECT_GT(time(true, 16), 1.5 * time(true, 8));
}

TEST(GroupedGemm, EvenTokensAreAllThere) {
  for (std::int64_t tokens = 0; tokens < 40; ++tokens)
    for (std::int64_t experts = 1; experts < 9; ++experts) {
      const Tokens each = even_tokens(tokens, experts);
      EXPECT_EQ(std::accumulate(each.begin(), each.end(), std::int64_t{0}), tokens);
      EXPECT_LE(each.front() - each.back(), 1);
    }
}

// Limits: what was measured when the rows were converted, rounded up by about a tenth.
const std::map<std::string, double> limits{
    {"b200-sxm forward", 0.085},    {"b200-sxm dgrad", 0.10},
    {"b200-sxm wgrad", 0.13},       {"a100-pcie-80gb forward", 0.05},
    {"a100-pcie-80gb dgrad", 0.05}, {"a100-pcie-80gb wgrad", 0.04}};

TEST(GroupedGemm, MeasuredRows) {
  const JsonValue json =
      JsonValue::read_file(std::string{ORRERY_TEST_SOURCE} + "/tests/validation/grouped_gemm.json");
  const std::map<std::string, GemmPass> passes{
      {"forward", GemmPass::forward}, {"dgrad", GemmPass::dgrad}, {"wgrad", GemmPass::wgrad}};
  std::map<std::string, RowErrors> errors;
  for (const JsonValue& table : json.elements()) {
    const std::string gpu = table.at("gpu").text();
    const KernelModel model = model_of(gpu);
    for (const JsonValue& entry : table.at("rows").elements()) {
      const auto row = entry.elements();
      const auto number = [&](std::size_t i) { return row[i].integer(1, 1 << 20); };
      const std::string pass = row[0].text();
      GroupedGemm layer{passes.at(pass), number(4), number(5)};
      if (pass == "wgrad") layer.accumulate = row[1].text() == "fp32" ? 8.0 : 4.0;
      const Tokens tokens(static_cast<std::size_t>(number(2)), number(3));
      const Seconds said = model.grouped_gemm(layer, tokens).time;
      const double error = said / microseconds(row[6].number(0.0, 1e9)) - 1.0;
      errors[gpu + " " + pass].add(error);
    }
  }
  expect_below(limits, errors);
}

}  // namespace
}  // namespace orrery::grouped_gemm_test
