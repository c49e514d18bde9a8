// The path from a record to a file, and from the file to times.

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/calibration/calibration_text.hpp"
#include "sim/core/write_file.hpp"
#include "sim/training/context.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/synthetic_record.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::calibration_test {
namespace {

const Place nowhere{"test", ""};

CalibrationFit synthetic_fit(const calibration::Record& record = synthetic_record()) {
  return fit_calibration({{"r.json", record}}, {}, {"test-gpu", false, 0});
}

Calibration read_back(const CalibrationFit& fit) {
  return parse_calibration(JsonValue::parse(calibration_json(fit), "c.json"), "c.json");
}

// `name` with a file that says what `fit` does.
System calibrated(const std::string& name, const CalibrationFit& fit) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "c.json").string();
  write_file(path, calibration_json(fit));
  System system = read_system(name, nowhere);
  calibrate(system, path, nowhere);
  return system;
}

TEST(CalibrationJson, ReadsBackAsItWasWritten) {
  const CalibrationFit fit = synthetic_fit();
  const Calibration read = read_back(fit);
  EXPECT_EQ(read.gpu, "test-gpu");
  ASSERT_EQ(read.sources.size(), 1u);
  EXPECT_EQ(read.sources[0].file, "r.json");
  EXPECT_EQ(read.sources[0].machine,
            "synthetic-test-gpu, driver none, CUDA none, cuBLAS none, NCCL none");
  ASSERT_TRUE(read.kernels.has_value());
  const GemmTable& written = fit.kernels->tables.gemm.at(0);
  const GemmTable& table = read.kernels->gemm.at(0);
  EXPECT_EQ(table.source, written.source);
  EXPECT_NEAR(table.base.overhead / written.base.overhead, 1.0, 1e-12);
  EXPECT_NEAR(table.base.tile_overhead / written.base.tile_overhead, 1.0, 1e-12);
  EXPECT_EQ(table.base.compute_efficiency, written.base.compute_efficiency);
  EXPECT_EQ(table.base.memory_efficiency, written.base.memory_efficiency);
  EXPECT_EQ(table.base.hard, written.base.hard);
  EXPECT_EQ(table.base.throttle, written.base.throttle);
  EXPECT_FALSE(table.base.casts());
  EXPECT_NEAR(table.left_out->p90, written.left_out->p90, 0.5e-4);
  ASSERT_EQ(table.rows.size(), written.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(table.rows[i].m, written.rows[i].m);
    EXPECT_NEAR(table.rows[i].time / written.rows[i].time, 1.0, 1e-12);
  }
  EXPECT_EQ(read.kernels->attention->measures, AttentionTable::Measures::kernel);
  EXPECT_EQ(read.kernels->attention->rows.size(), 12u);
  EXPECT_NEAR(read.kernels->copy_efficiency, 0.85, 1e-4);
  EXPECT_TRUE(read.kernels->copy_measured);
  EXPECT_TRUE(read.kernels->factor_sources.at("sustained").measured);
  ASSERT_EQ(read.curves.size(), 2u);
  EXPECT_EQ(read.curves[1].ranks, 4);
  EXPECT_EQ(read.curves[1].points.size(), 8u);
}

// Without the clock of a long run: prices are then those of the benchmark.
calibration::Record record_of_short_runs() {
  calibration::Record record = synthetic_record();
  std::erase_if(record.measurements, [](const auto& one) { return one.what.kind == "sustained"; });
  return record;
}

// Every price that the file holds is the one that was measured.
TEST(Calibration, PricesWhatWasMeasuredAsItWas) {
  const SyntheticTruth truth;
  const System system = calibrated("four-by-four", synthetic_fit(record_of_short_runs()));
  EstimateContext context{system};
  const KernelModel& kernels = context.kernels(Dtype::bf16);
  const KernelTime gemm = kernels.gemm(GemmPass::forward, 4096, 6144, 4096);
  EXPECT_EQ(gemm.tag, Tag::measured);
  EXPECT_NEAR(gemm.time.si() * 1e6, truth.gemm_us(4096, 6144, 4096), 1e-3);
  const KernelTime attention = kernels.attention_forward({1, 4096, 4096, 16, 4, 128, true});
  EXPECT_EQ(attention.tag, Tag::measured);
  EXPECT_NEAR(attention.time.si() * 1e6, truth.attention_us(4096, 16), 1e-3);
  const KernelTime backward = kernels.attention_backward({1, 4096, 4096, 16, 4, 128, true});
  EXPECT_NEAR(backward.time / attention.time, truth.attention_backward, 1e-3);
  const KernelTime copy = kernels.memory(Bytes{1e9});  // At 0.85 of 1 TB/s.
  EXPECT_EQ(copy.tag, Tag::interpolated);
  EXPECT_NEAR(copy.time.si(), 1e-3 / truth.copy_efficiency, 1e-7);
  const CollectiveCost all_reduce =
      context.collectives({})(CollectiveKind::all_reduce, Bytes{1 << 22}, {4, 1, 4});
  EXPECT_EQ(all_reduce.tag, Tag::measured);
  EXPECT_NEAR(all_reduce.time().si() * 1e6, truth.all_reduce_us(4, 1 << 22), 1e-3);

  EstimateContext without{read_system("four-by-four", nowhere)};
  EXPECT_EQ(without.kernels(Dtype::bf16).gemm(GemmPass::forward, 4096, 6144, 4096).tag,
            Tag::default_value);
}

