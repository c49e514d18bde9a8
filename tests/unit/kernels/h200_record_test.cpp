// Kernel prices against what one H200 took (docs/notes/h200-measured.md). Nothing is fitted to
// these rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "tests/support/row_errors.hpp"

namespace orrery::h200_record_test {
namespace {

const std::string folder = std::string{ORRERY_TEST_SOURCE} + "/calibration/data/records/h200-sxm/";

// The fastest of a product's timings is that of the first clock: the others are of many runs, which
// the power limit slowed by up to a fifth. As the tables' own long rows are too, prices of a step
// leave out what such rows are slower than the formula.
TEST(H200Record, LongProductsAtTheirFirstClock) {
  const KernelTables tables = *read_kernel_tables("h200-sxm");
  const GemmTime time{read_gpu("h200-sxm", {}), Dtype::bf16, &tables};
  RowErrors plain, first;
  for (const JsonValue& one :
       JsonValue::read_file(folder + "record.json").at("measurements").elements()) {
    if (one.at("kind").text() != "gemm" || one.at("dtype").text() != "bf16" ||
        one.at("pass").text() == "wgrad")
      continue;
    const auto size = [&](const char* name) { return one.at(name).integer(1, 1 << 20); };
    const std::int64_t m = size("m"), n = size("n"), k = size("k");
    if (2e-6 * static_cast<double>(m * n * k) / 989.0 < 300.0) continue;
    const auto us = [](const JsonValue& value) { return value.number(0.0, 1e9); };
    const double took_us =
        std::min({us(one.at("figures").at("best_choice_us")), us(one.at("cold").at("p10_us")),
                  us(one.at("warm").at("p10_us"))});
    const double price_us = time(m, n, k).time.si() * 1e6;
    plain.add(price_us / took_us - 1.0);
    first.add(price_us / time.throttle(m, n, k) / took_us - 1.0);
  }
  std::printf(
      "%d products: %+.1f %% as the table says, %+.1f %% at its first clock, at most %.1f %%\n",
      first.rows, 100 * plain.sum / plain.rows, 100 * first.sum / first.rows, 100 * first.largest);
  EXPECT_GE(first.rows, 30);
  EXPECT_LT(first.abs / first.rows, 0.03);
  EXPECT_LT(first.largest, 0.08);
  EXPECT_GT(plain.abs / plain.rows, 2.0 * first.abs / first.rows);
}

// What PyTorch took, by a cool GPU's clock: torch._grouped_mm, one kernel for all experts, whose
// tiles share their waves, and a product an expert, which follow each other. Limits are those of
// errors on average that were measured, rounded up by about a tenth. Not held to: weight gradients
// of few tokens, which are bound by how fast a kernel's end writes (0.8 of what it takes), experts
// of few tokens one by one, whose launches count (0.87), and passes beyond 4 ms, in which the power
// limit acts.
TEST(H200Record, GroupedProducts) {
  KernelTables tables = *read_kernel_tables("h200-sxm");
  tables.sustained = 1.0;
  const KernelModel model{read_gpu("h200-sxm", {}), Dtype::bf16, &tables};
  std::ifstream rows{folder + "grouped.csv"};
  std::map<std::string, RowErrors> errors;
  std::string line;
  for (std::getline(rows, line); std::getline(rows, line);) {
    std::vector<std::string> cell;
    std::istringstream words{line};
    for (std::string word; std::getline(words, word, ',');) cell.push_back(word);
    const std::string backend = cell[4], pass = cell[5];
    const auto size = [&](std::size_t i) { return std::stoll(cell[i]); };
    const std::int64_t experts = size(8), each = size(7) / experts;
    const Seconds took = microseconds(std::stod(cell[12]));
    if (took > microseconds(4000.0)) continue;
    GroupedGemm layer{pass == "forward" ? GemmPass::forward
                      : pass == "dgrad" ? GemmPass::dgrad
                                        : GemmPass::wgrad,
                      size(9), size(10)};
    layer.together = backend == "grouped";
    if (each <= 256 && (pass == "wgrad" || !layer.together)) continue;
    const std::vector<std::int64_t> tokens(static_cast<std::size_t>(experts), each);
    errors[backend + " " + pass].add(model.grouped_kernel(layer, tokens).time / took - 1.0);
  }
  const std::map<std::string, double> most{{"grouped forward", 0.055}, {"grouped dgrad", 0.06},
                                           {"grouped wgrad", 0.06},    {"loop forward", 0.04},
                                           {"loop dgrad", 0.04},       {"loop wgrad", 0.07}};
  expect_below(most, errors);
}

}  // namespace
}  // namespace orrery::h200_record_test
