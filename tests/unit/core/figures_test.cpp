#include "sim/core/figures.hpp"

#include <gtest/gtest.h>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"

namespace orrery::figures_test {
namespace {

std::vector<Figures> two_machines() {
  std::vector<Figures> rows(2);
  rows[0].show({""}, "*");
  rows[0].add("system", "a, \"b\"").shown({"system", Align::left}, "a");
  rows[0].add("refused", nullptr).csv_only();
  rows[0].add("figures/rate", 2.0 / 3.0).shown({"a user"}, "0.7");
  rows[0].add("figures/gpus", 16);
  rows[0].add("days", {{"middle", 5.0}, {"low", 4.5}, {"high", 6.0}});
  rows[0].add("usd", {{"low", nullptr}, {"high", nullptr}});
  rows[0].add("parts", {1, 2}).json_only();
  rows[1].show({""}, "");
  rows[1].add("system", "c").shown({"system", Align::left}, "c");
  rows[1].add("refused", "too small");
  return rows;
}

TEST(Figures, BecomeJson) {
  EXPECT_EQ(two_machines()[0].json().dump(),
            "{\"system\":\"a, \\\"b\\\"\",\"figures\":{\"rate\":0.6666666666666666,\"gpus\":16},"
            "\"days\":{\"middle\":5.0,\"low\":4.5,\"high\":6.0},\"usd\":null,\"parts\":[1,2]}");
  EXPECT_EQ(two_machines()[1].json().dump(), "{\"system\":\"c\",\"refused\":\"too small\"}");
  EXPECT_EQ(Figures{}.json().dump(), "{}");
}

// A line for each under all keys, also of those that have fewer.
TEST(Figures, BecomeCsv) {
  EXPECT_EQ(csv_of(two_machines(), nine_digits),
            "system,refused,rate,gpus,days,days_low,days_high,usd_low,usd_high\n"
            "\"a, \"\"b\"\"\",,0.666666667,16,5,4.5,6,,\n"
            "c,too small,,,,,,,\n");
  EXPECT_EQ(csv_of({two_machines()[0]}, all_digits),
            "system,refused,rate,gpus,days,days_low,days_high,usd_low,usd_high\n"
            "\"a, \"\"b\"\"\",,0.6666666666666666,16,5.0,4.5,6.0,,\n");
  EXPECT_EQ(csv_of({}, all_digits), "\n");
}

TEST(Figures, BecomeATable) {
  EXPECT_EQ(table_of(two_machines(), 0).text(),
            "   system  a user\n"
            "*  a          0.7\n"
            "   c\n");
}

TEST(Figures, CellsOfCsvAreQuotedWhereNeeded) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_cell("a\"b"), "\"a\"\"b\"");
}

TEST(Figures, NineDigits) {
  EXPECT_EQ(nine_digits(1.0 / 3.0), "0.333333333");
  EXPECT_EQ(nine_digits(1234567890123.0), "1.23456789e+12");
  EXPECT_EQ(nine_digits(5.0), "5");
  EXPECT_EQ(to_nine_digits(1.0 / 3.0), 0.333333333);
}

}  // namespace
}  // namespace orrery::figures_test
