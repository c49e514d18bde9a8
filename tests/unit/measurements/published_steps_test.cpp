#include "sim/measurements/published_steps.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_text.hpp"

namespace orrery::published_steps_test {
namespace {

const std::string found =
    R"({"schema": "orrery.published_steps/2", "source": "s", "publications": 30, "steps": 746,)"
    R"( "described": 0.2, "prices": 0.1})";
const std::string constants =
    R"({"ranges": {"stands_in": {"value": 0.4, "source": "s"},)"
    R"( "missing_s": {"value": 0.1, "source": "s"}, "same_plan": {"value": 0.11, "source": "s"},)"
    R"( "of_publication": {"value": 0.4, "source": "s"}}})";

PublishedSteps read(const std::string& steps, const std::string& errors) {
  return parse_published_steps(JsonValue::parse(steps, "p.json"),
                               JsonValue::parse(errors, "e.json"));
}

std::string with(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

TEST(PublishedSteps, AreReadFromBothFiles) {
  EXPECT_EQ(read(found, constants),
            (PublishedSteps{30, 746, 0.2, 0.4, Seconds{0.1}, 0.11, 0.4, 0.1}));
}

TEST(PublishedSteps, ErrorsNameTheFile) {
  EXPECT_EQ(error_text([] { read(with(found, "0.2", "0"), constants); }),
            "p.json: /described: 0 is out of range; write a number from 1e-06 to 3");
  EXPECT_EQ(error_text([] { read(found, with(constants, "0.11", "0.21")); }),
            "e.json: /ranges/same_plan/value: 0.21 is out of range; write a number from 1e-06 to "
            "0.2");
}

// 0.2, and 0.1 s of a step of 0.5 s, are sqrt(0.08); prices known as well as published steps' add
// nothing, and those known half as well 1.645 sqrt(0.2^2 - 0.1^2).
TEST(PublishedSteps, WidthsAddUpInSquares) {
  const PublishedSteps steps = read(found, constants);
  EXPECT_NEAR(steps.half_width(Seconds{1e9}, false, 0.1), 0.2, 1e-12);
  EXPECT_NEAR(steps.half_width(Seconds{1e9}, true, 0.1), 0.4, 1e-12);
  EXPECT_NEAR(steps.half_width(Seconds{0.4}, false, 0.0), std::sqrt(0.08), 1e-12);
  EXPECT_NEAR(steps.less_known(0.2), 1.645 * std::sqrt(0.03), 1e-12);
  EXPECT_NEAR(steps.half_width(Seconds{1e9}, false, 0.2), std::sqrt(0.04 + 1.645 * 1.645 * 0.03),
              1e-12);
}

// The shipped table: update_accuracy.sh writes it, and every range rests on it.
TEST(PublishedSteps, OfTheProjectsOwnTable) {
  const PublishedSteps steps = read_published_steps();
  EXPECT_GE(steps.publications, 25);
  EXPECT_LT(steps.same_plan, steps.described);
  EXPECT_LT(steps.described, steps.stands_in);
}

}  // namespace
}  // namespace orrery::published_steps_test
