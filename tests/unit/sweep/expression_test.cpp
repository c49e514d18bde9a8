#include "sim/sweep/expression.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/error_text.hpp"

namespace orrery::expression_test {
namespace {

const Place at{"", "--where"};
const std::string words[] = {"1f1b", "interleaved"};

// tp 8, pp 4, mbs 1, sp true, schedule "1f1b"
Operand value_of(const std::string& key) {
  const std::map<std::string, double> numbers{{"tp", 8}, {"pp", 4}, {"mbs", 1}};
  if (key == "schedule") return {Operand::Kind::text, 0.0, &words[0]};
  if (key == "sp") return {Operand::Kind::truth, 1.0, nullptr};
  return {Operand::Kind::number, numbers.at(key), nullptr};
}

bool holds(const std::string& text) {
  bool all = true;
  for (const Expression& part : Expression::parse(text, at)) {
    std::vector<Operand> values;
    std::vector<std::size_t> slots;
    for (const std::string& key : part.keys()) {
      values.push_back(value_of(key));
      slots.push_back(slots.size());
    }
    all = part.holds(values, slots) && all;
  }
  return all;
}

TEST(Expression, ComparesAndCalculates) {
  for (const char* text :
       {"tp == 8", "tp != 7", "tp*pp <= 32", "tp*pp < 32.5", "tp/pp == 2", "tp % 3 == 2",
        "2 + 3*4 == 14", "(2 + 3)*4 == 20", "10 - 4 - 3 == 3", "64 / 4 / 2 == 8", "-tp == -8",
        "2 - -1 == 3", "min(tp, pp, mbs) == 1", "max(tp, pp) == tp", "1 < pp <= 4 < tp",
        "mbs == 1 and tp == 8", "mbs == 2 or tp == 8", "not mbs == 2", "sp", "not not sp",
        "sp == true", "schedule == '1f1b'", "schedule != \"interleaved\"", ".5 < 1e0",
        // "and" binds stronger than "or", "not" stronger than both.
        "true or true and false", "not false and true", "not (false and true) or false"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text :
       {"tp == 7", "tp*pp <= 31", "1 < pp < 4", "tp < pp", "not sp", "schedule == 'interleaved'",
        "tp % 0 == 0", "(true or true) and false", "min(tp, pp) == 8"})
    EXPECT_FALSE(holds(text)) << text;
}

// All pairs of small numbers against the language's own operators.
TEST(Expression, EveryOperatorIsItsOwn) {
  for (int a = 0; a <= 5; ++a)
    for (int b = 1; b <= 5; ++b) {
      const std::string left = std::to_string(a), right = std::to_string(b);
      EXPECT_EQ(holds(left + "==" + right), a == b);
      EXPECT_EQ(holds(left + "!=" + right), a != b);
      EXPECT_EQ(holds(left + "<" + right), a < b);
      EXPECT_EQ(holds(left + "<=" + right), a <= b);
      EXPECT_EQ(holds(left + ">" + right), a > b);
      EXPECT_EQ(holds(left + ">=" + right), a >= b);
      EXPECT_TRUE(holds(left + "+" + right + "==" + std::to_string(a + b)));
      EXPECT_TRUE(holds(left + "-" + right + "==" + std::to_string(a - b)));
      EXPECT_TRUE(holds(left + "*" + right + "==" + std::to_string(a * b)));
      EXPECT_TRUE(holds(left + "%" + right + "==" + std::to_string(a % b)));
      EXPECT_EQ(holds(left + "/" + right + "==" + std::to_string(a / b)), a % b == 0);
    }
}

TEST(Expression, IsSplitAtItsTopmostAnds) {
  const std::vector<Expression> parts =
      Expression::parse(" tp*pp <= 64 and (mbs == 1 or pp > 1 and sp) and 1 < tp < 9 ", at);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].text(), "tp*pp <= 64");
  EXPECT_EQ(parts[1].text(), "(mbs == 1 or pp > 1 and sp)");
  EXPECT_EQ(parts[2].text(), "1 < tp");
  EXPECT_EQ(parts[3].text(), "tp < 9");
  EXPECT_EQ(Expression::parse("sp or tp == 1 and sp", at).size(), 1u);
}

TEST(Expression, SaysWhatItCannotRead) {
  const auto error = [](const std::string& text) { return error_text([&] { holds(text); }); };
  EXPECT_EQ(error(""),
            "--where: the condition '' ends where a value is expected (column 1); write a key, a "
            "number or a word in quotes");
  EXPECT_EQ(error("tp <"),
            "--where: the condition 'tp <' ends where a value is expected (column 5); write a key, "
            "a number or a word in quotes");
  EXPECT_EQ(error("tp = 8"),
            "--where: the condition 'tp = 8' has a single '=' (column 4); write == to compare");
  EXPECT_EQ(error("(tp == 8"),
            "--where: the condition '(tp == 8' lacks a ')' here (column 9); add it");
  EXPECT_EQ(error("tp == 8 pp"),
            "--where: the condition 'tp == 8 pp' cannot go on here (column 9); write an operator, "
            "or nothing");
  EXPECT_EQ(error("schedule == 1f1b"),
            "--where: the condition 'schedule == 1f1b' has a word here that starts with a digit "
            "(column 13); write words in quotes: '1f1b'");
  EXPECT_EQ(error("schedule == 'x"),
            "--where: the condition 'schedule == 'x' has a quote that is not closed (column 13); "
            "close it");
  EXPECT_EQ(error("tp == and"),
            "--where: the condition 'tp == and' has no value here (column 7); 'and' stands between "
            "conditions");
  EXPECT_EQ(error(std::string(300, '(') + "tp"),
            "--where: the condition '" + std::string(56, '(') +
                "...' nests too deep (column 101); write it without so many brackets");
  EXPECT_EQ(error(std::string(3000, ' ')),
            "--where: has a condition of more than 2,000 characters; write it as several");
}

TEST(Expression, SaysWhatDoesNotGoTogether) {
  const auto error = [](const std::string& text) { return error_text([&] { holds(text); }); };
  EXPECT_EQ(error("tp*pp"),
            "--where: 'tp*pp' is not a condition; compare it with something: '... <= 64'");
  EXPECT_EQ(error("sp and tp"),
            "--where: 'tp' is not a condition; compare it with something: '... <= 64'");
  EXPECT_EQ(
      error("schedule < 3"),
      "--where: 'schedule' is not a number; calculate with numbers; compare words by == or !=");
  EXPECT_EQ(error("tp == '8'"),
            "--where: 'tp' and ''8'' are of different kinds; compare numbers with numbers, words "
            "in quotes with words");
  EXPECT_EQ(
      error("(tp > 1) + 1 == 2"),
      "--where: '(tp > 1)' is not a number; calculate with numbers; compare words by == or !=");
}

}  // namespace
}  // namespace orrery::expression_test
