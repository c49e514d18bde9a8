#include "sim/kernels/gemm_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace orrery::gemm_time_test {
namespace {

const Place nowhere{"test", ""};

// 100 TFLOP/s = 1e8 flop/us, 1 TB/s = 1e6 bytes/us, 100 multiprocessors: one multiprocessor does
// 1e6 flop/us.
Gpu round_gpu() { return read_gpu("test-gpu", nowhere); }

KernelTables round_tables(std::vector<GemmRow> rows) {
  const Gpu gpu = round_gpu();
  KernelTables tables;
  tables.gpu = tables.used_for = gpu.name;
  GemmTable table;
  table.measured_on = {gpu, gpu.name, gpu.memory_bandwidth, gpu.multiprocessors};
  table.base = {microseconds(2), microseconds(1), 0.8, 0.5, 0.5, 0.1, Seconds{}, 0.0};
  table.rows = std::move(rows);
  tables.gemm.push_back(table);
  return tables;
}

// m = n = 1280, k = 1000. Tiles of 256x128 or 128x256: 5 * 10 = 50, half a wave, of
// 2*256*128*1000 / (0.8 * 1e6) = 81.92 us + 1 us. Tiles of 128x128: 100, exactly one wave, of
// 40.96 + 1 = 41.96 us. Tiles of 64x64: 400, four waves of 10.24 + 1 us = 44.96. So 41.96 us.
// Memory: 2 * (2*1280*1000 + 1280^2) = 8396800 bytes at 0.5e6 bytes/us: 16.7936 us.
// Throttle: ideal time 2*1280^2*1000 / 1e8 = 32.768 us, so 1 + 0.1 / (1 + (6000/32.768)^3).
TEST(GemmTime, BaseIsTheFormula) {
  const KernelTables tables = round_tables({{256, 512, 512, microseconds(10)}});
  const GemmTime gemm{round_gpu(), Dtype::bf16, &tables};
  const double core = std::pow(std::pow(41.96, 4) + std::pow(16.7936, 4), 0.25);
  const double expected = core * (1 + 0.1 / (1 + std::pow(6000 / 32.768, 3))) + 2.0;
  EXPECT_NEAR(gemm.base(1280, 1280, 1000).si() * 1e6, expected, 1e-9);
}

// One tile of 128x128 more than a wave: 101 tiles = 1.01 waves. Half hard (0.5): the tail counts
// 0.5 * 2 + 0.5 * 1.01 = 1.505 waves. n = 101 * 128 so that 256x128 wastes half of every tile:
// 101 such tiles of 82.92 us are far slower; 64x64 has 2*202 = 404 tiles, 0.5*5 + 0.5*4.04 = 4.52
// waves of 11.24 us = 50.80; 128x128 63.15 us; 128x256: 51 tiles, one wave of 82.92 us.
TEST(GemmTime, ATailWaveCostsItsHardShare) {
  const KernelTables tables = round_tables({{256, 512, 512, microseconds(10)}});
  const GemmTime gemm{round_gpu(), Dtype::bf16, &tables};
  const double memory = 2.0 * (1000.0 * (128 + 12928) + 128.0 * 12928) / 0.5e6;
  const double core = std::pow(std::pow(4.52 * 11.24, 4) + std::pow(memory, 4), 0.25);
  const double ideal = 2.0 * 128 * 12928 * 1000 / 1e8;
  EXPECT_NEAR(gemm.base(128, 12928, 1000).si() * 1e6,
              core * (1 + 0.1 / (1 + std::pow(6000 / ideal, 3))) + 2.0, 1e-9);
}

TEST(GemmTime, AMeasuredRowComesBackAsItIs) {
  const KernelTables tables =
      round_tables({{256, 512, 512, microseconds(10)}, {512, 512, 512, microseconds(77)}});
  const GemmTime gemm{round_gpu(), Dtype::bf16, &tables};
  EXPECT_DOUBLE_EQ(gemm(512, 512, 512).time.si(), 77e-6);
  EXPECT_EQ(gemm(512, 512, 512).tag, Tag::measured);
  EXPECT_EQ(gemm(512, 512, 513).tag, Tag::interpolated);
  EXPECT_LT(gemm.without_row(512, 512, 512).time, 0.9 * gemm(512, 512, 512).time);
  EXPECT_EQ(gemm.without_row(512, 512, 512).tag, Tag::interpolated);
  // fp16 runs on the same tensor cores at the same rate.
  const GemmTime half{round_gpu(), Dtype::fp16, &tables};
  EXPECT_DOUBLE_EQ(half(512, 512, 512).time.si(), 77e-6);
}

// Sizes measured: 256 to 1024. Four times outside, 64 and 4096, is the last that counts.
TEST(GemmTime, FarOutsideTheTableNothingIsMeasured) {
  const KernelTables tables =
      round_tables({{256, 256, 256, microseconds(10)}, {1024, 1024, 1024, microseconds(60)}});
  const GemmTime gemm{round_gpu(), Dtype::bf16, &tables};
  for (const std::int64_t size : {64, 4096}) {
    EXPECT_EQ(gemm(size, 512, 512).tag, Tag::interpolated);
    EXPECT_EQ(gemm(512, size, 512).tag, Tag::interpolated);
    EXPECT_EQ(gemm(512, 512, size).tag, Tag::interpolated);
  }
  for (const std::int64_t size : {63, 4097}) {
    EXPECT_EQ(gemm(size, 512, 512).tag, Tag::default_value);
    EXPECT_EQ(gemm(512, size, 512).tag, Tag::default_value);
    EXPECT_EQ(gemm(512, 512, size).tag, Tag::default_value);
  }
}

// Rows at 1.5 times the formula: far away the formula alone is left, near by the half more.
TEST(GemmTime, TheResidualFadesOutsideTheTable) {
  KernelTables tables = round_tables({{512, 512, 512, microseconds(1)}});
  const double base = GemmTime{round_gpu(), Dtype::bf16, &tables}.base(512, 512, 512).si();
  tables.gemm[0].rows[0].time = Seconds{1.5 * base};
  const GemmTime gemm{round_gpu(), Dtype::bf16, &tables};
  EXPECT_NEAR(gemm(512, 512, 520).time / gemm.base(512, 512, 520), 1.5, 0.03);
  EXPECT_NEAR(gemm(1 << 15, 1 << 15, 512).time / gemm.base(1 << 15, 1 << 15, 512), 1.0, 0.01);
}

TEST(GemmTime, AProxyKeepsTheFormAndTakesItsOwnSpeeds) {
  KernelTables tables = round_tables({{4096, 4096, 4096, microseconds(3000)}});
  tables.used_for = "twice";
  Gpu twice = round_gpu();
  twice.peak_16bit = 2 * twice.peak_16bit;
  twice.memory_bandwidth = 2 * twice.memory_bandwidth;
  const GemmTime own{round_gpu(), Dtype::bf16, &tables};
  const GemmTime other{twice, Dtype::bf16, &tables};
  EXPECT_EQ(own(4096, 4096, 4096).tag, Tag::interpolated);  // Not of this name: not measured.
  EXPECT_EQ(other(4096, 4096, 4096).tag, Tag::interpolated);
  // The residual of the row carries over; launch and tile overhead (2 us, and 11 waves of 1 us of
  // 1800) do not halve, and neither does the time until the power limit acts.
  EXPECT_NEAR(other(4096, 4096, 4096).time / own(4096, 4096, 4096).time, 0.5, 0.015);
  EXPECT_GT(other(4096, 4096, 4096).time / own(4096, 4096, 4096).time, 0.5);
}

// A what-if machine: the measured GPU's name with a doubled peak must not return measured rows.
TEST(GemmTime, ChangedFiguresAreNotMeasured) {
  const KernelTables tables = round_tables({{4096, 4096, 4096, microseconds(3000)}});
  Gpu faster = round_gpu();
  faster.peak_16bit = 2 * faster.peak_16bit;
  const GemmTime gemm{faster, Dtype::bf16, &tables};
  EXPECT_EQ(gemm(4096, 4096, 4096).tag, Tag::interpolated);
  EXPECT_LT(gemm(4096, 4096, 4096).time, microseconds(2000));
}

// No table: max(2*1000^3 / (0.7 * 1e8), 3 * 2 * 1000^2 / (0.85 * 1e6)) + 5 us
//         = max(28.571, 7.059) + 5 us; and a thin product, where memory decides:
//           max(2*1000*1000 / 7e7, 2 * (1000*1000 + 1000 + 1000) / 0.85e6) + 5 us.
TEST(GemmTime, WithoutATableItIsARoofline) {
  const GemmTime gemm{round_gpu(), Dtype::bf16, nullptr};
  EXPECT_NEAR(gemm(1000, 1000, 1000).time.si() * 1e6, 2e9 / 7e7 + 5, 1e-9);
  EXPECT_NEAR(gemm(1, 1000, 1000).time.si() * 1e6, 2 * 1002000 / 0.85e6 + 5, 1e-9);
  EXPECT_EQ(gemm(1000, 1000, 1000).tag, Tag::default_value);
  // fp32 runs on the vector units (10 TFLOP/s), and no table is of use for it.
  const KernelTables tables = round_tables({{1000, 1000, 1000, microseconds(1)}});
  const GemmTime single{round_gpu(), Dtype::fp32, &tables};
  EXPECT_NEAR(single(1000, 1000, 1000).time.si() * 1e6, 2e9 / 0.7e7 + 5, 1e-9);
}

TEST(GemmTime, AGpuWithoutTheUnitsIsRefused) {
  const Gpu a100 = read_gpu("a100-sxm-80gb", nowhere);
  EXPECT_THROW((GemmTime{a100, Dtype::fp8, nullptr}), Error);
}

// In fp8 the tables hold the quantising of A; a training step charges that on its own.
TEST(GemmTime, Fp8WithoutItsCastIsFaster) {
  const auto tables = read_kernel_tables("h100-sxm");
  const Gpu gpu = read_gpu("h100-sxm", nowhere);
  const GemmTime fp8{gpu, Dtype::fp8, &*tables};
  const GemmTime bf16{gpu, Dtype::bf16, &*tables};
  EXPECT_EQ(fp8(4096, 8192, 4096).tag, Tag::measured);
  EXPECT_EQ(fp8.without_cast(4096, 8192, 4096).tag, Tag::interpolated);
  EXPECT_LT(fp8.without_cast(4096, 8192, 4096).time, fp8(4096, 8192, 4096).time);
  EXPECT_EQ(bf16.without_cast(4096, 8192, 4096).time, bf16(4096, 8192, 4096).time);
}

// The formula never rewards more work: all sizes from 1 to 2^17 by powers of two, and k one by one.
TEST(GemmTime, BaseGrowsWithEverySize) {
  for (const std::string name : {"a100-sxm-80gb", "h100-sxm", "gb300"}) {
    const auto tables = read_kernel_tables(name);
    const GemmTime gemm{read_gpu(name, nowhere), Dtype::bf16, &*tables};
    for (std::int64_t m = 1; m <= 1 << 17; m *= 2)
      for (std::int64_t n = 1; n <= 1 << 17; n *= 2)
        for (std::int64_t k = 1; k <= 1 << 16; k *= 2) {
          const Seconds here = gemm.base(m, n, k);
          ASSERT_LT(here, gemm.base(m, n, 2 * k)) << name << ' ' << m << ' ' << n << ' ' << k;
          ASSERT_LE(here, gemm.base(2 * m, n, k)) << name << ' ' << m << ' ' << n << ' ' << k;
          ASSERT_LE(here, gemm.base(m, 2 * n, k)) << name << ' ' << m << ' ' << n << ' ' << k;
        }
    for (std::int64_t k = 512; k < 4096; ++k)
      ASSERT_LT(gemm.base(3000, 5000, k), gemm.base(3000, 5000, k + 1));
  }
}

TEST(GemmTime, AQueryIsCheap) {
  const auto tables = read_kernel_tables("h100-sxm");
  const GemmTime gemm{read_gpu("h100-sxm", nowhere), Dtype::bf16, &*tables};
  const auto start = std::chrono::steady_clock::now();
  constexpr int queries = 2000;
  double sum = 0.0;
  for (int i = 0; i < queries; ++i) sum += gemm(1000 + i, 3000, 3000).time.si();
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
      queries;
  EXPECT_GT(sum, 0.0);  // Keeps the compiler from leaving the loop out.
  RecordProperty("microseconds_per_query", std::to_string(us));
  EXPECT_LT(us, 200.0);  // About 5 us; the slack is for a loaded machine.
}

}  // namespace
}  // namespace orrery::gemm_time_test
