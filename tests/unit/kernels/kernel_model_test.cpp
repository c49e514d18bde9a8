#include "sim/kernels/kernel_model.hpp"

#include <gtest/gtest.h>

namespace orrery::kernel_model_test {
namespace {

const Place nowhere{"test", ""};

TEST(KernelModel, TrainingRunsAtItsShareOfABenchmark) {
  for (const std::string name : {"a100-sxm-80gb", "h100-sxm", "b200-sxm", "gb200"}) {
    SCOPED_TRACE(name);
    const auto tables = read_kernel_tables(name);
    const Gpu gpu = read_gpu(name, nowhere);
    const KernelModel model{gpu, Dtype::bf16, &*tables};
    const GemmTime benchmark{gpu, Dtype::bf16, &*tables};
    const KernelTime bench = benchmark(4096, 8192, 4096);
    ASSERT_EQ(bench.tag, Tag::measured);
    const KernelTime forward = model.gemm(GemmPass::forward, 4096, 8192, 4096);
    // The loss of the benchmark's own clock is not applied twice.
    EXPECT_DOUBLE_EQ(bench.time / forward.time,
                     tables->sustained * benchmark.throttle(4096, 8192, 4096));
    if (gpu.architecture == Architecture::ampere) {
      EXPECT_EQ(benchmark.throttle(4096, 8192, 4096), 1.0);  // Its long rows are not slower.
    } else {
      EXPECT_GT(benchmark.throttle(4096, 8192, 4096), 1.0);
    }
    EXPECT_EQ(forward.tag, Tag::interpolated);  // The factor is no measurement of this shape.
    EXPECT_EQ(model.gemm(GemmPass::dgrad, 4096, 8192, 4096).time, forward.time);
    const KernelTime wgrad = model.gemm(GemmPass::wgrad, 4096, 8192, 4096);
    EXPECT_DOUBLE_EQ(forward.time / wgrad.time, tables->wgrad_efficiency);
    EXPECT_GT(wgrad.time, forward.time);
    const AttentionShape shape{1, 4096, 4096, 32, 8, 128, true};
    EXPECT_NEAR(model.attention_backward(shape).time / model.attention_forward(shape).time,
                tables->attention_backward, 1e-12);
  }
}

// 1 GB at 85 % of 1 TB/s, no table: 1/0.85 ms, an assumption. A table that measured 0.5: 2 ms.
TEST(KernelModel, StreamingKernelsReachTheirShareOfTheMemory) {
  const Gpu gpu = read_gpu("test-gpu", nowhere);
  const KernelModel assumed{gpu, Dtype::bf16, nullptr};
  EXPECT_DOUBLE_EQ(assumed.memory(Bytes{1e9}).time.si(), 1e-3 / 0.85);
  EXPECT_EQ(assumed.memory(Bytes{1e9}).tag, Tag::default_value);
  KernelTables tables;
  tables.copy_efficiency = 0.5;
  tables.copy_measured = true;
  const KernelModel measured{gpu, Dtype::bf16, &tables};
  EXPECT_DOUBLE_EQ(measured.memory(Bytes{1e9}).time.si(), 2e-3);
  EXPECT_EQ(measured.memory(Bytes{1e9}).tag, Tag::interpolated);
}

// 1,024 x 10,240 values with a weight a column pass at 1.18 TB/s of 4 bytes each on H200; copies of
// as many bytes are faster. Where memory is what bounds them, nothing is added.
TEST(KernelModel, KernelsThatWorkOutAddressesAreSlowerThanMemory) {
  const Gpu gpu = read_gpu("h200-sxm", nowhere);
  const auto tables = read_kernel_tables("h200-sxm");
  const KernelModel model{gpu, Dtype::bf16, &*tables};
  const double elements = 1024.0 * 10240.0;
  const Bytes moved{4.0 * elements};
  const Seconds whole = model.memory(moved).time + model.beyond_memory(elements, moved);
  EXPECT_NEAR(moved.si() / whole.si(), 1.18e12, 0.01e12);
  EXPECT_EQ(model.beyond_memory(elements, Bytes{100.0 * elements}), Seconds{});
  EXPECT_EQ(model.beyond_memory(0.0, Bytes{}), Seconds{});
  // Half as many lanes, at a lower clock.
  const KernelModel a100{read_gpu("a100-sxm-80gb", nowhere), Dtype::bf16, nullptr};
  EXPECT_NEAR(a100.beyond_memory(elements, Bytes{}) / model.beyond_memory(elements, Bytes{}),
              (132 * 1.98) / (108 * 1.41), 0.01);
}

// The roofline's 0.7 of the peak is a training share already: 2e9 flop at 7e7 flop/us, 5 us launch.
TEST(KernelModel, WithoutTablesEverythingIsADefault) {
  const KernelModel model{read_gpu("test-gpu", nowhere), Dtype::bf16, nullptr};
  const KernelTime forward = model.gemm(GemmPass::forward, 1000, 1000, 1000);
  EXPECT_NEAR(forward.time.si() * 1e6, 2e9 / 7e7 + 5, 1e-9);
  EXPECT_EQ(forward.tag, Tag::default_value);
  EXPECT_NEAR(forward.time / model.gemm(GemmPass::wgrad, 1000, 1000, 1000).time, 0.96, 1e-12);
}

}  // namespace
}  // namespace orrery::kernel_model_test
