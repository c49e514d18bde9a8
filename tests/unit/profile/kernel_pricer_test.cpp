#include "sim/profile/kernel_pricer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/kernels/kernel_model.hpp"

namespace orrery::kernel_pricer_test {
namespace {

KernelQuestion question(const std::string& kind, std::map<std::string, std::int64_t> sizes) {
  KernelQuestion one;
  one.kind = find_kernel_kind(kind);
  for (const SizeKey& key : one.kind->sizes)
    if (key.usual) one.sizes[key.name] = *key.usual;
  for (const auto& [key, value] : sizes) one.sizes[key] = value;
  if (!one.kind->passes.empty()) one.pass = one.kind->passes.front();
  return one;
}

KernelQuestion gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return question("gemm", {{"m", m}, {"n", n}, {"k", k}});
}

class KernelPricerTest : public testing::Test {
 protected:
  KernelPricer pricer_{read_system("dgx-h100", {}), read_software("megatron-core", {}),
                       read_serving_engine("vllm", {})};
};

TEST_F(KernelPricerTest, AMeasuredProductIsItsRow) {
  const KernelTables tables = *read_kernel_tables("h100-sxm");
  const GemmRow& row = tables.gemm[0].rows[200];
  const KernelAnswer answer = pricer_.answer(gemm(row.m, row.n, row.k));
  EXPECT_EQ(answer.alone->tag, Tag::measured);
  EXPECT_NEAR(answer.alone->time / row.time, 1.0, 1e-12);
  ASSERT_EQ(answer.nearest.size(), 5u);
  EXPECT_TRUE(answer.nearest[0].same);
  EXPECT_EQ(answer.nearest[0].time, row.time);
  for (std::size_t i = 1; i < answer.nearest.size(); ++i) {
    EXPECT_FALSE(answer.nearest[i].same);
    EXPECT_GE(answer.nearest[i].distance, answer.nearest[i - 1].distance);
  }
}

// H100: 989 TFLOP/s over 3,350 GB/s is 295.2 operations a byte; 4096 / 3 is far beyond.
TEST_F(KernelPricerTest, ASquareProductIsBoundByCompute) {
  const KernelAnswer answer = pricer_.answer(gemm(4096, 4096, 4096));
  EXPECT_EQ(answer.main().bound(), Bound::compute);
  EXPECT_NEAR(answer.main().roofs.ridge(), 989e12 / 3350e9, 1e-9);
  EXPECT_DOUBLE_EQ(answer.main().roofs.ops_per_byte(), 4096.0 / 3.0);
  EXPECT_DOUBLE_EQ(answer.main().roofs.compute_time().si(), 2.0 * std::pow(4096.0, 3) / 989e12);
  EXPECT_LT(answer.main().share_of_roof(), 1.0);
}

// A step's price is that of KernelModel, which estimates ask.
TEST_F(KernelPricerTest, TrainingIsPricedAsEstimatesAre) {
  const KernelTables tables = *read_kernel_tables("h100-sxm");
  for (const auto& [pass, name] :
       {std::pair{GemmPass::forward, "forward"}, std::pair{GemmPass::dgrad, "dgrad"},
        std::pair{GemmPass::wgrad, "wgrad"}})
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8}) {
      const KernelModel model{read_gpu("h100-sxm", {}), dtype, &tables};
      KernelQuestion one = gemm(8192, 3000, 4096);
      one.pass = name;
      one.dtype = dtype;
      EXPECT_EQ(pricer_.answer(one).training->time, model.gemm(pass, 8192, 3000, 4096).time);
    }
  const KernelModel model{read_gpu("h100-sxm", {}), Dtype::bf16, &tables};
  KernelQuestion attention = question("attention", {{"seq", 8192}, {"heads", 32}});
  attention.pass = "backward";
  const KernelAnswer backward = pricer_.answer(attention);
  EXPECT_FALSE(backward.alone);
  AttentionShape shape{1, 8192, 8192, 32, 32, 128};
  if (pricer_.software().attention_library) shape.kernel = AttentionKernel::cudnn;
  EXPECT_EQ(backward.training->time,
            model.attention_backward(shape).time / pricer_.software().attention_efficiency);
}

TEST_F(KernelPricerTest, RangesHoldTheTimeAndAreWiderInTraining) {
  for (const KernelQuestion& one :
       {gemm(8192, 4096, 4096), question("norm", {{"tokens", 8192}, {"hidden", 4096}}),
        question("experts", {{"experts", 8}, {"tokens", 8192}, {"n", 4096}, {"k", 4096}})}) {
    const KernelAnswer answer = pricer_.answer(one);
    for (const auto& price : {answer.alone, answer.training}) {
      EXPECT_LT(price->low, price->time);
      EXPECT_GT(price->high, price->time);
      EXPECT_NEAR(price->high / price->time, price->time / price->low, 1e-9);
    }
    EXPECT_GT(answer.training->high / answer.training->low, answer.alone->high / answer.alone->low);
  }
}

// m = R n k / (n k - R (n + k)), rounded up: R = 295.2, n = k = 4096: 344.9.
TEST_F(KernelPricerTest, TheKneeOfAProductIsItsClosedForm) {
  const double ridge = 989e12 / 3350e9;
  for (const std::int64_t n : {1024, 2048, 4096, 16384}) {
    const double closed = ridge * static_cast<double>(n) * 4096 /
                          (static_cast<double>(n) * 4096 - ridge * static_cast<double>(n + 4096));
    EXPECT_EQ(*knee(pricer_, gemm(1, n, 4096), "m"), static_cast<std::int64_t>(std::ceil(closed)));
  }
  EXPECT_EQ(*knee(pricer_, gemm(1, 4096, 4096), "m"), 345);
  // 512 x 512 weights: n k = 262,144 < R (n + k) = 302,306. No number of rows is enough.
  EXPECT_FALSE(knee(pricer_, gemm(1, 512, 512), "m"));
}

