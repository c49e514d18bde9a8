#include "sim/serving/serving_kernels.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/measurements/serving_table.hpp"

namespace orrery::serving_kernels_test {
namespace {

TEST(ServingKernels, GiveRowsBackAsTheyWereMeasured) {
  const Gpu gpu = read_gpu("h100-sxm", {});
  const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
  const auto table = read_serving_table("h100-sxm", "gemm-fp8-vllm");
  ASSERT_TRUE(table);
  int cold = 0;
  for (std::size_t i = 0; i < table->rows(); i += 101) {
    const auto sizes = table->row(i);
    if (sizes[2] < 16) continue;  // The next test's.
    const KernelTime time = kernels.gemm(Dtype::fp8, sizes[0], sizes[1], sizes[2]);
    if (time.tag == Tag::measured) {
      EXPECT_NEAR(time.time / table->times[i], 1.0, 1e-9);
    } else {  // Under the floor for cold weights.
      ++cold;
      EXPECT_GT(time.time, table->times[i]);
    }
  }
  EXPECT_LT(cold, 5);
}

// Fewer rows than 16 can be padded: at 1 to 8 they take at most what 16 take, or what was measured,
// or the floor for cold weights.
TEST(ServingKernels, FewRowsTakeNoLongerThanSixteen) {
  const Gpu gpu = read_gpu("gb200", {});
  const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
  const auto table = read_serving_table("gb200", "gemm-fp8-vllm");
  ASSERT_TRUE(table);
  int padded = 0;
  for (std::size_t i = 0; i < table->rows(); i += 7) {
    const auto sizes = table->row(i);
    if (sizes[2] >= 16) continue;
    const Seconds few = kernels.gemm(Dtype::fp8, sizes[0], sizes[1], sizes[2]).time;
    const Seconds sixteen = kernels.gemm(Dtype::fp8, sizes[0], sizes[1], 16).time;
    EXPECT_LE(few, sixteen);
    padded += few < 0.8 * table->times[i];
  }
  EXPECT_GT(padded, 0);
}

TEST(ServingKernels, NothingIsFasterThanItsBytesOverTheBandwidth) {
  // The warm rows of L40S beat its memory up to three times.
  for (const char* name : {"l40s", "rtx-pro-6000-blackwell", "h100-sxm"}) {
    const Gpu gpu = read_gpu(name, {});
    const ServingKernels kernels{gpu, read_serving_engine("trtllm", {})};
    for (std::int64_t n = 512; n <= 65536; n *= 2)
      for (const std::int64_t m : {1, 16, 128}) {
        const Bytes weights{2.0 * static_cast<double>(n) * 4096};
        EXPECT_GT(kernels.gemm(Dtype::bf16, n, 4096, m).time,
                  1.1 * (weights / gpu.memory_bandwidth))
            << name << " " << n << " " << m;
      }
  }
}

TEST(ServingKernels, Nf4IsPricedAsInt4OrBehindItsWritingOut) {
  for (const char* name : {"h100-sxm", "a100-sxm-80gb"}) {
    const Gpu gpu = read_gpu(name, {});
    const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
    const double weights = 8192.0 * 8192.0;
    const auto traffic = [&](double bytes) { return Bytes{bytes} / gpu.memory_bandwidth; };
    for (const std::int64_t m : {1, 32}) {
      const KernelTime time = kernels.gemm(Dtype::nf4, 8192, 8192, m);
      const KernelTime int4 = kernels.gemm(Dtype::int4, 8192, 8192, m);
      EXPECT_EQ(time.tag, Tag::default_value);
      EXPECT_GE(time.time, int4.time);
      EXPECT_LT(time.time, 1.1 * int4.time);  // 4.5 bits for 4.16.
      EXPECT_GT(time.time, 1.1 * traffic(0.5625 * weights));
      EXPECT_LE(kernels.gemm(Dtype::nf4_dq, 8192, 8192, m).time, time.time);
    }
    for (const std::int64_t m : {33, 4096}) {
      const KernelTime time = kernels.gemm(Dtype::nf4, 8192, 8192, m);
      EXPECT_EQ(time.tag, Tag::default_value);
      EXPECT_NEAR((time.time - kernels.gemm(Dtype::bf16, 8192, 8192, m).time).si(),
                  2.0 * traffic(2.5625 * weights).si() + 1.5e-6, 1e-12);
    }
    const std::array<std::int64_t, 7> sizes{2048, 768, 8, 128, 1, 1, 4};
    EXPECT_NEAR(
        (kernels.experts(Dtype::nf4, sizes).time - kernels.experts(Dtype::bf16, sizes).time).si(),
        2.0 * traffic(2.5625 * 128 * 3 * 2048 * 768).si() + 1.5e-6, 1e-12);
  }
}

// Marlin's kernels convert 4-bit weights for units that Hopper and Blackwell have for older code: a
// product of many rows takes its operations at that rate, one of few its bytes.
TEST(ServingKernels, WeightsAloneIn4BitsMultiplyAtMarlinsRate) {
  constexpr std::int64_t n = 8192, k = 8192, many = 16384;
  const double operations = 2.0 * n * k * many;
  struct Case {
    const char* engine;
    const char* gpu;
    double rate;  // 0: not known, the usual share of the 16-bit peak.
  };
  for (const Case& one : {Case{"sglang", "h100-sxm", 290e12},
                          {"sglang", "b200-sxm", 331e12},
                          {"sglang", "gb300", 331e12},
                          {"vllm", "b200-sxm", 331e12},
                          {"vllm", "h100-sxm", 0.0},
                          {"trtllm", "b200-sxm", 290e12}}) {
    const Gpu gpu = read_gpu(one.gpu, {});
    const ServingKernels kernels{gpu, read_serving_engine(one.engine, {})};
    const Seconds time = kernels.gemm(Dtype::int4, n, k, many).time;
    if (one.rate == 0.0) {
      EXPECT_LT(time.si(), operations / 600e12);
    } else {
      EXPECT_NEAR(operations / one.rate / time.si(), 1.0, 0.02) << one.engine << one.gpu;
    }
    // Weights in nvfp4 alone are as fast; both operands in nvfp4 are several times faster.
    EXPECT_EQ(kernels.gemm(Dtype::nvfp4a16, n, k, many).tag, Tag::default_value);
    EXPECT_NEAR(kernels.gemm(Dtype::nvfp4a16, n, k, many).time / time, 1.0, 0.01);
    if (gpu.peak_fp4 > FlopPerSecond{}) {
      EXPECT_LT(6.0 * kernels.gemm(Dtype::nvfp4, n, k, many).time, time);
    }
    const Bytes weights{element_bytes(Dtype::nvfp4a16) * n * k};
    EXPECT_LT(kernels.gemm(Dtype::nvfp4a16, n, k, 16).time,
              2.0 * (weights / gpu.memory_bandwidth) + microseconds(6));
  }
}

TEST(ServingKernels, AProxyIsScaledAndNeverCalledMeasured) {
  const Gpu h800 = read_gpu("h800-sxm", {});
  const ServingKernels kernels{h800, read_serving_engine("vllm", {})};
  EXPECT_EQ(kernels.measured_gpu(), "h100-sxm");
  EXPECT_EQ(kernels.gemm(Dtype::fp8, 4096, 4096, 64).tag, Tag::interpolated);
}

TEST(ServingKernels, ThePartOfAPromptIsItsShareOfTheTriangle) {
  const Gpu gpu = read_gpu("h200-sxm", {});
  const ServingKernels kernels{gpu, read_serving_engine("vllm", {})};
  const auto time = [&](std::int64_t tokens, std::int64_t cached) {
    return kernels.prefill_attention(Dtype::bf16, 32, 8, 128, tokens, cached).time;
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

// GB200 was measured up to the four GPUs of a tray. Eight of an NVL72 reach each other as eight of
// a DGX B200 do; sixteen were not measured.
TEST(ServingKernels, LargerGroupsOfOneDomainAreThoseOfASister) {
  const ServingEngine trtllm = read_serving_engine("trtllm", {});
  const ServingKernels tray{read_gpu("gb200", {}), trtllm};
  const ServingKernels eight{read_gpu("b200-sxm", {}), trtllm};
  ASSERT_TRUE(tray.all_reduce(8, 8192));
  EXPECT_EQ(tray.all_reduce(8, 8192)->time, eight.all_reduce(8, 8192)->time);
  EXPECT_EQ(tray.all_reduce(8, 8192)->tag, Tag::interpolated);
  EXPECT_NE(tray.all_reduce(4, 8192)->time, eight.all_reduce(4, 8192)->time);
  EXPECT_FALSE(tray.all_reduce(16, 8192));
}

// SGLang sums with TensorRT-LLM's kernel on Blackwell, and with its own on Hopper.
TEST(ServingKernels, AnEngineMaySumWithAnothersKernelOnSomeGpus) {
  const auto time = [](const char* gpu, const char* engine) {
    return ServingKernels{read_gpu(gpu, {}), read_serving_engine(engine, {})}
        .all_reduce(8, 1 << 18)
        ->time;
  };
  EXPECT_EQ(time("b200-sxm", "sglang"), time("b200-sxm", "trtllm"));
  EXPECT_NE(time("h200-sxm", "sglang"), time("h200-sxm", "trtllm"));
}

// Experts of gpt-oss-120b. Where another engine's rows reach a shape and the engine's own end just
// before it, by less than half an octave, the own ones are used.
TEST(ServingKernels, AnEnginesOwnKernelsComeFirst) {
  const Gpu gpu = read_gpu("h200-sxm", {});
  const KernelFormats formats{Dtype::mxfp4, Dtype::bf16};
  const auto table = [&](const char* name) {
    return FittedTable{*read_serving_table("h200-sxm", name), formats,
                       roof_rates(gpu, "experts", formats)};
  };
  const FittedTable own = table("experts-mxfp4-trtllm"), other = table("experts-mxfp4-vllm");
  int shapes = 0;
  for (const std::int64_t tp : {1, 2, 4, 8})
    for (std::int64_t m = 1; m < 100'000; m += 1 + m / 4) {
      const std::array<std::int64_t, 7> sizes{2880, 2880, 4, 128, tp, 1, m};
      const double beyond = own.outside(sizes);
      if (beyond <= 0.0 || beyond > 0.5 || other.outside(sizes) >= beyond) continue;
      ++shapes;
      const ServingKernels kernels{gpu, read_serving_engine("trtllm", {})};
      kernels.experts(Dtype::mxfp4, sizes);
      EXPECT_EQ(kernels.used(), std::vector<std::string>{own.title()}) << tp << " " << m;
    }
  EXPECT_GT(shapes, 0);
}

}  // namespace
}  // namespace orrery::serving_kernels_test