// Products in fp8 and fp16 have their own tables, of nothing but the product: fp8 is not quantised
// again, fp16 is not taken for bf16.
TEST(Calibration, EachFormatHasItsOwnProducts) {
  const SyntheticTruth truth;
  calibration::Record record = record_of_short_runs();
  std::vector<calibration::Measurement> more;
  for (const auto& one : record.measurements)
    if (one.what.kind == "gemm" && one.what.choice("pass") == "forward")
      for (const auto& [dtype, factor] : {std::pair{"fp8", 0.55}, {"fp16", 1.1}}) {
        more.push_back(one);
        more.back().what.choices["dtype"] = dtype;
        for (auto* timing : {&more.back().cold, &more.back().warm})
          **timing = synthetic_time(factor * (*timing)->median_us);
      }
  record.measurements.insert(record.measurements.end(), more.begin(), more.end());
  EstimateContext context{calibrated("four-by-four", synthetic_fit(record))};
  const double us = truth.gemm_us(4096, 6144, 4096);
  for (const auto& [dtype, factor] :
       {std::pair{Dtype::bf16, 1.0}, {Dtype::fp8, 0.55}, {Dtype::fp16, 1.1}}) {
    const KernelTime time = context.kernels(dtype).gemm(GemmPass::forward, 4096, 6144, 4096);
    EXPECT_NEAR(time.time.si() * 1e6, factor * us, 2e-3) << name(dtype);
    EXPECT_EQ(time.tag, Tag::measured) << name(dtype);
  }
}

// A clock that sinks stretches products, and what is stretched is no longer what was measured. What
// the benchmark's own clock lost meanwhile is not lost again.
TEST(Calibration, ASustainedClockStretchesProducts) {
  const SyntheticTruth truth;
  const System system = calibrated("four-by-four", synthetic_fit());
  EstimateContext context{system};
  const GemmTime benchmark{system.gpu, Dtype::bf16, &*system.calibration->kernels};
  const double throttle = benchmark.throttle(4096, 6144, 4096);
  const KernelTime gemm = context.kernels(Dtype::bf16).gemm(GemmPass::forward, 4096, 6144, 4096);
  EXPECT_EQ(gemm.tag, Tag::interpolated);
  const double sustained = system.calibration->kernels->sustained;
  EXPECT_NEAR(sustained, truth.sustained, 1e-3);
  EXPECT_NEAR(gemm.time.si() * 1e6, truth.gemm_us(4096, 6144, 4096) / throttle / sustained, 0.01);
}

TEST(Calibration, WhatItLacksIsAsItCameWithTheProject) {
  calibration::Record record = synthetic_record();
  record.machine.gpu = "NVIDIA H100 80GB HBM3";
  record.machine.multiprocessors = 132;
  std::erase_if(record.measurements, [](const auto& one) { return one.what.kind != "gemm"; });
  const System system = calibrated("dgx-h100", fit_calibration({{"r.json", record}}, {}, {}));
  const KernelTables shipped = *read_kernel_tables("h100-sxm");
  const KernelTables tables = *kernel_tables_of(system);
  ASSERT_EQ(tables.gemm.size(), 2u);
  // Sixteen products correct those of the project; ten of them are of other shapes.
  EXPECT_EQ(tables.gemm[0].rows.size(), shipped.gemm[0].rows.size() + 10);
  EXPECT_NE(tables.gemm[0].source.find("corrected by 16 rows"), std::string::npos);
  EXPECT_EQ(tables.gemm[1].dtype, Dtype::fp8);
  EXPECT_EQ(tables.gemm[1].rows.size(), shipped.gemm[1].rows.size());
  EXPECT_EQ(tables.attention->rows.size(), shipped.attention->rows.size());
  ASSERT_TRUE(tables.training_attention);
  EXPECT_EQ(tables.training_attention->rows.size(), shipped.training_attention->rows.size());
  EXPECT_EQ(tables.sustained, shipped.sustained);
  EXPECT_EQ(tables.copy_efficiency, shipped.copy_efficiency);
}

TEST(Calibration, IsOfOneGpuAndOfNodesThatHoldItsRanks) {
  const CalibrationFit fit = synthetic_fit();
  const auto refusal = [&](const std::string& name) {
    const std::string text = error_text([&] { calibrated(name, fit); });
    return text.substr(text.find("c.json"));
  };
  EXPECT_EQ(refusal("dgx-h100"),
            "c.json was measured on 'test-gpu', but 'dgx-h100' has 'h100-sxm'; name a system of "
            "that GPU, or measure this one");
  EXPECT_EQ(error_text([&] { calibrated("two-gpus", fit); }),
            "test: its curve 'r-all_reduce-4x1' is of 4 ranks on 1 node, but nodes of 'two-gpus' "
            "have 2 GPUs; use it with the system that was measured");
}

TEST(CalibrationChart, HasAPointForEachRowAndOneInTheLegend) {
  const Calibration calibration = read_back(synthetic_fit());
  const std::string svg = calibration_chart(calibration, assess(calibration));
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != svg.npos; at = svg.find("<circle", at + 1))
    ++circles;
  EXPECT_EQ(circles, 16u + 1u + 12u + 1u);
}

TEST(CalibrationText, NamesUnexplainedRows) {
  calibration::Record record = synthetic_record();
  for (auto& one : record.measurements)
    if (one.what.id() == "gemm forward bf16 m=4096 n=6144 k=4096")
      for (auto* timing : {&one.cold, &one.warm})
        **timing = synthetic_time(2.0 * (*timing)->median_us);
  const Calibration calibration = read_back(synthetic_fit(record));
  const std::string text = calibration_text(calibration, assess(calibration));
  EXPECT_NE(text.find("  gemm bf16, 4096 x 6144 x 4096: "), text.npos) << text;
  EXPECT_NE(text.find("common shapes, as"), text.npos) << text;
}

}  // namespace
}  // namespace orrery::calibration_test
