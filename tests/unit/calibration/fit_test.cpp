#include "sim/calibration/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/host/expert_tokens.hpp"
#include "sim/calibration/calibration_text.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/core/text_file.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/synthetic_record.hpp"

namespace orrery::fit_test {
namespace {

using calibration::make_case;
using calibration::Measurement;
using calibration::Record;

CalibrationFit fit_of(const Record& record, bool own_attention = false) {
  return fit_calibration({{"r.json", record}}, {}, {"test-gpu", own_attention, 0});
}

template <class Change>
CalibrationFit fit_after(Change change) {
  Record record = synthetic_record();
  for (Measurement& one : record.measurements) change(one);
  return fit_of(record);
}

bool is_gemm(const Measurement& one, const std::string& pass) {
  return one.what.kind == "gemm" && one.what.choice("pass") == pass;
}

void slow_down(Measurement& one, double factor) {
  for (auto* timing : {&one.cold, &one.warm})
    if (*timing) {
      (*timing)->median_us *= factor;
      (*timing)->p10_us *= factor;
      (*timing)->p90_us *= factor;
    }
}

TEST(Fit, FindsTheFormulasOfARecord) {
  const SyntheticTruth truth;
  const CalibrationFit fit = fit_of(synthetic_record());
  EXPECT_EQ(fit.gpu.name, "test-gpu");
  ASSERT_TRUE(fit.kernels.has_value());
  ASSERT_EQ(fit.kernels->tables.gemm.size(), 1u);
  const GemmTable& table = fit.kernels->tables.gemm[0];
  EXPECT_EQ(table.dtype, Dtype::bf16);
  EXPECT_EQ(table.rows.size(), 16u);
  EXPECT_LT(table.left_out->median, 0.01);
  EXPECT_LT(table.left_out->p90, 0.03);
  EXPECT_NEAR(fit.kernels->wgrad_efficiency.value, truth.wgrad_efficiency, 0.01);
  EXPECT_NEAR(fit.kernels->copy_efficiency.value, truth.copy_efficiency, 1e-9);
  EXPECT_NEAR(fit.kernels->overlap_loss_share.value, truth.overlap_loss_share, 1e-12);
  // Against the fitted table, whose own falling clock is fitted as well.
  EXPECT_NEAR(fit.kernels->sustained.value, truth.sustained, 1e-3);
  EXPECT_NEAR(fit.kernels->attention_backward.value, truth.attention_backward, 1e-3);
  for (const FittedFactor* factor : {&fit.kernels->wgrad_efficiency, &fit.kernels->copy_efficiency,
                                     &fit.kernels->sustained, &fit.kernels->attention_backward})
    EXPECT_TRUE(factor->measured);
  ASSERT_TRUE(fit.kernels->tables.attention.has_value());
  EXPECT_EQ(fit.kernels->tables.attention->measures, AttentionTable::Measures::kernel);
  EXPECT_EQ(fit.kernels->tables.attention->rows.size(), 12u);
  EXPECT_LT(attention_error(&fit.kernels->tables, 128)->median, 0.01);
  ASSERT_EQ(fit.curves.size(), 2u);
  EXPECT_EQ(fit.curves[0].ranks, 2);
  EXPECT_EQ(fit.curves[0].nodes, 1);
  EXPECT_EQ(fit.curves[0].points.size(), 8u);
}

// All products a tenth slower: the formula is a tenth slower, and the ratio of passes is as it was.
TEST(Fit, ABiasOfAllIsNotOneOfAPass) {
  const CalibrationFit fit = fit_after([](Measurement& one) {
    if (one.what.kind == "gemm") slow_down(one, 1.1);
  });
  EXPECT_NEAR(fit.kernels->wgrad_efficiency.value, SyntheticTruth{}.wgrad_efficiency, 0.015);
}

// wgrad alone a tenth slower: the forward table is what it was, wgrad's share falls by as much.
TEST(Fit, ABiasOfAPassIsThatPassesOwn) {
  const CalibrationFit plain = fit_of(synthetic_record());
  const CalibrationFit fit = fit_after([](Measurement& one) {
    if (is_gemm(one, "wgrad")) slow_down(one, 1.1);
  });
  EXPECT_NEAR(fit.kernels->wgrad_efficiency.value, plain.kernels->wgrad_efficiency.value / 1.1,
              1e-9);
  EXPECT_EQ(fit.kernels->tables.gemm[0].base.compute_efficiency,
            plain.kernels->tables.gemm[0].base.compute_efficiency);
}

// Back to back the power limit holds long products; a few runs after a pause it does not.
TEST(Fit, TheFirstClockOfAProductCounts) {
  const CalibrationFit plain = fit_of(synthetic_record());
  Record held = synthetic_record();
  for (Measurement& one : held.measurements)
    if (one.what.kind == "gemm") {
      one.figures["first_clock_us"] = one.warm->median_us;
      slow_down(one, 1.16);
    }
  const CalibrationFit fit = fit_of(held);
  const auto &rows = fit.kernels->tables.gemm[0].rows,
             &expected = plain.kernels->tables.gemm[0].rows;
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].time, expected[i].time);
  EXPECT_EQ(fit.kernels->wgrad_efficiency.value, plain.kernels->wgrad_efficiency.value);
  EXPECT_EQ(fit.kernels->sustained.value, plain.kernels->sustained.value);
}