TEST_F(KernelPricerTest, BelowTheKneeMemoryAndFromItOnCompute) {
  for (const std::int64_t m : {100, 344})
    EXPECT_EQ(pricer_.answer(gemm(m, 4096, 4096)).main().bound(), Bound::memory) << m;
  for (const std::int64_t m : {345, 4096})
    EXPECT_EQ(pricer_.answer(gemm(m, 4096, 4096)).main().bound(), Bound::compute) << m;
}

// Each key and value, 2 bytes, is read for 2 operations of each of the g queries that share it: g.
TEST_F(KernelPricerTest, DecodingHasAsManyOperationsAByteAsQueriesShareAKey) {
  for (const std::int64_t shared : {1, 4, 8}) {
    const KernelQuestion one = question(
        "decode", {{"batch", 64}, {"context", 65536}, {"heads", 8 * shared}, {"kv-heads", 8}});
    const KernelRoofs roofs = pricer_.roofs(one);
    EXPECT_NEAR(roofs.ops_per_byte(), static_cast<double>(shared),
                1e-3 * static_cast<double>(shared));
    EXPECT_FALSE(knee(pricer_, one, "batch"));
    const KernelAnswer answer = pricer_.answer(one);
    EXPECT_EQ(answer.main().bound(), Bound::memory);
    EXPECT_GE(answer.main().time, roofs.memory_time());
    EXPECT_FALSE(answer.nearest.empty());
  }
}

// 16 operations a parameter, of which megatron-core's file says the bytes.
TEST_F(KernelPricerTest, AdamIsBoundByMemory) {
  const KernelAnswer answer = pricer_.answer(question("adam", {{"parameters", 1'000'000'000}}));
  const Software& software = pricer_.software();
  EXPECT_EQ(answer.main().roofs.flop.si(), 16e9);
  EXPECT_DOUBLE_EQ(answer.main().roofs.bytes.si(),
                   1e9 * (software.optimizer_bytes + software.gradient_pass_bytes));
  EXPECT_EQ(answer.main().bound(), Bound::memory);
}

TEST_F(KernelPricerTest, ExchangesAreBoundByTheNetwork) {
  const auto sizes = std::map<std::string, std::int64_t>{
      {"tokens", 4096}, {"hidden", 7168}, {"experts", 256}, {"top-k", 8}, {"gpus", 32}};
  const KernelAnswer dispatch = pricer_.answer(question("dispatch", sizes));
  EXPECT_EQ(dispatch.main().bound(), Bound::network);
  // Three of four copies leave for the other nodes: 0.75 x 8 x 4096 x 7168 x 2 bytes over a NIC.
  EXPECT_NEAR(dispatch.main().roofs.bytes.si(), 0.75 * 8 * 4096 * 7168.0 * 2, 1.0);
  EXPECT_NEAR(dispatch.main().roofs.bandwidth.si(), 50e9, 1.0);
  EXPECT_GE(dispatch.main().time, dispatch.main().roofs.memory_time());
  auto uneven = sizes;
  uneven["experts"] = 250;
  EXPECT_THROW(pricer_.answer(question("dispatch", uneven)), Error);
}

// No row has a window: those without one are no neighbours.
TEST_F(KernelPricerTest, AWindowHasNoNeighbours) {
  KernelQuestion one = question("attention", {{"seq", 8192}, {"heads", 32}});
  EXPECT_EQ(pricer_.answer(one).nearest.size(), 5u);
  one.sizes["window"] = 1024;
  EXPECT_TRUE(pricer_.answer(one).nearest.empty());
  // 2 (w (w + 1) / 2 + (s - w) w - s / 2) keys a head, for 4 d operations each
  // (docs/explanation/layers.md).
  const double w = 1024, s = 8192;
  EXPECT_DOUBLE_EQ(pricer_.roofs(one).flop.si(),
                   4.0 * 32 * 128 * (w * (w + 1) / 2 + (s - w) * w - s / 2));
}

// All that can be asked has a price, a bound and a range at small and at large sizes.
TEST_F(KernelPricerTest, AnswersEveryKind) {
  for (const KernelKind& kind : kernel_kinds())
    for (const std::int64_t size : {64, 4096}) {
      KernelQuestion one = question(kind.name, {});
      for (const SizeKey& key : kind.sizes)
        if (!key.usual) one.sizes[key.name] = size;
      if (one.sizes.contains("top-k")) one.sizes["top-k"] = 4;
      if (one.sizes.contains("gpus")) one.sizes["gpus"] = 16;
      if (kind.of == KernelKind::Of::cast) one.dtype = Dtype::fp8;
      const KernelAnswer answer = pricer_.answer(one);
      EXPECT_GT(answer.main().time.si(), 0.0) << kind.name;
      EXPECT_GT(answer.main().high, answer.main().time) << kind.name;
      EXPECT_GT(answer.main().roofs.bytes.si(), 0.0) << kind.name;
    }
}

// A table may say that a kernel beats the roof of the data sheet by no more than its own scatter.
TEST_F(KernelPricerTest, NoProductOfTheTablesBeatsItsRoof) {
  const KernelTables tables = *read_kernel_tables("h100-sxm");
  for (std::size_t i = 0; i < tables.gemm[0].rows.size(); i += 50) {
    const GemmRow& row = tables.gemm[0].rows[i];
    EXPECT_LT(pricer_.answer(gemm(row.m, row.n, row.k)).main().share_of_roof(), 1.0);
  }
}

}  // namespace
}  // namespace orrery::kernel_pricer_test
