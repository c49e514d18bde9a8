#include "sim/input/measured/published_steps.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::published_steps_test {
namespace {

std::string entry(const std::string& software, const std::string& experts) {
  return R"({"software": ")" + software + R"(", "experts": )" + experts +
         R"(, "narrow": false, "runs": 9, "offset": 0.1, "spread": 0.2, "prices": 0.05})";
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
  EXPECT_EQ(all[0].software, "a");
  EXPECT_EQ(all[0].step, (StepClass{true, false}));
  EXPECT_EQ(all[0].steps, (PublishedSteps{9, 0.1, 0.2, 0.05}));
}

TEST(PublishedSteps, OnceEach) {
  EXPECT_EQ(error_text([] { read(entry("a", "true") + ", " + entry("a", "true")); }),
            "p.json: /published_steps/1: is there twice; keep one of them");
}

// The shipped table: update_accuracy.sh writes it, and every range rests on it.
TEST(PublishedSteps, OfTheProjectsOwnTable) {
  const auto core = read_published_steps("megatron-core", {});
  ASSERT_TRUE(core);
  EXPECT_GE(core->runs, 9);
  EXPECT_FALSE(read_published_steps("no-such-software", {}));
}

}  // namespace
}  // namespace orrery::published_steps_test
