// How far each kind of price is off, worked out anew from the shipped tables and published
// measurements, and held against calibration/data/price_errors.json. `ctest --verbose -R
// PriceErrors` prints what the file has to say.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery::kernel_price_errors_test {
namespace {

const Place nowhere{"test", ""};

// Nine in ten errors of a normal distribution are below 1.645 standard deviations.
double deviation(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() * 9 / 10] / 1.645;
}

double stated(PriceKind kind, Tag tag, const std::string& gpu = "none", Dtype dtype = Dtype::bf16) {
  return read_price_errors(gpu, dtype, {})
      .of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
}

// The file rounds.
void expect_stated(const char* what, double found, double said) {
  std::printf("%-44s %.4f\n", what, found);
  EXPECT_NEAR(found, said, 0.05 * said + 0.0005) << what;
}

const GemmTable& table_of(const KernelTables& tables, Dtype dtype) {
  return *std::find_if(tables.gemm.begin(), tables.gemm.end(),
                       [&](const GemmTable& table) { return table.dtype == dtype; });
}

// Of products as large as those of training steps.
constexpr std::int64_t least_product = std::int64_t{1} << 33;

using GemmPrice = std::function<KernelTime(const GemmRow&)>;
void add_errors(const GemmTable& table, const GemmPrice& price, std::vector<double>& errors) {
  for (const GemmRow& row : table.rows)
    if (row.m * row.n * row.k >= least_product)
      errors.push_back(std::log(row.time / price(row).time));
}

struct Table {
  const char* gpu;
  Dtype dtype;
};
const Table gemm_tables[] = {
    {"a100-sxm-80gb", Dtype::bf16}, {"h100-sxm", Dtype::bf16}, {"h100-sxm", Dtype::fp8},
    {"h200-sxm", Dtype::bf16},      {"h200-sxm", Dtype::fp8},  {"b200-sxm", Dtype::bf16},
    {"b200-sxm", Dtype::fp8},       {"b300-sxm", Dtype::bf16}, {"b300-sxm", Dtype::fp8},
    {"gb200", Dtype::bf16},         {"gb200", Dtype::fp8},     {"gb300", Dtype::bf16},
    {"gb300", Dtype::fp8}};

TEST(PriceErrors, GemmWithATableIsItsLeaveOneOutError) {
  const PriceErrors file = read_price_errors("h100-sxm", Dtype::bf16, {});
  const auto gemm = [](const PriceErrors& errors, Tag tag) {
    return errors.of[static_cast<std::size_t>(PriceKind::gemm)][static_cast<std::size_t>(tag)];
  };
  auto tables = read_kernel_tables("h100-sxm");
  const PriceErrors own = with_tables(file, &*tables, Dtype::bf16);
  const double p90 = table_of(*tables, Dtype::bf16).left_out->p90;
  EXPECT_DOUBLE_EQ(gemm(own, Tag::measured), p90 / 1.645);
  EXPECT_DOUBLE_EQ(gemm(own, Tag::interpolated), p90 / 1.645);
  EXPECT_DOUBLE_EQ(gemm(own, Tag::default_value), std::hypot(p90 / 1.645, 0.069));
  EXPECT_EQ(own.of[static_cast<std::size_t>(PriceKind::attention)],
            file.of[static_cast<std::size_t>(PriceKind::attention)]);
  tables->attention->measures = AttentionTable::Measures::kernel;
  EXPECT_LT(with_tables(file, &*tables, Dtype::bf16)
                .of[static_cast<std::size_t>(PriceKind::attention)][1],
            0.06);
  tables->used_for = "another";  // For which they only stand in.
  const PriceErrors lent = with_tables(file, &*tables, Dtype::bf16);
  EXPECT_EQ(gemm(lent, Tag::interpolated), gemm(file, Tag::interpolated));
  EXPECT_DOUBLE_EQ(gemm(lent, Tag::default_value),
                   std::hypot(gemm(file, Tag::interpolated), 0.069));
  EXPECT_EQ(with_tables(file, &*tables, Dtype::nvfp4).of, file.of);  // No table of that.
  for (GemmTable& table : tables->gemm) table.rows.resize(10);       // Of so few nothing is known.
  EXPECT_EQ(gemm(with_tables(file, &*tables, Dtype::bf16), Tag::default_value),
            gemm(file, Tag::default_value));
  EXPECT_EQ(with_tables(file, nullptr, Dtype::bf16).of, file.of);
}

