#include "sim/kernels/attention_time.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::attention_time_test {
namespace {

const Place nowhere{"test", ""};

// 100 TFLOP/s = 1e8 flop/us, 1 TB/s = 1e6 bytes/us, 100 multiprocessors.
Gpu round_gpu() { return read_gpu("test-gpu", nowhere); }

// Efficiency 0.5, no diagonal, no tail, no isolated block: the formula is flop / 5e7 + bytes / 1e6.
KernelTables round_tables() {
  const Gpu gpu = round_gpu();
  KernelTables tables;
  tables.gpu = tables.used_for = gpu.name;
  tables.attention_backward = 3.0;
  tables.attention = AttentionTable{"a benchmark",
                                    AttentionTable::Measures::serving_step,
                                    {gpu, gpu.name, gpu.memory_bandwidth, gpu.multiprocessors},
                                    {{128, microseconds(12), 0.5, 0.0, 2.0, 1.0, 0.0, 0.0},
                                     {256, microseconds(12), 0.5, 0.0, 2.0, 1.0, 0.0, 0.0}},
                                    {}};
  return tables;
}

// The formula for round_tables() with serving's traffic (2 and 1) at 128: batch 2, s 1000, heads 16
// over 4. Flop 2*2*16*1000*1000*128 = 8.192e9: 163.84 us; bytes 4*2*128*1000*(16*2 + 4*1) =
// 36.864e6: 36.864 us; launch 12 us. Training: bytes 4*2*128*1000*(16 + 4)/2 = 10.24e6, launch 4
// us.
constexpr double serving_us = 163.84 + 36.864 + 12;
constexpr double training_us = 163.84 + 10.24 + 4;
const AttentionRow row{2, 1000, 16, 4, 128, microseconds(serving_us)};
const AttentionShape square{2, 1000, 1000, 16, 4, 128, true};

TEST(AttentionTime, ServingAndTrainingAreTheFormula) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  const AttentionTime attention{round_gpu(), &tables};
  EXPECT_NEAR(attention.table_time_without_row(row).time.si() * 1e6, serving_us, 1e-9);
  EXPECT_NEAR(attention.forward(square).time.si() * 1e6, training_us, 1e-9);
  EXPECT_EQ(attention.forward(square).tag, Tag::interpolated);
  EXPECT_NEAR(attention.backward(square).time.si() * 1e6, 3 * training_us, 1e-9);
}

TEST(AttentionTime, AMeasuredRowComesBackAsItIs) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.attention->rows[0].time = microseconds(2 * serving_us);
  const AttentionTime attention{round_gpu(), &tables};
  EXPECT_NEAR(attention.table_time(row).time.si() * 1e6, 2 * serving_us, 1e-9);
  EXPECT_EQ(attention.table_time(row).tag, Tag::measured);
  // What the row says of the kernel carries over to the training step, which is not measured.
  EXPECT_NEAR(attention.forward(square).time.si() * 1e6, 2 * training_us, 1e-9);
  EXPECT_EQ(attention.forward(square).tag, Tag::interpolated);
  // Without the row nothing is left but the formula.
  EXPECT_NEAR(attention.table_time_without_row(row).time.si() * 1e6, serving_us, 1e-9);
}

// Compute only counts 163.84 us of it. No mask: twice. The last half of the queries of a causal
// sequence: 500 queries see 750 keys on average, against 1000 that see 500: three quarters.
TEST(AttentionTime, TheMaskDecidesTheWork) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  const AttentionTime attention{round_gpu(), &tables};
  AttentionShape shape = square;
  shape.causal = false;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, 2 * 163.84 + 10.24 + 4, 1e-9);
  shape = square;
  shape.seq_q = 500;  // bytes 4*2*128*(500*16 + 1000*4)/2 = 6.144e6
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, 0.75 * 163.84 + 6.144 + 4, 1e-9);
}

// Time is linear in the head dimension, measured at 128 and 256, so 192 is their mean; 64 and 512
// are outside: the nearest formula, and no measurement to speak of.
TEST(AttentionTime, HeadDimensionsBetweenMeasuredOnes) {
  KernelTables tables = round_tables();
  AttentionRow wide = row;
  wide.head_dim = 256;
  wide.time = microseconds(500);
  tables.attention->rows = {row, wide};
  const AttentionTime attention{round_gpu(), &tables};
  const auto at = [&](std::int64_t head_dim) {
    AttentionRow asked = row;
    asked.head_dim = head_dim;
    return attention.table_time(asked);
  };
  EXPECT_NEAR(at(192).time.si() * 1e6, (serving_us + 500) / 2, 1e-9);
  EXPECT_NEAR(at(160).time.si() * 1e6, (3 * serving_us + 500) / 4, 1e-9);
  EXPECT_EQ(at(256).tag, Tag::measured);
  EXPECT_EQ(at(192).tag, Tag::interpolated);
  EXPECT_EQ(at(64).tag, Tag::default_value);
  EXPECT_EQ(at(512).tag, Tag::default_value);
  EXPECT_NEAR(at(64).time.si() * 1e6, (serving_us - 12) / 2 + 12, 1e-9);
}

