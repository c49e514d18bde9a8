#include "sim/profile/profile_text.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/core/json_value.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/synthetic_step.hpp"

namespace orrery::profile_text_test {
namespace {

struct Compared {
  Result result;
  std::vector<ProfiledRank> ranks;
};

Compared compared() {
  const PlanRequest request = plan_request(2, 1, 1, 4, 8192, "megatron-core");
  const Scenario scenario =
      make_scenario(read_model("llama3.2-1b", test_place), read_system("dgx-h100", test_place),
                    request, 8, test_place);
  std::istringstream stream{SyntheticStep::text()};
  const KinetoTrace trace = parse_kineto(stream, "rank0.json");
  Compared both{estimate(scenario).result, {}};
  both.ranks.push_back(
      profile_against_plan(trace, profile_step(trace, KernelNames{}), both.result, 0));
  return both;
}

constexpr double any = 1e18;

TEST(ProfileText, JsonAddsUp) {
  const Compared both = compared();
  const JsonValue json = JsonValue::parse(profile_json(both.result, both.ranks), "out.json");
  EXPECT_EQ(json.at("schema").text(), "orrery.profile/1");
  const JsonValue trace = json.at("traces").elements().at(0);
  double predicted = 0.0, measured = 0.0, work = 0.0;
  for (const JsonValue& row : trace.at("rows").elements()) {
    predicted += row.at("predicted_ns").number(-any, any);
    measured += row.at("measured_ns").number(0.0, any);
  }
  for (const std::string& kind : trace.at("trace").at("work").keys())
    work += trace.at("trace").at("work").at(kind).at("own_ns").number(0.0, any);
  work += trace.at("trace").at("host_ns").number(0.0, any) +
          trace.at("trace").at("idle_ns").number(0.0, any);
  EXPECT_EQ(predicted, trace.at("predicted_ns").number(0.0, any));
  EXPECT_EQ(measured, trace.at("measured_ns").number(0.0, any));
  EXPECT_EQ(work, measured);
  EXPECT_NEAR(1e-9 * predicted, json.at("step_time_s").number(0.0, any), 2e-9);
}

TEST(ProfileText, NamesOfOthersCannotCommandATerminal) {
  Compared both = compared();
  ProfiledRank& rank = both.ranks[0];
  rank.gpu = rank.file = "a\x1b[2J";
  rank.profile.unknown[0].name = "b\x1b[31m";
  rank.profile.exposed[0].group = "c\x07";
  rank.notes = {"a note of many words " + std::string(70, 'x') + " that is broken"};
  const std::string text = profile_text(both.result, both.ranks);
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_NE(text.find("b\\u001b[31m"), text.npos);
  EXPECT_NE(text.find("\nNote: a note of many words\n"), text.npos) << text;
}

}  // namespace
}  // namespace orrery::profile_text_test