// Each table predicted from a sister's.
TEST(PriceErrors, GemmOfAProxyIsASimilarGpusError) {
  const std::pair<const char*, const char*> sisters[] = {
      {"h100-sxm", "h200-sxm"}, {"h200-sxm", "h100-sxm"}, {"b200-sxm", "b300-sxm"},
      {"b300-sxm", "b200-sxm"}, {"gb200", "gb300"},       {"gb300", "gb200"},
      {"b200-sxm", "gb200"},    {"gb200", "b200-sxm"}};
  std::vector<double> errors;
  for (const auto& [gpu, other] : sisters)
    for (Dtype dtype : {Dtype::bf16, Dtype::fp8}) {
      auto tables = read_kernel_tables(other);
      tables->used_for = gpu;
      const GemmTime gemm{read_gpu(gpu, nowhere), dtype, &*tables};
      add_errors(
          table_of(*read_kernel_tables(gpu), dtype),
          [&](const GemmRow& row) { return gemm(row.m, row.n, row.k); }, errors);
    }
  expect_stated("gemm, a sister's table", deviation(errors),
                stated(PriceKind::gemm, Tag::interpolated));
}

TEST(PriceErrors, GemmWithoutTablesIsTheRooflinesError) {
  std::vector<double> errors;
  for (const Table& one : gemm_tables) {
    const GemmTime gemm{read_gpu(one.gpu, nowhere), one.dtype, nullptr};
    add_errors(
        table_of(*read_kernel_tables(one.gpu), one.dtype),
        [&](const GemmRow& row) { return gemm(row.m, row.n, row.k); }, errors);
  }
  expect_stated("gemm, roofline", deviation(errors), stated(PriceKind::gemm, Tag::default_value));
}

// Rows that a training step may have: the table's base and residual, and no table at all.
TEST(PriceErrors, AttentionWithoutTablesIsTheRooflinesError) {
  std::vector<double> errors;
  for (const char* gpu : {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200"}) {
    const auto tables = read_kernel_tables(gpu);
    const AttentionTime known{read_gpu(gpu, nowhere), &*tables};
    const AttentionTime assumed{read_gpu(gpu, nowhere), nullptr};
    for (const AttentionRow& row : tables->attention->rows) {
      const AttentionShape shape{row.batch,    row.sequence, row.sequence, row.heads,
                                 row.kv_heads, row.head_dim, true};
      errors.push_back(std::log(known.forward(shape).time / assumed.forward(shape).time));
    }
  }
  expect_stated("attention, roofline", deviation(errors),
                stated(PriceKind::attention, Tag::default_value));
}

TEST(PriceErrors, GroupedGemmIsTheErrorAgainstSimuMax) {
  const JsonValue file =
      JsonValue::read_file(std::string{ORRERY_TEST_SOURCE} + "/tests/validation/grouped_gemm.json");
  for (const JsonValue& table : file.elements()) {
    const std::string gpu = table.at("gpu").text();
    const auto tables = read_kernel_tables(gpu);
    const KernelModel model{read_gpu(gpu, nowhere), Dtype::bf16, &*tables};
    std::vector<double> errors;
    for (const JsonValue& row : table.at("rows").elements()) {
      const auto cells = row.elements();
      const std::string pass = cells[0].text();
      const GroupedGemm layer{
          pass == "forward" ? GemmPass::forward
          : pass == "dgrad" ? GemmPass::dgrad
                            : GemmPass::wgrad,
          cells[4].integer(1, 1 << 20), cells[5].integer(1, 1 << 20),
          pass == "wgrad" ? 2.0 * (cells[1].text() == "fp32" ? 4.0 : 2.0) : 0.0};
      const std::vector<std::int64_t> tokens(static_cast<std::size_t>(cells[2].integer(1, 1 << 20)),
                                             cells[3].integer(1, 1 << 20));
      errors.push_back(std::log(microseconds(cells[6].number(0.0, 1e9)) /
                                model.grouped_gemm(layer, tokens).time));
    }
    expect_stated(("grouped_gemm " + gpu).c_str(), deviation(errors),
                  stated(PriceKind::grouped_gemm, Tag::interpolated, gpu));
  }
}

}  // namespace
}  // namespace orrery::kernel_price_errors_test
