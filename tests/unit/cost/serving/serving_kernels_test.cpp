#include "sim/cost/serving/serving_kernels.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/input/measured/serving_table.hpp"

namespace orrery {
namespace {

TEST(ServingKernels, GiveRowsBackAsTheyWereMeasured) {
  const Gpu gpu = read_gpu("h100-sxm", {});
  const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
  const auto table = read_serving_table("h100-sxm", "gemm-fp8-vllm");
  ASSERT_TRUE(table);
  int cold = 0;
  for (std::size_t i = 0; i < table->rows(); i += 101) {
    const auto sizes = table->row(i);
    const KernelTime time = kernels.gemm(WeightFormat::fp8, sizes[0], sizes[1], sizes[2]);
    if (time.tag == Tag::measured) {
      EXPECT_NEAR(time.time / table->times[i], 1.0, 1e-9);
    } else {  // Under the floor for cold weights.
      ++cold;
      EXPECT_GT(time.time, table->times[i]);
    }
  }
  EXPECT_LT(cold, 5);
}

TEST(ServingKernels, NothingIsFasterThanItsBytesOverTheBandwidth) {
  // The warm rows of L40S beat its memory up to three times.
  for (const char* name : {"l40s", "rtx-pro-6000-blackwell", "h100-sxm"}) {
    const Gpu gpu = read_gpu(name, {});
    const ServingKernels kernels{gpu, read_serving_engine("trtllm", {})};
    for (std::int64_t n = 512; n <= 65536; n *= 2)
      for (const std::int64_t m : {1, 16, 128}) {
        const Bytes weights{2.0 * static_cast<double>(n) * 4096};
        EXPECT_GT(kernels.gemm(WeightFormat::bf16, n, 4096, m).time,
                  1.1 * (weights / gpu.memory_bandwidth))
            << name << " " << n << " " << m;
      }
  }
}

TEST(ServingKernels, AStandInIsScaledAndNeverCalledMeasured) {
  const Gpu h800 = read_gpu("h800-sxm", {});
  const ServingKernels kernels{h800, read_serving_engine("vllm", {})};
  EXPECT_EQ(kernels.measured_gpu(), "h100-sxm");
  EXPECT_EQ(kernels.gemm(WeightFormat::fp8, 4096, 4096, 64).tag, Tag::interpolated);
}

TEST(ServingKernels, ThePartOfAPromptIsItsShareOfTheTriangle) {
  const Gpu gpu = read_gpu("h200-sxm", {});
  const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
  const auto time = [&](std::int64_t tokens, std::int64_t cached) {
    return kernels.prefill_attention(KvFormat::bf16, 32, 8, 128, tokens, cached).time;
  };
  // Halves of a prompt: a quarter and three quarters of its work.
  EXPECT_NEAR(time(4096, 4096) / time(8192, 0), 0.75, 1e-9);
}

TEST(ServingKernels, MoreGpusThanWereMeasuredHaveNoKernelOfTheirOwn) {
  const ServingKernels pcie{read_gpu("rtx-pro-6000-blackwell", {}),
                            read_serving_engine("vllm", {})};
  EXPECT_TRUE(pcie.all_reduce(2, 8192));
  EXPECT_FALSE(pcie.all_reduce(8, 8192));
}

}  // namespace
}  // namespace orrery
