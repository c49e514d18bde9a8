#include "sim/serving/kernel_roof.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace orrery::kernel_roof_test {
namespace {

TEST(KernelRoof, ProductsReadTheirWeightsInTheirFormat) {
  const std::array<std::int64_t, 3> sizes{1024, 512, 8};  // n, k, m
  const KernelWork bf16 = kernel_work("gemm", {Dtype::bf16, {}}, sizes);
  EXPECT_EQ(bf16.flop.si(), 2.0 * 1024 * 512 * 8);
  EXPECT_EQ(bf16.bytes.si(), 2.0 * (1024 * 512 + 8 * 512 + 8 * 1024));
  const KernelWork nvfp4 = kernel_work("gemm", {Dtype::nvfp4, {}}, sizes);
  EXPECT_EQ(nvfp4.bytes.si(), 0.5625 * (1024 * 512 + 8 * 512) + 2.0 * 8 * 1024);
  // int4 holds weights alone: activations stay in 16 bits.
  const KernelWork int4 = kernel_work("gemm", {Dtype::int4, {}}, sizes);
  EXPECT_EQ(int4.bytes.si(), (0.5 + 2.5 / 128) * 1024 * 512 + 2.0 * 8 * 512 + 2.0 * 8 * 1024);
}

TEST(KernelRoof, Nf4IsWrittenOutIn16BitsForManyRows) {
  const auto bytes = [](Dtype format, std::int64_t m) {
    return kernel_work("gemm", {format, {}}, std::array<std::int64_t, 3>{1024, 512, m}).bytes.si();
  };
  constexpr double weights = 1024 * 512;
  EXPECT_EQ(bytes(Dtype::nf4, 32), 0.5625 * weights + 2.0 * 32 * (512 + 1024));
  EXPECT_EQ(bytes(Dtype::nf4_dq, 32), 4.126953125 / 8 * weights + 2.0 * 32 * (512 + 1024));
  // Read as stored, written, and read again.
  EXPECT_EQ(bytes(Dtype::nf4, 33), (0.5625 + 2.0 + 2.0) * weights + 2.0 * 33 * (512 + 1024));
  // Experts always, those that no token visits as well: 4 of 8, with matrices of 256 x 128.
  const std::array<std::int64_t, 7> sizes{256, 256, 2, 8, 2, 2, 1};
  EXPECT_EQ(kernel_work("experts", {Dtype::nf4, {}}, sizes).bytes.si() -
                kernel_work("experts", {Dtype::bf16, {}}, sizes).bytes.si(),
            (0.5625 + 2.0) * 4 * 3 * 256 * 128);
}

TEST(KernelRoof, DecodeAttentionReadsTheCacheOfEachRequest) {
  // 4 requests, 32 heads, 8 key heads of 128, 1,000 tokens: keys and values of 2 bytes, and one
  // query and one result a head.
  const std::array<std::int64_t, 6> sizes{4, 32, 8, 128, 0, 1000};
  const KernelWork all = kernel_work("decode_attention", {{}, Dtype::bf16}, sizes);
  EXPECT_EQ(all.bytes.si(), 2.0 * 4 * 8 * 128 * 1000 * 2 + 2.0 * 2 * 4 * 32 * 128);
  EXPECT_EQ(all.flop.si(), 4.0 * 4 * 32 * 128 * 1000);
  const std::array<std::int64_t, 6> local{4, 32, 8, 128, 128, 1000};
  const KernelWork window = kernel_work("decode_attention", {{}, Dtype::fp8}, local);
  EXPECT_EQ(window.bytes.si(), 2.0 * 4 * 8 * 128 * 128 * 1 + 2.0 * 2 * 4 * 32 * 128);
}

TEST(KernelRoof, DistinctExpertsFollowTheCouponCollector) {
  // Even draws: E (1 - (1 - 1/E)^draws), DeepSeek-V3's 256 with 8 of them for each of 32 tokens.
  EXPECT_NEAR(distinct_experts(256, 1, 8, 32, 1.0), 256 * (1 - std::pow(255.0 / 256, 256)), 1e-9);
  EXPECT_NEAR(distinct_experts(256, 1, 8, 32, 1.0), 162.1, 0.1);
  // One token visits exactly its own.
  EXPECT_EQ(distinct_experts(256, 1, 8, 1, 0.75), 8.0);
  // A rank holds its share of all, and never reads more.
  EXPECT_NEAR(distinct_experts(256, 8, 8, 1e6, 0.75), 32.0, 1e-9);
  EXPECT_NEAR(distinct_experts(8, 1, 2, 1e6, 1.0), 8.0, 1e-9);
}

TEST(KernelRoof, DistinctExpertsRiseWithTokensAndFallWithUnevenness) {
  double before = 0.0;
  for (const double tokens : {1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 4096.0}) {
    const double now = distinct_experts(128, 4, 4, tokens, power_law_evenness);
    EXPECT_GE(now, before);
    EXPECT_LE(now, distinct_experts(128, 4, 4, tokens, 1.0));
    before = now;
  }
}

TEST(KernelRoof, IsTheLongerOfTrafficAndProductsAndAStart) {
  const KernelWork work{Flop{1e12}, Bytes{1e9}};
  const FlopPerSecond peak{1e15};
  // 1 ms of products, 1 ms or 0.5 ms of traffic, and 2 us.
  EXPECT_NEAR(kernel_roof("gemm", work, peak, BytesPerSecond{2e12}).si(), 1.002e-3, 1e-12);
  EXPECT_NEAR(kernel_roof("gemm", work, peak, BytesPerSecond{0.5e12}).si(), 2.002e-3, 1e-12);
  EXPECT_NEAR(kernel_roof("all_reduce", work, {}, BytesPerSecond{1e12}).si(), 1.004e-3, 1e-12);
}

}  // namespace
}  // namespace orrery::kernel_roof_test
