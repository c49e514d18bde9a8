#include <gtest/gtest.h>

#include "sim/measurements/price_errors.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::published_steps_test {
namespace {

std::string entry(const std::string& software, const std::string& experts) {
  return R"({"software": ")" + software + R"(", "experts": )" + experts +
         R"(, "narrow": false, "runs": 9, "offset": 0.1, "low": -0.1, "high": 0.4, )" +
         R"("prices": 0.05})";
}

std::vector<PublishedClass> read(const std::string& entries) {
  return parse_published_steps(JsonValue::parse(
      R"({"schema": "orrery.published_steps/1", "source": "s", "published_steps": [)" + entries +
          "]}",
      "p.json"));
}

TEST(PublishedSteps, AreOfASoftwareAndAClass) {
  const auto all = read(entry("a", "true") + ", " + entry("a", "false"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].step, (StepClass{true, false}));
  EXPECT_EQ(all[0].steps, (PublishedSteps{"a", 9, 0.1, -0.1, 0.4, 0.05}));
}

TEST(PublishedSteps, OnceEach) {
  EXPECT_EQ(error_text([] { read(entry("a", "true") + ", " + entry("a", "true")); }),
            "p.json: /published_steps/1: is there twice; keep one of them");
}

TEST(PublishedSteps, LimitsHoldTheOffset) {
  std::string text = entry("a", "true");
  text.replace(text.find("-0.1"), 4, "0.15");
  EXPECT_EQ(error_text([&] { read(text); }),
            "p.json: /published_steps/0/low: 0.15 is out of range; write a number from -4 to 0.1");
}

// The shipped table: update_accuracy.sh writes it, and every range rests on it.
TEST(PublishedSteps, OfTheProjectsOwnTable) {
  const auto core = read_published_steps("megatron-core", {});
  ASSERT_TRUE(core);
  EXPECT_GE(core->runs, 9);
  EXPECT_EQ(core->software, "megatron-core");
  const auto any = read_published_steps("no-such-software", {});
  ASSERT_TRUE(any);
  EXPECT_EQ(any->software, "");
  EXPECT_GT(any->runs, core->runs);
  for (bool narrow : {false, true})
    EXPECT_EQ(read_published_steps("no-such-software", {true, narrow}),
              read_published_steps("no-such-software", {true, false}));
}

}  // namespace
}  // namespace orrery::published_steps_test