TEST(Fit, OneRowThreeTimesTooSlowIsFoundAndMovesLittle) {
  const CalibrationFit plain = fit_of(synthetic_record());
  bool done = false;
  const CalibrationFit fit = fit_after([&](Measurement& one) {
    if (!done && is_gemm(one, "forward") && one.what.size("m") == 4096) {
      slow_down(one, 3.0);
      done = true;
    }
  });
  EXPECT_NEAR(fit.kernels->tables.gemm[0].base.compute_efficiency,
              plain.kernels->tables.gemm[0].base.compute_efficiency, 0.05);
  const std::vector<double> errors = gemm_errors(fit.gpu, fit.kernels->tables, Dtype::bf16);
  EXPECT_LT(*std::min_element(errors.begin(), errors.end()), -0.5);
}

TEST(Fit, DriftNoiseAndThrottlingAreLeftOutByName) {
  const auto note_after = [](auto spoil) {
    const CalibrationFit fit = fit_after([&](Measurement& one) {
      if (one.what.id() == "gemm forward bf16 m=1024 n=6144 k=4096") spoil(one);
    });
    EXPECT_EQ(fit.kernels->tables.gemm[0].rows.size(), 15u);
    return fit.notes.at(0);
  };
  const std::string start = "unsound, left out: gemm forward bf16 m=1024 n=6144 k=4096 (";
  EXPECT_EQ(note_after([](Measurement& one) { one.warm->drift = -0.08; }),
            start + "its clock drifted by 8.0 %)");
  EXPECT_EQ(note_after([](Measurement& one) { one.cold->noise = 0.15; }),
            start + "its median is known to 15.0 % only)");
  EXPECT_EQ(note_after([](Measurement& one) { one.reference_slowdown = 1.12; }),
            start + "the GPU was 12.0 % slower around it)");
}

TEST(Fit, WhatWasNotMeasuredIsAsWithoutARecord) {
  Record record = synthetic_record();
  std::erase_if(record.measurements,
                [](const Measurement& one) { return !is_gemm(one, "forward"); });
  const CalibrationFit fit = fit_of(record);
  EXPECT_FALSE(fit.kernels->sustained.measured);
  EXPECT_EQ(fit.kernels->sustained.value, 1.0);
  EXPECT_EQ(fit.kernels->sustained.source, "assumed, as for a GPU without tables");
  EXPECT_FALSE(fit.kernels->tables.attention.has_value());
  EXPECT_TRUE(fit.curves.empty());
}

TEST(Fit, OwnAttentionKernelsAreTakenOnRequest) {
  Record record = synthetic_record();
  for (Measurement& one : record.measurements)
    if (one.what.kind == "attention") one.implementation = "orrery mma.sync kernel";
  const CalibrationFit without = fit_of(record);
  EXPECT_FALSE(without.kernels->tables.attention.has_value());
  EXPECT_EQ(without.notes.at(0),
            "16 attention passes by orrery-gpu's own kernels, slower than what frameworks run: "
            "--own-attention takes them");
  EXPECT_TRUE(fit_of(record, true).kernels->tables.attention.has_value());
}

