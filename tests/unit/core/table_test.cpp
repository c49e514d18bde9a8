#include "sim/core/table.hpp"

#include <gtest/gtest.h>

namespace orrery::table_test {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table{{{"name", Align::left}, {"s"}, {"note", Align::left}}};
  table.add_row({"a", "1.5", "first"});
  table.add_row({"longer", "10.25", ""});
  table.add_row({"b", "3"});
  EXPECT_EQ(table.text(),
            "  name        s  note\n"
            "  a         1.5  first\n"
            "  longer  10.25\n"
            "  b           3\n");
}

TEST(Table, LeavesOutAHeaderThatSaysNothing) {
  Table table{{{"", Align::left}, {""}}, 0};
  table.add_row({"a", "1"});
  EXPECT_EQ(table.text(), "a  1\n");
  EXPECT_EQ(Table({{"a"}, {"b"}}, 1).text(), " a  b\n");
  EXPECT_EQ(Table({{""}}).text(), "");
}

TEST(Table, CountsCharactersAsTheyAreShown) {
  EXPECT_EQ(shown_width("abc"), 3);
  EXPECT_EQ(shown_width("\x1b[1;31mabc\x1b[0m"), 3);
  EXPECT_EQ(shown_width("d\xc3\xa9j\xc3\xa0"), 4);  // "déjà" in UTF-8.
  Table table{{{"", Align::left}, {""}}, 0};
  table.add_row({"\x1b[32mab\x1b[0m", "1"});
  table.add_row({"\xc3\xa9t\xc3\xa9", "2"});
  EXPECT_EQ(table.text(), "\x1b[32mab\x1b[0m   1\n\xc3\xa9t\xc3\xa9  2\n");
}

TEST(Table, LeavesDetailsOutOfATerminalAndContinuesItsLastColumn) {
  Table table{{{"s"}, {"detail", Align::right, true}, {"plan", Align::left}}, 0};
  const std::string word(38, 'x');
  table.add_row({"1", "2", word + " " + word + " end"});
  table.add_row({"3"});
  EXPECT_EQ(table.text(), "s  plan\n1  " + word + " " + word + "\n   end\n3\n");
  EXPECT_EQ(table.text(TextWidth::unlimited),
            "s  detail  plan\n1       2  " + word + " " + word + " end\n3\n");
  Table narrow{{{"s"}, {"plan", Align::left}}, 0};
  narrow.add_row({std::string(60, 'y'), word});
  EXPECT_EQ(narrow.text(),
            std::string(59, ' ') + "s  plan\n" + std::string(60, 'y') + "\n    " + word + "\n");
  EXPECT_NE(table.html().find("<th>detail</th>"), std::string::npos);
}

TEST(Table, BecomesMarkdown) {
  Table table{{{"case", Align::left}, {"error"}}};
  table.add_row({"a", "+1.0 %"});
  EXPECT_EQ(table.markdown(),
            "| case | error |\n"
            "|---|---:|\n"
            "| a | +1.0 % |\n");
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped_words("> ", "one two  three", 9), "> one two\n  three\n");
}

TEST(Wrapped, BreaksBetweenItemsAndIndentsUnderTheHead) {
  EXPECT_EQ(wrapped("> ", {"one", "two", "three"}, ", ", 80), "> one, two, three\n");
  // "> one, two," has 11 characters.
  EXPECT_EQ(wrapped("> ", {"one", "two", "three"}, ", ", 11), "> one, two,\n  three\n");
  EXPECT_EQ(wrapped("> ", {"one", "two", "three"}, ", ", 10), "> one,\n  two,\n  three\n");
  EXPECT_EQ(wrapped("", {"uncuttable"}, " ", 4), "uncuttable\n");
  EXPECT_EQ(wrapped("head", {}, " ", 10), "head\n");
}

}  // namespace
}  // namespace orrery::table_test
