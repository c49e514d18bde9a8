// How well the tables are predicted from themselves: each row from all others of its table.
//
// The limits are what was measured when the tables were converted, rounded up by about a tenth; the
// goals are a median under 3 % and a 90th percentile under 10 % for products of m*n*k >= 2^33, and
// a median under 4 % for attention. `ctest --verbose -R KernelError` prints the table that
// docs/CALIBRATION.md shows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/cost/attention_time.hpp"
#include "sim/cost/gemm_time.hpp"

namespace orrery {
namespace {

struct Spread {
  std::size_t rows = 0;
  double median = 0.0, p90 = 0.0;  // Percent.
};

Spread spread(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  const std::size_t n = errors.size();
  return {n, 100 * errors[n / 2], 100 * errors[n * 9 / 10]};
}

double error(const KernelTime& predicted, Seconds measured) {
  return std::abs(predicted.time / measured - 1.0);
}

void print(const std::string& gpu, const std::string& what, const Spread& s) {
  std::printf("| %-14s | %-14s | %5zu | %5.2f | %6.2f |\n", gpu.c_str(), what.c_str(), s.rows,
              s.median, s.p90);
}

struct GemmLimit {
  std::string gpu;
  Dtype dtype;
  double median, p90;              // All rows, percent.
  double large_median, large_p90;  // Rows with m*n*k >= 2^33.
};

class GemmError : public testing::TestWithParam<GemmLimit> {};

TEST_P(GemmError, EachRowFromTheOthers) {
  const GemmLimit& limit = GetParam();
  const auto tables = read_kernel_tables(limit.gpu);
  ASSERT_TRUE(tables.has_value());
  const GemmTime gemm{read_gpu(limit.gpu, Place{"test", ""}), limit.dtype, &*tables};
  const auto table = std::find_if(tables->gemm.begin(), tables->gemm.end(),
                                  [&](const GemmTable& t) { return t.dtype == limit.dtype; });
  ASSERT_NE(table, tables->gemm.end());
  std::vector<double> all, large;
  for (const GemmRow& row : table->rows) {
    const KernelTime exact = gemm(row.m, row.n, row.k);
    ASSERT_EQ(exact.tag, Tag::measured);
    ASSERT_NEAR(exact.time / row.time, 1.0, 1e-12);
    const KernelTime predicted = gemm.without_row(row.m, row.n, row.k);
    ASSERT_EQ(predicted.tag, Tag::interpolated);
    all.push_back(error(predicted, row.time));
    if (row.m * row.n * row.k >= std::int64_t{1} << 33) large.push_back(all.back());
  }
  const Spread every = spread(all);
  const Spread big = spread(large);
  print(limit.gpu, "gemm " + name(limit.dtype), every);
  print(limit.gpu, "  >= 2^33", big);
  EXPECT_LT(every.median, limit.median);
  EXPECT_LT(every.p90, limit.p90);
  EXPECT_LT(big.median, limit.large_median);
  EXPECT_LT(big.p90, limit.large_p90);
}

INSTANTIATE_TEST_SUITE_P(KernelError, GemmError,
                         testing::Values(GemmLimit{"a100-sxm-80gb", Dtype::bf16, 2.0, 8.2, 1.7,
                                                   6.8},
                                         GemmLimit{"h100-sxm", Dtype::bf16, 2.2, 7.1, 2.0, 6.2},
                                         GemmLimit{"h100-sxm", Dtype::fp8, 1.5, 4.9, 1.4, 4.5},
                                         GemmLimit{"h200-sxm", Dtype::bf16, 2.2, 6.9, 2.1, 6.6},
                                         GemmLimit{"h200-sxm", Dtype::fp8, 1.5, 4.7, 1.4, 4.5},
                                         GemmLimit{"b200-sxm", Dtype::bf16, 2.8, 8.9, 2.9, 9.2},
                                         GemmLimit{"b200-sxm", Dtype::fp8, 2.4, 7.3, 2.3, 7.6},
                                         GemmLimit{"b300-sxm", Dtype::bf16, 3.0, 10.0, 3.0, 10.0},
                                         GemmLimit{"b300-sxm", Dtype::fp8, 2.4, 7.3, 2.4, 7.6},
                                         GemmLimit{"gb200", Dtype::bf16, 3.0, 8.9, 3.0, 9.3},
                                         GemmLimit{"gb200", Dtype::fp8, 2.2, 6.2, 2.1, 6.1},
                                         GemmLimit{"gb300", Dtype::bf16, 2.1, 6.7, 2.1, 6.1},
                                         GemmLimit{"gb300", Dtype::fp8, 1.8, 5.1, 1.7, 4.9}));

struct AttentionLimit {
  std::string gpu;
  std::int64_t head_dim;
  double median, p90;
};

class AttentionError : public testing::TestWithParam<AttentionLimit> {};

TEST_P(AttentionError, EachRowFromTheOthers) {
  const AttentionLimit& limit = GetParam();
  const auto tables = read_kernel_tables(limit.gpu);
  ASSERT_TRUE(tables && tables->attention);
  const AttentionTime attention{read_gpu(limit.gpu, Place{"test", ""}), &*tables};
  std::vector<double> errors;
  for (const AttentionRow& row : tables->attention->rows) {
    if (row.head_dim != limit.head_dim) continue;
    const KernelTime exact = attention.table_time(row);
    ASSERT_EQ(exact.tag, Tag::measured);
    ASSERT_NEAR(exact.time / row.time, 1.0, 1e-12);
    errors.push_back(error(attention.table_time_without_row(row), row.time));
  }
  const Spread found = spread(errors);
  print(limit.gpu, "attention " + std::to_string(limit.head_dim), found);
  EXPECT_LT(found.median, limit.median);
  EXPECT_LT(found.p90, limit.p90);
}

INSTANTIATE_TEST_SUITE_P(KernelError, AttentionError,
                         testing::Values(AttentionLimit{"a100-sxm-80gb", 128, 1.1, 4.2},
                                         AttentionLimit{"h100-sxm", 64, 1.8, 6.5},
                                         AttentionLimit{"h100-sxm", 128, 1.9, 6.1},
                                         AttentionLimit{"h200-sxm", 64, 2.8, 10.0},
                                         AttentionLimit{"h200-sxm", 128, 3.5, 10.7},
                                         AttentionLimit{"b200-sxm", 64, 1.7, 6.3},
                                         AttentionLimit{"b200-sxm", 128, 2.2, 5.9},
                                         AttentionLimit{"b200-sxm", 256, 2.5, 7.2},
                                         AttentionLimit{"gb200", 64, 1.6, 7.2},
                                         AttentionLimit{"gb200", 128, 2.2, 6.5},
                                         AttentionLimit{"gb200", 256, 2.7, 7.6}));

}  // namespace
}  // namespace orrery