TEST(Fit, OfThreeRecordsTheMiddleTimeCounts) {
  Record fast = synthetic_record(), middle = fast, slow = fast;
  for (Measurement& one : fast.measurements)
    if (one.what.kind == "gemm") slow_down(one, 0.9);
  for (Measurement& one : slow.measurements)
    if (one.what.kind == "gemm") slow_down(one, 1.3);
  const CalibrationFit fit = fit_calibration(
      {{"a.json", slow}, {"b.json", fast}, {"c.json", middle}}, {}, {"test-gpu", false, 0});
  const CalibrationFit alone = fit_of(middle);
  ASSERT_EQ(fit.kernels->tables.gemm[0].rows.size(), alone.kernels->tables.gemm[0].rows.size());
  for (std::size_t i = 0; i < alone.kernels->tables.gemm[0].rows.size(); ++i)
    EXPECT_EQ(fit.kernels->tables.gemm[0].rows[i].time, alone.kernels->tables.gemm[0].rows[i].time);
}

TEST(Fit, RefusesMixedAndUnknownGpus) {
  const auto refusal = [](const std::vector<NamedRecord>& records, const std::string& gpu) {
    return error_text([&] { fit_calibration(records, {}, {gpu, false, 0}); });
  };
  Record other = synthetic_record();
  other.machine.gpu = "NVIDIA H200";
  EXPECT_EQ(refusal({{"a.json", synthetic_record()}, {"b.json", other}}, "test-gpu"),
            "b.json: is of the GPU 'H200', but a.json of 'synthetic-test-gpu'; fit each kind of "
            "GPU by itself");
  EXPECT_EQ(refusal({{"a.json", synthetic_record()}}, ""),
            "the catalog has no GPU that the driver calls 'synthetic-test-gpu'; give --gpu NAME: "
            "orrery list gpus");
  EXPECT_EQ(refusal({{"b.json", other}}, "test-gpu"),
            "--gpu: is 'test-gpu', but the measurements are of 'h200-sxm'; leave it out");
  EXPECT_EQ(refusal({{"b.json", other}}, ""),
            "b.json: /machine/multiprocessors: are 100, but 'h200-sxm' has 132; give --gpu NAME: "
            "orrery list gpus");
  Record ampere = synthetic_record();
  ampere.machine.compute_capability = "8.0";
  EXPECT_EQ(
      refusal({{"a.json", ampere}}, "test-gpu"),
      "a.json: /machine/compute_capability: is 8.0, which is ampere, but 'test-gpu' is hopper; "
      "give --gpu NAME: orrery list gpus");
}

// As the fit's own tables say, and an eighth longer each: forward, dgrad, wgrad, even and skewed.
TEST(Fit, FindsTheEfficiencyOfExperts) {
  Record record = synthetic_record();
  const CalibrationFit before = fit_of(record);
  EXPECT_FALSE(before.kernels->grouped_efficiency.measured);
  KernelTables tables = before.kernels->tables;
  tables.wgrad_efficiency = before.kernels->wgrad_efficiency.value;
  const KernelModel kernels{before.gpu, Dtype::bf16, &tables};
  for (const auto& [name, pass] : {std::pair{"forward", GemmPass::forward},
                                   {"dgrad", GemmPass::dgrad},
                                   {"wgrad", GemmPass::wgrad}})
    for (const bool skewed : {false, true}) {
      const GroupedGemm layer{pass, 4096, 2048, pass == GemmPass::wgrad ? 8.0 : 0.0};
      const double us =
          kernels.grouped_kernel(layer, calibration::expert_tokens(8192, 8, skewed)).time.si() *
          1e6;
      record.measurements.push_back(
          synthetic(make_case("grouped_gemm", {name, "bf16", skewed ? "skewed" : "even"},
                              {8192, 8, 4096, 2048}),
                    us * 1.125));
    }
  const CalibrationFit fit = fit_of(record);
  EXPECT_TRUE(fit.kernels->grouped_efficiency.measured);
  EXPECT_NEAR(fit.kernels->grouped_efficiency.value, 1.0 / 1.125, 1e-9);
  for (const FitCheck& check : fit.checks) {
    if (!check.what.starts_with("grouped")) continue;
    for (const double error : check.errors) EXPECT_NEAR(error, 0.0, 1e-9) << check.what;
  }
}

