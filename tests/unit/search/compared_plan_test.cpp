#include <gtest/gtest.h>

#include <cmath>

#include "sim/search/comparison.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::compared_plan_test {
namespace {

// 3 s of products at 10 %, 1 s on the network at 20 %; 64 sequences of 1,000 tokens on 8 GPUs.
std::string result(const std::string& step = "4.0", const std::string& seq = "1000",
                   const std::string& gemm = "3.0") {
  return R"({"schema": "orrery.result/1", "model": "m", "system": "s", "gpu": "g",
 "software": "w", "gpus": 8,
 "plan": {"tp": 8, "sp": true, "schedule": "1f1b", "reshard": null, "gbs": 64, "seq": )" +
         seq + R"(, "dtype": "bf16"}, "step_time_s": )" + step +
         R"(, "step_time_range": {"coverage": 0.9, "low_s": 3, "high_s": 5,
  "training_error": 0, "own_error": 0,
  "parts": [{"kind": "gemm", "basis": "interpolated", "time_s": )" +
         gemm + R"(, "error": 0.1},
            {"kind": "network_bytes", "basis": "default", "time_s": 1.0, "error": 0.2}]},
 "tokens_per_s_per_gpu": 2000.0, "mfu": 0.5, "memory": {"peak_bytes": 60, "capacity_bytes": 80},
 "critical_path_s": {"data_parallel": 1.0, "matrix_products_forward": )" +
         gemm + "}}";
}

ComparedPlan read(const std::string& text) {
  return read_compared_plan(JsonValue::parse(text, "r.json"), "r.json");
}

TEST(ComparedPlan, IsReadFromAResult) {
  const ComparedPlan plan = read(result());
  EXPECT_EQ(plan.gpus, 8);
  EXPECT_EQ(plan.tokens, 64'000.0);
  const std::vector<std::pair<std::string, std::string>> keys{{"dtype", "bf16"},    {"gbs", "64"},
                                                              {"schedule", "1f1b"}, {"seq", "1000"},
                                                              {"sp", "true"},       {"tp", "8"}};
  EXPECT_EQ(plan.plan, keys);
  EXPECT_DOUBLE_EQ(plan.range.deviation().si(), std::sqrt(0.3 * 0.3 + 0.2 * 0.2));
  EXPECT_EQ(plan.critical_path.size(), 2u);
}

// 8 GPUs for 4 s at 1.8 $/h, for 64,000 tokens: 0.016 $, 0.25 $ a million tokens.
TEST(ComparedPlan, CostsItsRent) {
  const Range usd = read(result()).usd_per_trillion_tokens({1.8, 3.6});
  EXPECT_DOUBLE_EQ(usd.low, 0.25e6);
  EXPECT_DOUBLE_EQ(usd.high, 0.5e6);
}

// The second takes as long for twice the tokens: 2 s less for those of the first.
TEST(ComparedPlan, DifferencesAreForTheSameTokens) {
  const PlanDifference found = difference(read(result()), read(result("4.0", "2000")));
  EXPECT_DOUBLE_EQ(found.step.mean.si(), -2.0);
  EXPECT_DOUBLE_EQ(found.critical_path[0].second.si(), -1.5);
  EXPECT_DOUBLE_EQ(found.critical_path[1].second.si(), -0.5);
  EXPECT_DOUBLE_EQ(found.step.deviation.si(), 0.5 * std::sqrt(0.3 * 0.3 + 0.2 * 0.2));
}

TEST(ComparedPlan, EditedResultsAreRefused) {
  EXPECT_EQ(error_text([] { read(result("4.0", "1000", "2.9")); }),
            "r.json: /step_time_range/parts: do not add up to step_time_s; leave results as they "
            "were written");
  EXPECT_NE(error_text([] { read(R"({"schema": "orrery.search/1"})"); }), "");
}

TEST(ComparedPlan, PublishedStepsAreRead) {
  const auto with = [](const std::string& published) {
    std::string text = result();
    const std::string before = R"("own_error": 0,)";
    return text.insert(text.find(before) + before.size(), R"( "published": )" + published + ",");
  };
  const ComparedPlan plan =
      read(with(R"({"publications": 30, "steps": 746, "described": 0.2, "stands_in": 0.4,)"
                R"( "missing_s": 0, "same_plan": 0.11, "of_publication": 0.4, "prices": 0.5})"));
  EXPECT_DOUBLE_EQ(plan.range.low().si(), 4.0 * std::exp(-0.2));
  EXPECT_DOUBLE_EQ(plan.range.high().si(), 4.0 * std::exp(0.2));
  EXPECT_EQ(error_text(
                [&] { read(with(R"({"software": "a", "runs": 9, "offset": 0, "prices": 0.5})")); }),
            "r.json: /step_time_range/published: is of one software, as an older orrery wrote it; "
            "estimate the plan again: orrery estimate --plan FILE --json");
}

TEST(ComparedPlan, OnlyOneModel) {
  std::vector<ComparedPlan> plans{read(result()), read(result())};
  require_one_model(plans);
  plans[1].model = "n", plans[1].source = "b.json";
  EXPECT_EQ(error_text([&] { require_one_model(plans); }),
            "b.json: is a plan for n, r.json one for m; compare plans for one model");
}

}  // namespace
}  // namespace orrery::compared_plan_test
