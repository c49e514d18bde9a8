#include "sim/import/megatron/shell_words.hpp"

#include <gtest/gtest.h>

#include "sim/base/core/error.hpp"

namespace orrery {
namespace {

// Commands as text, a word each in brackets.
std::vector<std::string> commands(const std::string& text,
                                  const std::map<std::string, std::string>& given = {}) {
  std::vector<std::string> lines;
  for (const auto& command : read_shell_script(text, "run.sh", given).commands) {
    std::string line;
    for (const ShellWord& word : command) line += "[" + word.text + "]";
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(ShellWords, QuotesCommentsAndContinuedLines) {
  EXPECT_EQ(commands("a 'b c' \"d e\" f\\ g # h\n# i\nj \\\n  k\\\r\nl"),
            (Lines{"[a][b c][d e][f g]", "[j][k][l]"}));
  EXPECT_EQ(commands("a; b | c && d"), (Lines{"[a]", "[b]", "[c]", "[d]"}));
  EXPECT_EQ(commands("a#b 'x'\"y\"z"), (Lines{"[a#b][xyz]"}));
  EXPECT_EQ(commands("''"), (Lines{"[]"}));
}

TEST(ShellWords, Variables) {
  EXPECT_EQ(commands("TP=8\nexport PP=\"$TP\"\nrun $TP ${PP}x \"a $TP\" '$TP'"),
            (Lines{"[run][8][8x][a 8][$TP]"}));
  EXPECT_EQ(commands("run ${TP:-4} ${PP-2} ${CP:-}"), (Lines{"[run][4][2][]"}));
  EXPECT_EQ(commands("run $TP ${A:0:2} $((1+2)) $(hostname) $1 $"),
            (Lines{"[run][$TP][${A:0:2}][$((1+2))][$(hostname)][$1][$]"}));
}

TEST(ShellWords, Arrays) {
  const std::string script =
      "ARGS=(--a 1  # one\n  --b \"2 3\")\nARGS+=(--c)\nrun ${ARGS[@]} \"${ARGS[*]}\"";
  EXPECT_EQ(commands(script), (Lines{"[run][--a][1][--b][2 3][--c][--a][1][--b][2 3][--c]"}));
}

TEST(ShellWords, GivenVariablesWin) {
  EXPECT_EQ(commands("TP=8\nrun $TP $PP", {{"TP", "2"}, {"PP", "4"}}), (Lines{"[run][2][4]"}));
}

TEST(ShellWords, TellsOfVariablesThatAreSetTwice) {
  const ShellScript script = read_shell_script(
      "if x; then\n A=1\nelse\n A=2\nfi\nB=1\nB=1\nC=(1)\nC+=(2)\n", "run.sh", {});
  EXPECT_EQ(script.set_twice, (Lines{"A"}));
}

TEST(ShellWords, LinesOfWords) {
  const ShellScript script = read_shell_script("a\n\nb \\\n c\nD=(x\ny)\n$D\n", "run.sh", {});
  ASSERT_EQ(script.commands.size(), 3u);
  EXPECT_EQ(script.commands[1][0].line, 2u);
  EXPECT_EQ(script.commands[1][1].line, 3u);
}

// Each line doubles what the one before made: 2^40 letters.
TEST(ShellWords, VariablesThatGrowWithoutEndAreRefused) {
  std::string text = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_THROW(read_shell_script(text, "run.sh", {}), Error);
  text = "A=(x)\n";
  for (int i = 0; i < 40; ++i) text += "A+=(${A[@]})\n";
  EXPECT_THROW(read_shell_script(text, "run.sh", {}), Error);
}

}  // namespace
}  // namespace orrery