// One moment at which the GPU was 10 % faster than ever after does not make all else unsound.
TEST(Fit, TheUsualClockCounts) {
  Record record = synthetic_record();
  record.reference = {{0, 100.0}, {10, 110.0}, {20, 110.0}, {30, 121.0}};
  for (Measurement& one : record.measurements) one.reference_slowdown = 1.1;
  record.measurements[0].reference_slowdown = 1.21;
  const CalibrationFit fit = fit_of(record);
  EXPECT_EQ(fit.kernels->tables.gemm.at(0).rows.size(), 15u);
  ASSERT_EQ(fit.notes.size(), 1u);
  EXPECT_NE(fit.notes[0].find("the GPU was 10.0 % slower around it"), fit.notes[0].npos)
      << fit.notes[0];
}

TEST(Fit, RefusesCopiesFasterThanTheMemory) {
  Record record = synthetic_record(SyntheticTruth{.copy_efficiency = 1.2});
  EXPECT_EQ(error_text([&] { fit_of(record); }),
            "copies reach 120.0 % of the memory bandwidth of 'test-gpu'; no GPU can: correct the "
            "catalog's bandwidth, or give --gpu NAME");
}

TEST(Fit, RefusesARecordOfNothing) {
  Record record = synthetic_record();
  record.measurements.clear();
  EXPECT_EQ(error_text([&] { fit_of(record); }),
            "nothing can be fitted; measure more: orrery calibrate gpu");
}

TEST(Fit, RefusesASweepThatGetsSlower) {
  Record record = synthetic_record();
  for (Measurement& one : record.measurements)
    if (one.what.kind == "collective" && one.what.size("ranks") == 4 &&
        one.what.size("bytes") == 1 << 28)
      slow_down(one, 0.5);  // Before the largest, so that the bandwidth falls from here.
  // 2^28 bytes in half of 20 + 1.5 * 2^28 / 8000 us: 8 GB/s of bus bandwidth become 16.
  EXPECT_EQ(error_text([&] { fit_of(record); })
                .find("r.json: all_reduce of 4 ranks on 1 node: bus "
                      "bandwidth falls by 5"),
            0u)
      << error_text([&] { fit_of(record); });
}

TEST(FitCurves, RanksOfSeveralNodesFillThem) {
  const Record record = synthetic_record();
  const auto of = [&](int gpus_per_node, int gpus) {
    return curves_of(record.measurements, gpus_per_node, gpus, "r.json", "g", "2.28");
  };
  const auto nodes = [&](int gpus_per_node, int gpus) {
    const auto curves = of(gpus_per_node, gpus);
    EXPECT_EQ(curves.size(), 2u);
    return std::pair{curves.at(0).nodes, curves.at(1).nodes};
  };
  EXPECT_EQ(nodes(2, 1), (std::pair{1, 2}));
  EXPECT_EQ(nodes(4, 1), (std::pair{1, 1}));
  EXPECT_EQ(nodes(0, 4), (std::pair{1, 1}));
  EXPECT_EQ(error_text([&] { of(3, 4); }),
            "r.json: 4 ranks do not fill nodes of 3 GPUs; say how many GPUs a node has: "
            "--gpus-per-node N");
  EXPECT_EQ(error_text([&] { of(0, 1); }),
            "r.json: /machine/gpus: is 1, but there are collectives of 2 ranks; say how many GPUs "
            "a node has: --gpus-per-node N");
}

// Between 1 and 16 bytes log-log: sqrt(2 * 8) = 4 us at 4 bytes, which took 5.
TEST(FitCurves, AreHeldAgainstTheirNeighbours) {
  Curve curve;
  curve.points = {{1, 2.0}, {4, 5.0}, {16, 8.0}};
  const std::vector<double> errors = curve_errors(curve);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NEAR(errors[0], 4.0 / 5.0 - 1.0, 1e-12);
}