TEST(AttentionTime, SequencesFarOutsideTheTableAreDefaults) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  const AttentionTime attention{round_gpu(), &tables};
  for (const std::int64_t sequence : {250, 4000})
    EXPECT_EQ(attention.forward({1, sequence, sequence, 8, 8, 128, true}).tag, Tag::interpolated);
  for (const std::int64_t sequence : {249, 4001})
    EXPECT_EQ(attention.forward({1, sequence, sequence, 8, 8, 128, true}).tag, Tag::default_value);
}

// 100 multiprocessors and blocks of 256 queries: 101 blocks are 1.01 waves. All hard: 2 waves, so
// 2 / 1.01 times the work of 101 blocks.
TEST(AttentionTime, ATailWaveCostsItsHardShare) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.attention->bases[0].hard = 1.0;
  const AttentionTime attention{round_gpu(), &tables};
  const double flop = 2.0 * 101 * 256 * 256 * 128;
  const double bytes = 4.0 * 128 * 256 * 101;
  // The row, predicted with hard = 1, leaves a residual that the query must share: divide it out.
  const double waves = 2 * 16 * 4 / 100.0;  // The row has 1.28 waves, counted as 2.
  const double row_says = std::log(serving_us / (163.84 * 2 / waves + 36.864 + 12));
  const double d2 = std::pow(0.7 * std::log2(101.0 / 32), 2) +
                    std::pow(0.7 * std::log2(256.0 / 1000), 2) + std::pow(0.3 * std::log2(4.0), 2) +
                    std::pow(0.2 * std::log2(2.0), 2);
  const double weight = 1 / (d2 + 0.05);
  const double residual = std::exp(weight * row_says / (weight + 0.5));
  EXPECT_NEAR(attention.forward({1, 256, 256, 101, 101, 128, true}).time.si() * 1e6,
              residual * (flop / 5e7 * 2 / 1.01 + bytes / 1e6 + 4), 1e-9);
}

// No table: half of the peak, 8.192e9 / 5e7 = 163.84 us, and the roofline's 5 us launch. Backward
// 2.5 / 0.86 of that on all but Blackwell.
TEST(AttentionTime, WithoutATableHalfOfThePeak) {
  const AttentionTime attention{round_gpu(), nullptr};
  EXPECT_NEAR(attention.forward(square).time.si() * 1e6, 163.84 + 5, 1e-9);
  EXPECT_EQ(attention.forward(square).tag, Tag::default_value);
  EXPECT_NEAR(attention.backward(square).time / attention.forward(square).time, 2.5 / 0.86, 1e-12);
  Gpu blackwell = round_gpu();
  blackwell.architecture = Architecture::blackwell;
  const AttentionTime newer{blackwell, nullptr};
  EXPECT_NEAR(newer.backward(square).time / newer.forward(square).time, 2.5 / 0.83, 1e-12);
}

TEST(AttentionTime, ProxiesAreNeverMeasured) {
  for (const std::string name : {"b300-sxm", "a100-sxm-40gb"}) {
    const auto tables = read_kernel_tables(name);
    const AttentionTime attention{read_gpu(name, nowhere), &*tables};
    EXPECT_EQ(attention.table_time(tables->attention->rows[0]).tag, Tag::interpolated) << name;
  }
}

// cuDNN's training kernels were measured by themselves: at their shapes that is the answer, fading
// by what the interpolation keeps back (1 in 41 with one row: weight 20 of 20.5).
TEST(AttentionTime, TrainingRowsCorrectTheTable) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.training_attention =
      TrainingAttention{"test-gpu",
                        "a benchmark",
                        round_gpu().peak_16bit,
                        {{Dtype::bf16, 2, 1000, 16, 4, 128, 128, 0, microseconds(0.5 * training_us),
                          microseconds(1.5 * training_us)},
                         {Dtype::fp8, 2, 1000, 16, 4, 128, 128, 0, microseconds(0.25 * training_us),
                          microseconds(0.75 * training_us)}}};
  const AttentionTime attention{round_gpu(), &tables};
  const double kept = 20.0 / 20.5;
  AttentionShape shape = square;
  shape.kernel = AttentionKernel::cudnn;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, std::pow(0.5, kept) * training_us, 1e-9);
  EXPECT_NEAR(attention.backward(shape).time.si() * 1e6, std::pow(0.5, kept) * 3 * training_us,
              1e-9);
  EXPECT_EQ(attention.forward(shape).tag, Tag::interpolated);
  shape.format = Dtype::fp8;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, std::pow(0.25, kept) * training_us, 1e-9);
  // A shape without measurements costs what the table predicts, and is no measurement.
  shape.format = Dtype::mxfp8;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, training_us, 1e-9);
  EXPECT_EQ(attention.forward(shape).tag, Tag::default_value);
  // The tables' own kernels stay as they are.
  EXPECT_NEAR(attention.forward(square).time.si() * 1e6, training_us, 1e-9);
}

