// How well the tables are predicted from themselves: each row from all others of its table.
//
// The limits are what was measured when the tables were converted, rounded up by about a tenth; the
// goals are a median under 3 % and a 90th percentile under 10 % for products of m*n*k >= 2^33, and
// a median under 4 % for attention. `ctest --verbose -R KernelError` prints the table that
// docs/notes/kernel-errors.md shows.

#include "sim/kernels/kernel_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery::kernel_error_test {
namespace {

void print(const std::string& gpu, const std::string& what, const LeftOutError& e) {
  std::printf("| %-14s | %-14s | %5d | %5.2f | %6.2f | %5.2f |\n", gpu.c_str(), what.c_str(),
              static_cast<int>(e.rows), 100 * e.median, 100 * e.p90, 100 * e.bias);
}

// The files say four digits.
void expect_said(const std::optional<LeftOutError>& said, const LeftOutError& found) {
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->rows, found.rows);
  EXPECT_NEAR(said->median, found.median, 0.6e-4);
  EXPECT_NEAR(said->p90, found.p90, 0.6e-4);
  EXPECT_NEAR(said->bias, found.bias, 0.6e-4);
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
  const Gpu gpu = read_gpu(limit.gpu, Place{"test", ""});
  const GemmTime gemm{gpu, limit.dtype, &*tables};
  const auto table = std::find_if(tables->gemm.begin(), tables->gemm.end(),
                                  [&](const GemmTable& t) { return t.dtype == limit.dtype; });
  ASSERT_NE(table, tables->gemm.end());
  const std::vector<double> all = gemm_errors(gpu, *tables, limit.dtype);
  ASSERT_EQ(all.size(), table->rows.size());
  std::vector<double> large;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GemmRow& row = table->rows[i];
    const KernelTime exact = gemm(row.m, row.n, row.k);
    ASSERT_EQ(exact.tag, Tag::measured);
    ASSERT_NEAR(exact.time / row.time, 1.0, 1e-12);
    ASSERT_EQ(gemm.without_row(row.m, row.n, row.k).tag, Tag::interpolated);
    if (row.m * row.n * row.k >= std::int64_t{1} << 33) large.push_back(all[i]);
  }
  const LeftOutError every = *summarize_errors(all);
  const LeftOutError big = *summarize_errors(large);
  print(limit.gpu, "gemm " + name(limit.dtype), every);
  print(limit.gpu, "  >= 2^33", big);
  EXPECT_LT(100 * every.median, limit.median);
  EXPECT_LT(100 * every.p90, limit.p90);
  EXPECT_LT(100 * big.median, limit.large_median);
  EXPECT_LT(100 * big.p90, limit.large_p90);
  expect_said(gemm_error(&*tables, limit.dtype), every);
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
  const Gpu gpu = read_gpu(limit.gpu, Place{"test", ""});
  const AttentionTime attention{gpu, &*tables};
  for (const AttentionRow& row : tables->attention->rows) {
    if (row.head_dim != limit.head_dim) continue;
    const KernelTime exact = attention.table_time(row);
    ASSERT_EQ(exact.tag, Tag::measured);
    ASSERT_NEAR(exact.time / row.time, 1.0, 1e-12);
  }
  const LeftOutError found = *summarize_errors(attention_errors(gpu, *tables, limit.head_dim));
  print(limit.gpu, "attention " + std::to_string(limit.head_dim), found);
  EXPECT_LT(100 * found.median, limit.median);
  EXPECT_LT(100 * found.p90, limit.p90);
  expect_said(attention_error(&*tables, limit.head_dim), found);
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

// Places in ordered values: of ten, the sixth and the tenth.
TEST(KernelErrorSummary, IsOrderStatisticsOfSizesAndTheirMiddle) {
  const std::vector<double> errors{0.5, -0.1, 0.2, -0.3, -0.4, -0.6, 0.7, -0.8, -0.9, 1.0};
  const LeftOutError summary = *summarize_errors(errors);
  EXPECT_EQ(summary.rows, 10);
  EXPECT_EQ(summary.median, 0.6);
  EXPECT_EQ(summary.p90, 1.0);
  EXPECT_EQ(summary.bias, -0.1);  // -.9 -.8 -.6 -.4 -.3 (-.1) .2 .5 .7 1
  EXPECT_FALSE(summarize_errors({}).has_value());
}

TEST(KernelErrorOfTables, IsThatOfTheNearestHeadDimensionAndOfBf16ForFp16) {
  KernelTables tables;
  EXPECT_FALSE(gemm_error(nullptr, Dtype::bf16).has_value());
  EXPECT_FALSE(gemm_error(&tables, Dtype::bf16).has_value());
  EXPECT_FALSE(attention_error(nullptr, 128).has_value());
  EXPECT_FALSE(attention_error(&tables, 128).has_value());
  tables.gemm.push_back({Dtype::bf16, "", {}, {}, LeftOutError{7, 0.1, 0.2, 0.0}, {GemmRow{}}});
  EXPECT_EQ(gemm_error(&tables, Dtype::fp16)->rows, 7);
  EXPECT_FALSE(gemm_error(&tables, Dtype::fp8).has_value());
  tables.attention.emplace();
  for (const int head_dim : {64, 128})
    tables.attention->bases.push_back(
        {head_dim, {}, 0.5, 0, 0, 0, 0, 0, LeftOutError{head_dim, 0.1, 0.2, 0.0}});
  for (const auto& [asked, said] : std::vector<std::pair<int, int>>{
           {1, 64}, {64, 64}, {96, 64}, {97, 128}, {128, 128}, {512, 128}})
    EXPECT_EQ(attention_error(&tables, asked)->rows, said) << asked;
}

}  // namespace
}  // namespace orrery::kernel_error_test
