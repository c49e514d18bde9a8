#include <gtest/gtest.h>

#include "sim/formats/requests/session_files.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::load_curve_test {
namespace {

TEST(LoadCurveFiles, RatesByTime) {
  const LoadCurve curve = parse_load_curve(
      "# a day\ntime_s,requests_per_s\n0,2\n600, 4.5\n1200,0\n1800,1\n2400,0\n", "day.csv");
  EXPECT_EQ(curve.stages.size(), 4u);
  EXPECT_DOUBLE_EQ(curve.end.si(), 2400.0);
  EXPECT_DOUBLE_EQ(curve.rate_at(Seconds{0.0}), 2.0);
  EXPECT_DOUBLE_EQ(curve.rate_at(Seconds{600.0}), 4.5);
  EXPECT_DOUBLE_EQ(curve.rate_at(Seconds{1300.0}), 0.0);
  EXPECT_DOUBLE_EQ(curve.rate_at(Seconds{2400.0}), 0.0);
  EXPECT_DOUBLE_EQ(curve.most(Seconds{0.0}, Seconds{599.0}), 2.0);
  EXPECT_DOUBLE_EQ(curve.most(Seconds{0.0}, Seconds{600.0}), 4.5);
  EXPECT_DOUBLE_EQ(curve.requests(), 600.0 * 2.0 + 600.0 * 4.5 + 600.0);
}

TEST(LoadCurveFiles, RefusesHoles) {
  const auto says = [](const std::string& text, const std::string& what) {
    const std::string message = error_text([&] { parse_load_curve(text, "day.csv"); });
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  const std::string head = "time_s,requests_per_s\n";
  says("", "load");
  says("t,r\n0,1\n", "columns");
  says(head, "rate 0");
  says(head + "0,1\n", "rate 0");
  says(head + "0,1\n60,2\n", "rate 0");
  says(head + "5,1\n60,0\n", "begins at 5");
  says(head + "0,1\n60,2\n60,0\n", "line 4");
  says(head + "0,1\n60,2\n30,0\n", "line 4");
  says(head + "0,-1\n60,0\n", "rate from 0");
  says(head + "0,nan\n60,0\n", "rate from 0");
  says(head + "0\n60,0\n", "rate from 0");
  says(head + "x,1\n60,0\n", "time from 0");
  says(head + "0,0\n60,0\n", "no load");
}

}  // namespace
}  // namespace orrery::load_curve_test
