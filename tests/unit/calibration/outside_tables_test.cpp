// How far products are off that no row of their table is near: the largest rows, predicted by
// formula and residuals of tables without any near them. calibration/data/price_errors.json has it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/calibration/fit_formulas.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery::outside_tables_test {
namespace {

const Place nowhere{"test", ""};
// Rows are left out from an eighth of the largest size on: `table_reach` is four.
constexpr std::int64_t far = 8;

// Nine in ten errors of a normal distribution are below 1.645 standard deviations.
double deviation(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() * 9 / 10] / 1.645;
}

void add_product_errors(const char* gpu, std::int64_t GemmRow::*size, std::vector<double>& errors) {
  KernelTables tables = *read_kernel_tables(gpu);
  GemmTable& table = *std::find_if(tables.gemm.begin(), tables.gemm.end(),
                                   [](const GemmTable& one) { return one.dtype == Dtype::bf16; });
  std::int64_t largest = 0;
  for (const GemmRow& row : table.rows) largest = std::max(largest, row.*size);
  std::vector<GemmRow> outside;
  std::erase_if(table.rows, [&](const GemmRow& row) {
    if (row.*size == largest) outside.push_back(row);
    return far * row.*size > largest;
  });
  table.base = fit_gemm(table.rows, table.measured_on, Dtype::bf16);
  const GemmTime time{read_gpu(gpu, nowhere), Dtype::bf16, &tables};
  for (const GemmRow& row : outside) {
    if (row.m * row.n * row.k < std::int64_t{1} << 33) continue;  // As large as a step's.
    const KernelTime said = time(row.m, row.n, row.k);
    EXPECT_EQ(said.tag, Tag::default_value);
    errors.push_back(std::log(row.time / said.time));
  }
}

TEST(OutsideTables, ProductsAreAsFarOffAsTheFileSays) {
  std::vector<double> errors;
  for (const char* gpu :
       {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm", "gb200", "gb300"})
    for (const auto size : {&GemmRow::m, &GemmRow::k}) add_product_errors(gpu, size, errors);
  EXPECT_EQ(errors.size(), 2348u);
  // The file rounds.
  const PriceErrors file = read_price_errors("none", Dtype::bf16, {});
  for (PriceKind kind : {PriceKind::gemm, PriceKind::grouped_gemm})
    EXPECT_NEAR(file.outside[static_cast<std::size_t>(kind)], deviation(errors), 0.0005);
}

}  // namespace
}  // namespace orrery::outside_tables_test
