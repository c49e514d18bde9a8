#include "tests/support/golden.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/training/chrome_trace.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::golden_test {
namespace {

struct Texts {
  std::string summary;
  std::string json;
  std::string trace;
};

Texts all_texts(const Scenario& scenario) {
  const Estimate answer = estimate(scenario);
  return {summary_text(answer.result, {.verbose = true, .wall_time = false}),
          result_json(answer.result, {.about_this_run = false, .inputs = false}),
          chrome_trace(answer.step, answer.timeline, scenario, {.expand = true})};
}

void expect_golden_twice(const std::string& name, const Scenario& scenario) {
  const Texts first = all_texts(scenario);
  const Texts second = all_texts(scenario);
  EXPECT_EQ(first.summary, second.summary);
  EXPECT_EQ(first.json, second.json);
  EXPECT_EQ(first.trace, second.trace);
  expect_golden(name + "/summary.txt", first.summary);
  expect_golden(name + "/result.json", first.json);
  expect_golden(name + "/trace.json", first.trace);
}

// SimGrid gives every number of the result: times to a nanosecond, others to 1e-9.
void expect_same_by_simgrid(const Scenario& scenario) {
  const auto figures = [&] {
    const Result result = estimate(scenario).result;
    return nlohmann::json::parse(result_json(result, {.about_this_run = false, .inputs = false}))
        .flatten();
  };
  const nlohmann::json own = figures();
  const SimulatorChoice simgrid{Simulator::simgrid};
  const nlohmann::json other = figures();
  ASSERT_EQ(own.size(), other.size());
  EXPECT_EQ(other["/simulator"], "simgrid");
  for (const auto& [key, value] : own.items()) {
    if (key == "/simulator") continue;
    if (value.is_number())
      EXPECT_NEAR(value.get<double>(), other[key].get<double>(),
                  1e-9 * std::max(1.0, std::abs(value.get<double>())))
          << key;
    else
      EXPECT_EQ(value, other[key]) << key;
  }
}

TEST(Golden, IsTheSameBySimGrid) {
  expect_same_by_simgrid(two_stages());
  expect_same_by_simgrid(interleaved_replicas());
}

TEST(Golden, TwoStages) { expect_golden_twice("two_stages", two_stages()); }
TEST(Golden, InterleavedReplicas) {
  expect_golden_twice("interleaved_replicas", interleaved_replicas());
}

}  // namespace
}  // namespace orrery::golden_test