TEST(DriverName, IsTheCatalogs) {
  EXPECT_EQ(catalog_gpu("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(catalog_gpu("H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(catalog_gpu("NVIDIA GeForce RTX 4090"), "");
  for (const char* name : {"A100 80GB PCIe", "A100-SXM4-40GB", "A100-SXM4-80GB", "B200",
                           "B300 SXM6 AC", "GB200", "GB300", "H100 80GB HBM3", "H200", "H800",
                           "L40S", "RTX PRO 6000 Blackwell Server Edition", "Tesla V100-SXM2-32GB"})
    EXPECT_EQ(read_gpu(catalog_gpu(name), {"", ""}).name, catalog_gpu(name));
}

// A log of two nodes of eight H100, and nothing else.
TEST(Fit, LogsAlone) {
  const std::string path =
      std::string{ORRERY_TEST_SOURCE} + "/tests/unit/calibration/data/all_reduce_2_17.txt";
  const std::vector<Curve> curves = read_nccl_tests(read_text_file(path), path, {});
  const CalibrationFit fit = fit_calibration({}, curves, {});
  EXPECT_EQ(fit.gpu.name, "h100-sxm");
  EXPECT_FALSE(fit.kernels.has_value());
  ASSERT_EQ(fit.curves.size(), 1u);
  EXPECT_EQ(fit.curves[0].nodes, 2);
  EXPECT_EQ(error_text([&] {
              fit_calibration({{"r.json", synthetic_record()}}, curves, {});
            }),
            "all_reduce_2_17.txt: is of the GPU 'H100 80GB HBM3', but r.json of "
            "'synthetic-test-gpu'; fit each kind of GPU by itself");
  EXPECT_EQ(error_text([&] {
              fit_calibration({}, {curves[0], curves[0]}, {});
            }),
            "all_reduce_2_17.txt: all_reduce of 16 ranks on 2 nodes is in all_reduce_2_17.txt as "
            "well; keep one of them");
}

TEST(Fit, CollectivesThatNoPlanDoesAreNamed) {
  Curve curve;
  curve.file = "gather.txt";
  curve.gpu = "H200";
  curve.collective = "gather";
  curve.ranks = 8;
  curve.nodes = 1;
  curve.points = {{1024, 10.0}};
  EXPECT_EQ(error_text([&] { fit_calibration({}, {curve}, {}); }),
            "nothing can be fitted; gather.txt: gather, which no plan does; measure more: orrery "
            "calibrate gpu");
}

// What docs/guides/calibrate.md fits: each time is 2 % off or not at all.
TEST(Fit, TheExampleIsTheSyntheticRecord) {
  expect_golden("synthetic-record.json",
                calibration::record_json(synthetic_record(SyntheticTruth{.noise = 0.02})));
}

// A published table, as if a record had measured every fifth row: nothing is to be corrected.
TEST(Fit, APublishedTableAsARecordIsItself) {
  const KernelTables tables = *read_kernel_tables("h100-sxm");
  const GemmTable& table = tables.gemm.at(0);
  ASSERT_EQ(table.dtype, Dtype::bf16);
  Record record = synthetic_record();
  record.measurements.clear();
  record.machine.gpu = "NVIDIA H100 80GB HBM3";
  record.machine.multiprocessors = 132;
  for (std::size_t i = 0; i < table.rows.size(); i += 5) {
    const GemmRow& row = table.rows[i];
    record.measurements.push_back(synthetic(
        make_case("gemm", {"forward", "bf16"}, {row.m, row.n, row.k}), row.time.si() * 1e6));
  }
  const CalibrationFit fit = fit_calibration({{"r.json", record}}, {}, {});
  EXPECT_EQ(fit.gpu.name, "h100-sxm");
  const GemmTable& fitted = fit.kernels->tables.gemm.at(0);
  ASSERT_EQ(fitted.rows.size(), table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    // Rows are sorted by their sizes, as the published ones are.
    ASSERT_EQ(std::tuple(fitted.rows[i].m, fitted.rows[i].n, fitted.rows[i].k),
              std::tuple(table.rows[i].m, table.rows[i].n, table.rows[i].k));
    EXPECT_NEAR(fitted.rows[i].time / table.rows[i].time, 1.0, 1e-3);
  }
  EXPECT_EQ(fitted.left_out->rows, static_cast<std::int64_t>(table.rows.size() + 4) / 5);
  EXPECT_LT(fitted.left_out->p90, 1e-9);
  EXPECT_EQ(fit.kernels->sustained.value, tables.sustained);
  EXPECT_FALSE(fit.kernels->sustained.measured);
}

}  // namespace
}  // namespace orrery::fit_test
