#include "sim/calibration/correct_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/host/work_list.hpp"
#include "sim/cluster/system.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery::correct_table_test {
namespace {

struct Published {
  Gpu gpu = read_gpu("h200-sxm", {"", ""});
  KernelTables tables = *read_kernel_tables("h200-sxm");
  GemmTime time{gpu, Dtype::bf16, &tables};
  MeasuredGpu reference{gpu, gpu.name, gpu.memory_bandwidth, gpu.multiprocessors};

  // What a default record holds: forward products of the work list.
  std::vector<GemmRow> record(double (*slower)(const GemmRow&)) const {
    std::vector<GemmRow> rows;
    for (const calibration::Case& one : calibration::default_work_list(1)) {
      if (one.kind != "gemm" || one.choice("dtype") != "bf16" || one.choice("pass") != "forward")
        continue;
      GemmRow row{one.size("m"), one.size("n"), one.size("k"), {}};
      row.time = slower(row) * time(row.m, row.n, row.k).time;
      rows.push_back(row);
    }
    return rows;
  }
  CorrectedTable corrected(const std::vector<GemmRow>& rows) const {
    return correct_gemm_table(gpu, tables, Dtype::bf16, rows, reference, "test");
  }
  // Of rows that the record does not hold: the corrected table against what `slower` says.
  std::vector<double> errors(const CorrectedTable& corrected,
                             double (*slower)(const GemmRow&)) const {
    KernelTables own;
    own.gpu = own.used_for = gpu.name;
    own.gemm.push_back(corrected.table);
    const GemmTime fitted{gpu, Dtype::bf16, &own};
    std::vector<double> errors;
    for (const GemmRow& row : find_gemm_table(&tables, Dtype::bf16)->rows)
      errors.push_back(std::abs(fitted(row.m, row.n, row.k).time / (slower(row) * row.time) - 1.0));
    return errors;
  }
};

// A machine a tenth slower than the published one: 80-odd rows say so of all 1,951.
TEST(CorrectTable, AUniformRatioIsCarriedToEveryShape) {
  const Published published;
  const auto slower = [](const GemmRow&) { return 1.1; };
  const CorrectedTable corrected = published.corrected(published.record(slower));
  EXPECT_NEAR(corrected.ratio, 1.1, 1e-9);
  EXPECT_GT(corrected.table.rows.size(), 1951u);
  for (const double error : published.errors(corrected, slower)) EXPECT_LT(error, 1e-3);
  for (const double error : corrected.before) EXPECT_NEAR(error, 1.0 / 1.1 - 1.0, 1e-9);
  for (const double error : corrected.after) EXPECT_NEAR(error, 0.0, 1e-9);
}

// Small products 20 % slower, large ones as published, smoothly between: an eighth of the work in
// flop is an octave and a half in m n.
TEST(CorrectTable, ARatioBySizeIsFollowed) {
  const Published published;
  const auto slower = [](const GemmRow& row) {
    const double octaves = std::log2(static_cast<double>(row.m) * static_cast<double>(row.n));
    return 1.1 - 0.1 * std::tanh((octaves - 24.0) / 3.0);
  };
  const CorrectedTable corrected = published.corrected(published.record(slower));
  const std::vector<double> errors = published.errors(corrected, slower);
  // Without a correction the median of |1 / ratio - 1| is above 5 %.
  EXPECT_LT(middle(errors, 0.5), 0.02);
  // Rows of fewer than 256 x 1024 results lie octaves below all of the record's.
  EXPECT_LT(middle(errors, 0.9), 0.08);
  EXPECT_LT(middle(corrected.after, 0.9), 0.03);
}

// The record's rows are exact, and not taken for a published row's; no row is tagged measured.
TEST(CorrectTable, KeepsTheRecordsRowsAndSaysThatOthersAreDerived) {
  const Published published;
  GemmRow odd{4096, 4096, 4096, {}};
  odd.time = 1.5 * published.time(odd.m, odd.n, odd.k).time;
  std::vector<GemmRow> rows = published.record([](const GemmRow&) { return 1.0; });
  for (GemmRow& row : rows)
    if (row.m == odd.m && row.n == odd.n && row.k == odd.k) row = odd;
  CorrectedTable corrected = published.corrected(rows);
  corrected.table.measured_on.name = corrected_name("h200-sxm");
  KernelTables own;
  own.gpu = own.used_for = "h200-sxm";
  own.gemm.push_back(corrected.table);
  const GemmTime fitted{published.gpu, Dtype::bf16, &own};
  EXPECT_NEAR(fitted(odd.m, odd.n, odd.k).time / odd.time, 1.0, 1e-9);
  EXPECT_EQ(fitted(odd.m, odd.n, odd.k).tag, Tag::interpolated);
  // One odd row of 80 moves the others by less than a fifth of itself, and far ones not at all.
  EXPECT_NEAR(fitted(256, 512, 512).time / published.time(256, 512, 512).time, 1.0, 0.02);
}

// fp8 as served holds quantising; as a record measures it, it does not.
TEST(CorrectTable, LeavesQuantisingOut) {
  const Published published;
  const GemmTime fp8{published.gpu, Dtype::fp8, &published.tables};
  ASSERT_TRUE(find_gemm_table(&published.tables, Dtype::fp8)->base.casts());
  std::vector<GemmRow> rows;
  for (const std::int64_t m : {1024, 4096})
    for (const std::int64_t n : {4096, 8192})
      rows.push_back({m, n, 4096, fp8.without_cast(m, n, 4096).time});
  const CorrectedTable corrected = correct_gemm_table(published.gpu, published.tables, Dtype::fp8,
                                                      rows, published.reference, "test");
  EXPECT_FALSE(corrected.table.base.casts());
  EXPECT_NEAR(corrected.ratio, 1.0, 1e-12);
  KernelTables own;
  own.gpu = own.used_for = published.gpu.name;
  own.gemm.push_back(corrected.table);
  const GemmTime fitted{published.gpu, Dtype::fp8, &own};
  const GemmRow& row = find_gemm_table(&published.tables, Dtype::fp8)->rows.at(700);
  EXPECT_NEAR(fitted(row.m, row.n, row.k).time / fp8.without_cast(row.m, row.n, row.k).time, 1.0,
              1e-3);
}

}  // namespace
}  // namespace orrery::correct_table_test