// 2 sequences of 16 heads on 100 multiprocessors: ceil(100 / 32) = 4 blocks each, 128 in all, two
// waves where 1.28 would be even. Three gradients of the queries more than usual, 2*16*1000*128
// elements of 8 bytes at 0.85 TB/s: 98.304e6 bytes, 115.65 us.
TEST(AttentionTime, ADeterministicBackwardPassRunsInWholeWaves) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  const AttentionTime attention{round_gpu(), &tables};
  AttentionShape shape = square;
  shape.kernel = AttentionKernel::deterministic_flash_attention_2;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, training_us, 1e-9);
  EXPECT_NEAR(attention.backward(shape).time.si() * 1e6,
              3 * training_us * 200.0 / 128.0 + 98.304 / 0.85, 1e-9);
  EXPECT_EQ(attention.backward(shape).tag, Tag::default_value);
  // One block a multiprocessor, or a whole number of waves of single blocks, loses nothing.
  for (const std::int64_t batch : {25, 50}) {
    shape.batch = batch;
    AttentionShape usual = shape;
    usual.kernel = AttentionKernel::of_tables;
    EXPECT_NEAR(attention.backward(shape).time / attention.backward(usual).time, 1.0, 1e-12);
  }
  for (std::int64_t heads = 1; heads <= 300; ++heads) {
    shape.batch = 1;
    shape.heads = shape.kv_heads = heads;
    AttentionShape usual = shape;
    usual.kernel = AttentionKernel::of_tables;
    const double slower = attention.backward(shape).time / attention.backward(usual).time;
    EXPECT_GE(slower, 1.0 - 1e-12) << heads;
  }
}

TEST(AttentionTime, FlashAttention2HasRowsOfItsOwn) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.training_attention = parse_training_attention(JsonValue::parse(
      R"({"schema": "orrery.training_attention/1", "gpu": "test-gpu", "source": "a benchmark",
          "peak_16bit": "100 TFLOP/s", "columns": [], "rows": [],
          "flash_attention_2": {"source": "another",
            "rows": [["bf16", 2, 1000, 16, 4, 128, 128, 0, 356.16, 1068.48]]}})",
      "rows"));
  tables.sustained = 0.9;
  Gpu gpu = round_gpu();
  gpu.architecture = Architecture::hopper;
  const AttentionTime attention{gpu, &tables};
  AttentionShape shape = square;
  shape.kernel = AttentionKernel::flash_attention_2;
  const double slower = std::pow(2.0, 20.0 / 20.5);
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, slower * training_us, 1e-9);
  EXPECT_NEAR(attention.backward(shape).time.si() * 1e6, slower * 3 * training_us, 1e-9);
  shape.kernel = AttentionKernel::deterministic_flash_attention_2;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, slower * training_us, 1e-9);
  EXPECT_NEAR(attention.backward(shape).time.si() * 1e6,
              slower * 3 * training_us * 200.0 / 128.0 + 98.304 / 0.85, 1e-9);
  shape.kernel = AttentionKernel::cudnn;
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, training_us, 1e-9);
}

// A power limit that holds products at 0.84 of their first clock leaves FlashAttention 2 alone on
// Hopper; one that holds them at half of that holds it at half. Elsewhere it is as cuDNN's.
TEST(AttentionTime, FlashAttention2FeelsNoPowerLimitOnHopper) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  const std::string some = R"(["bf16", 2, 1000, 16, 4, 128, 128, 0, 356.16, 1068.48])";
  tables.training_attention = parse_training_attention(JsonValue::parse(
      R"({"schema": "orrery.training_attention/1", "gpu": "test-gpu", "source": "a benchmark",
          "peak_16bit": "100 TFLOP/s", "columns": [], "rows": [)" +
          some + R"(], "flash_attention_2": {"source": "another", "rows": [)" + some + "]}}",
      "rows"));
  const auto slower = [&](Architecture architecture, double sustained, AttentionKernel kernel) {
    Gpu gpu = round_gpu();
    gpu.architecture = architecture;
    const auto time = [&](double clock) {
      tables.sustained = clock;
      AttentionShape shape = square;
      shape.kernel = kernel;
      return AttentionTime{gpu, &tables}.forward(shape).time;
    };
    // The one row counts by 20 in 20.5 of what it says.
    return std::pow(time(sustained) / time(1.0), 20.5 / 20.0);
  };
  using enum Architecture;
  for (const double held : {0.84, 0.9, 1.0})
    EXPECT_NEAR(slower(hopper, held, AttentionKernel::flash_attention_2), 1.0, 1e-12);
  EXPECT_NEAR(slower(hopper, 0.42, AttentionKernel::flash_attention_2), 2.0, 1e-9);
  EXPECT_NEAR(slower(blackwell, 0.8, AttentionKernel::flash_attention_2), 1.25, 1e-9);
  EXPECT_NEAR(slower(hopper, 0.8, AttentionKernel::cudnn), 1.25, 1e-9);
}

