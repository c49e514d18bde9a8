#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/validation/collective_case.hpp"
#include "sim/validation/validate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::exchange_case_test {
namespace {

std::string entry(const std::string& keys, const std::string& rows) {
  return R"({"id": "one", "source": "a log", "system": "dgx-h100", "dispatcher": "deepep",
             "ranks": 16, "nodes": 2, "hidden": 7168, )" +
         keys + R"(, "columns": ["multiprocessors", "tokens", "dispatch_us", "combine_us"],
             "rows": )" +
         rows + "}";
}

ExchangeCase read(const std::string& keys, const std::string& rows = "[[20, 4096, 900, 2000]]") {
  return read_exchange_case(JsonValue::parse(entry(keys, rows), "log.json"));
}

TEST(ExchangeCase, IsRead) {
  const ExchangeCase one = read(R"("top_k": 8, "experts": 256)");
  EXPECT_EQ(one.group, (GroupShape{16, 2, 8}));
  EXPECT_EQ(one.dispatcher, ExpertDispatcher::deepep);
  EXPECT_EQ(one.table(), (ExchangeTable{2, 7168, 8, 256}));
  ASSERT_EQ(one.rows.size(), 1u);
  EXPECT_EQ(one.rows[0].multiprocessors, 20);
  EXPECT_DOUBLE_EQ(one.rows[0].combine.si(), 2e-3);
  EXPECT_EQ(one.dispatched, Dtype::fp8);
  EXPECT_EQ(read(R"("top_k": 8, "experts": 256, "dispatched": "bf16")").dispatched, Dtype::bf16);
}

TEST(ExchangeCase, WhatCannotBeMeantIsRefused) {
  const auto refusal = [](const std::string& keys, const std::string& rows = "[[20, 1, 1, 1]]") {
    return error_text([&] { read(keys, rows); });
  };
  EXPECT_EQ(refusal(R"("top_k": 8, "experts": 250)"),
            "log.json: /experts: is not divisible by the ranks; give every rank as many");
  EXPECT_EQ(refusal(R"("top_k": 65, "experts": 64)"),
            "log.json: the groups do not hold the experts of a token; write those of the router");
  EXPECT_EQ(refusal(R"("top_k": 8, "experts": 64, "groups": 8, "groups_per_token": 9)"),
            "log.json: the groups do not hold the experts of a token; write those of the router");
  EXPECT_EQ(refusal(R"("top_k": 8, "experts": 64)", "[[20, 4096, 900, 2000], [20, 1, 0, 5]]"),
            "log.json: /rows/1: holds what is not a count or time; write positive numbers");
  for (const std::string count : {"-1", "20.5", "133", "1e300"})
    EXPECT_EQ(refusal(R"("top_k": 8, "experts": 64)", "[[" + count + ", 4096, 900, 2000]]"),
              "log.json: /rows/0: is of multiprocessors that the GPU does not have; write a whole "
              "number from 0 (the kernel's own choice) to 132");
}

// Two rows: measured and predicted are means over them, one row of the report a step.
TEST(ExchangeCase, ATableIsTwoRowsOfAReport) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "log.json").string();
  std::ofstream{path} << "["
                      << entry(R"("top_k": 8, "experts": 256)",
                               "[[20, 4096, 900, 2000], [20, 8192, 1700, 4000]]")
                      << "]";
  const ValidationReport report = validate_file(path);
  EXPECT_EQ(report.kind, "expert exchange");
  ASSERT_EQ(report.comparisons.size(), 2u);
  EXPECT_EQ(report.comparisons[0].id, "one dispatch");
  EXPECT_DOUBLE_EQ(report.comparisons[0].measured, 1300e-6);
  EXPECT_DOUBLE_EQ(report.comparisons[1].measured, 3000e-6);
  EXPECT_EQ(report.comparisons[1].over_points->count, 2);
  EXPECT_LT(report.mean_abs_error, 0.15);
}

}  // namespace
}  // namespace orrery::exchange_case_test
