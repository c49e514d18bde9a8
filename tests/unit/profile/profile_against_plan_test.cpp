#include <gtest/gtest.h>

#include <sstream>

#include "sim/profile/step_profile.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/synthetic_step.hpp"

namespace orrery::profile_against_plan_test {
namespace {

Result predicted(int tp, int pp) {
  const Model model = read_model("llama3.2-1b", test_place);
  PlanRequest request = plan_request(tp, pp, 1, 8, 8192, "megatron-core");
  return estimate(make_scenario(model, read_system("dgx-h100", test_place), request, 8, test_place))
      .result;
}

StepProfile measured(const KinetoTrace& trace) { return profile_step(trace, KernelNames{}); }

KinetoTrace parse(const std::string& text) {
  std::istringstream stream{text};
  return parse_kineto(stream, "trace.json");
}

const ProfiledRank::Row* row(const ProfiledRank& rank, const std::string& what) {
  for (const ProfiledRank::Row& one : rank.rows)
    if (one.what == what) return &one;
  return nullptr;
}

std::int64_t measured_ns(const ProfiledRank& rank) {
  std::int64_t ns = 0;
  for (const ProfiledRank::Row& one : rank.rows) ns += one.measured_ns;
  return ns;
}

TEST(ProfileAgainstPlan, BothColumnsAddUpToTheNanosecond) {
  const KinetoTrace trace = parse(SyntheticStep::text());
  for (const auto& [tp, pp] : {std::pair{2, 1}, {1, 4}, {2, 2}}) {
    const Result result = predicted(tp, pp);
    for (int stage = 0; stage < pp; ++stage) {
      const ProfiledRank rank = profile_against_plan(trace, measured(trace), result, stage);
      const Breakdown& parts = result.stages[static_cast<std::size_t>(stage)];
      EXPECT_EQ(rank.predicted_ns(), std::llround(1e9 * parts.sum().si()));
      EXPECT_NEAR(1e-9 * static_cast<double>(rank.predicted_ns()), result.step_time.si(), 2e-9);
      EXPECT_EQ(measured_ns(rank), rank.profile.length_ns());
      // Rounding is all that the last row takes up.
      EXPECT_LE(std::abs(row(rank, "idle")->predicted_ns), 8);
    }
  }
}

TEST(ProfileAgainstPlan, GroupsThatSayWhoseTheyAreHaveRowsOfTheirOwn) {
  const KinetoTrace trace = parse(SyntheticStep::text());
  const Result result = predicted(2, 1);
  const ProfiledRank rank = profile_against_plan(trace, measured(trace), result, 0);
  std::int64_t tensor = 0, data = 0;
  for (const StepProfile::Exposed& one : rank.profile.exposed)
    (one.group.starts_with("TENSOR") ? tensor : data) += one.ns;
  ASSERT_TRUE(row(rank, "tensor parallel"));
  EXPECT_EQ(row(rank, "tensor parallel")->measured_ns, tensor);
  EXPECT_EQ(row(rank, "data parallel")->measured_ns, data);
  EXPECT_EQ(row(rank, "tensor parallel")->predicted_ns,
            std::llround(1e9 * result.stages[0].tp_exposed.si()));
}

TEST(ProfileAgainstPlan, GroupsThatDoNotHaveOneRow) {
  TraceText text;
  text.kernel("nvjet", 0, 100);
  text.kernel("ncclDevKernel_AllReduce_Sum_bf16", 100, 60, 20);
  text.kernel("ncclDevKernel_SendRecv", 160, 30, 20);
  const KinetoTrace trace = parse(text.text());
  const ProfiledRank rank = profile_against_plan(trace, measured(trace), predicted(2, 1), 0);
  EXPECT_FALSE(row(rank, "tensor parallel"));
  EXPECT_EQ(row(rank, "tensor, context, data parallel")->measured_ns, 60);
  EXPECT_EQ(row(rank, "pipeline")->measured_ns, 30);
  EXPECT_EQ(measured_ns(rank), 190);
}

}  // namespace
}  // namespace orrery::profile_against_plan_test