// Longer and shorter sequences than measured are as much slower than the tables' as the nearest.
TEST(AttentionTime, LongSequencesKeepTheRateOfTheLongestRow) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.training_attention = parse_training_attention(JsonValue::parse(
      R"({"schema": "orrery.training_attention/1", "gpu": "test-gpu", "source": "a benchmark",
          "peak_16bit": "100 TFLOP/s", "columns": [], "rows": [
            ["bf16", 2, 1000, 16, 4, 128, 128, 0, 356.16, 1068.48],
            ["bf16", 2, 4000, 16, 4, 128, 128, 0, 4000, 12000]]})",
      "rows"));
  const AttentionTime attention{round_gpu(), &tables};
  const auto slower = [&](std::int64_t sequence, bool backward) {
    AttentionShape shape = square, usual = square;
    shape.seq_q = shape.seq_kv = usual.seq_q = usual.seq_kv = sequence;
    shape.kernel = AttentionKernel::cudnn;
    return backward ? attention.backward(shape).time / attention.backward(usual).time
                    : attention.forward(shape).time / attention.forward(usual).time;
  };
  for (const bool backward : {false, true}) {
    for (const std::int64_t longer : {2, 16, 256})
      EXPECT_NEAR(slower(4000 * longer, backward), slower(4000, backward), 1e-12) << longer;
    EXPECT_NEAR(slower(500, backward), slower(1000, backward), 1e-12);
    EXPECT_NE(slower(4000, backward), slower(1000, backward));
  }
}

// FlashAttention 2's own chart on A100, both passes: 189 TFLOP/s at 16,384 tokens and 173 at 4,096,
// at the clock that products hold.
TEST(AttentionTime, A100sIsThatOfFlashAttention2) {
  const Gpu gpu = read_gpu("a100-sxm-80gb", {});
  const auto tables = read_kernel_tables(gpu.name);
  ASSERT_TRUE(tables);
  const AttentionTime attention{gpu, &*tables};
  for (const auto& [sequence, rate] : {std::pair{4096, 173.0}, {16384, 189.0}, {262144, 189.0}}) {
    AttentionShape shape{1, sequence, sequence, 16, 16, 128};
    shape.batch = std::max(1, 16384 / sequence);
    shape.kernel = AttentionKernel::flash_attention_2;
    const double flop = 3.5 * 2.0 * static_cast<double>(shape.batch * shape.heads) *
                        std::pow(static_cast<double>(sequence), 2) * 128.0;
    const Seconds both = attention.forward(shape).time + attention.backward(shape).time;
    EXPECT_NEAR(flop / both.si() / 1e12, tables->sustained * rate, 0.02 * rate) << sequence;
  }
}

// A benchmark of ten runs has a cool GPU's clock, and another GPU its own peak.
TEST(AttentionTime, TrainingRowsOfAnotherClockAndPeak) {
  KernelTables tables = round_tables();
  tables.attention->rows = {row};
  tables.training_attention =
      TrainingAttention{"another-gpu",
                        "a benchmark",
                        2.0 * round_gpu().peak_16bit,
                        {{Dtype::bf16, 2, 1000, 16, 4, 128, 128, 0, microseconds(training_us / 2),
                          microseconds(3 * training_us / 2)}}};
  AttentionShape shape = square;
  shape.kernel = AttentionKernel::cudnn;
  EXPECT_NEAR((AttentionTime{round_gpu(), &tables}.forward(shape).time.si() * 1e6), training_us,
              1e-9);
  tables.sustained = 0.8;
  EXPECT_NEAR((AttentionTime{round_gpu(), &tables}.forward(shape).time.si() * 1e6),
              std::pow(1 / 0.8, 20.0 / 20.5) * training_us, 1e-9);
}

}  // namespace
}  // namespace orrery::attention_time_test
