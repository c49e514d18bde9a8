// Manual pages and completion name every option of every command, as --help prints them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::manual_test {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Words that `orrery completion words` offers, without their meanings.
std::vector<std::string> offered(const std::string& typed) {
  std::vector<std::string> words;
  for (const std::string& line : lines_of(run_orrery("completion words " + typed).out))
    words.push_back(line.substr(0, line.find('\t')));
  return words;
}

// "  --name ..." in a help.
std::vector<std::string> options_of(const std::string& help) {
  std::vector<std::string> options;
  for (const std::string& line : lines_of(help))
    if (line.starts_with("  --")) options.push_back(line.substr(2, line.find(' ', 3) - 2));
  return options;
}

// "  name   summary" in the usage.
std::vector<std::string> all_commands() {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(run_orrery("--help").out))
    if (line.starts_with("  ") && line[2] != ' ' && !line.starts_with("  orrery"))
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  return names;
}

// Commands whose options follow another word.
bool has_smaller_commands(const std::string& command) {
  return command == "sweep" || command == "calibrate" || command == "import" || command == "export";
}

std::string in_roff(const std::string& option) {
  std::string text;
  for (const char c : option) text += c == '-' ? "\\-" : std::string(1, c);
  return text;
}

TEST(Manual, NamesEveryOptionOfEveryCommandAndSoDoesCompletion) {
  const std::vector<std::string> commands = all_commands();
  EXPECT_THAT(commands, IsSupersetOf({"search", "estimate", "sweep", "list", "manual"}));
  EXPECT_THAT(offered("''"), IsSupersetOf(commands));
  int options = 0;
  for (const std::string& command : commands) {
    const std::string page = run_orrery("manual " + command).out;
    EXPECT_THAT(page, HasSubstr(".SH SYNOPSIS")) << command;
    std::vector<std::string> all;
    for (const std::string& word : offered(command + " ''"))
      if (has_smaller_commands(command)) all.push_back(command + " " + word);
    if (all.empty()) all.push_back(command);
    for (const std::string& one : all) {
      const std::string help = run_orrery(one + " --help all").out;
      const std::vector<std::string> completed = offered(one + " --");
      for (const std::string& option : options_of(help)) {
        EXPECT_THAT(page, AnyOf(HasSubstr("\"" + in_roff(option) + "\""),
                                HasSubstr("\"" + in_roff(option) + " \"")))
            << one;
        EXPECT_THAT(completed, Contains(option)) << one;
        ++options;
      }
    }
  }
  EXPECT_THAT(options, Gt(450));
}

TEST(Manual, HasWhatTheHelpSays) {
  const std::string page = run_orrery("manual calibrate").out;
  EXPECT_THAT(page, HasSubstr(".SH \"ORRERY CALIBRATE FIT\""));
  EXPECT_THAT(page, HasSubstr("\n.BI \"\\-\\-nccl \" \"LOG..\"\n"));
  EXPECT_THAT(page, Not(HasSubstr("Options:")));
  const std::string estimate = run_orrery("manual estimate").out;
  EXPECT_THAT(estimate, HasSubstr(".SS \"Output\"\n"));
  EXPECT_THAT(estimate, HasSubstr("\n.BI \"\\-\\-sp \" \"[true|false]\"\n"));
  EXPECT_EQ(run_orrery("manual serach").code, 2);
  EXPECT_EQ(run_orrery("manual search estimate").code, 2);
}

TEST(Manual, WritesAPageForEachCommand) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_orrery("manual --output .", folder.path().string()).code, 0);
  const std::string files = run_shell("ls", folder.path().string()).out;
  for (const std::string& command : all_commands())
    EXPECT_THAT(files, HasSubstr("orrery-" + command + ".1\n"));
  EXPECT_EQ(run_shell("cat orrery-sweep.1", folder.path().string()).out,
            run_orrery("manual sweep").out);
}

TEST(Completion, KnowsNamesOfTheCatalogAndWordsOfValues) {
  EXPECT_THAT(offered("estimate --model llama3-7"), ElementsAre("llama3-70b", ":files"));
  EXPECT_THAT(offered("search --system=dgx-h2"), ElementsAre("--system=dgx-h200", ":files"));
  EXPECT_THAT(offered("serve --engine v"), Contains("vllm"));
  EXPECT_THAT(offered("estimate --simulator ''"), ElementsAre("own", "simgrid"));
  EXPECT_THAT(offered("estimate --software megatron-co"), Contains("megatron-core"));
  EXPECT_THAT(offered("estimate --routing zipf-1-c"), ElementsAre("zipf-1-capacity"));
  EXPECT_THAT(offered("schedule zb-h"), ElementsAre("zb-h1", "zb-h2", ":files"));
  EXPECT_THAT(offered("collective all_g"), ElementsAre("all_gather", ":files"));
  EXPECT_THAT(offered("calibrate show h100-s"), ElementsAre("h100-sxm", ":files"));
  EXPECT_THAT(offered("sweep merge ''"), ElementsAre(":folders"));
  EXPECT_THAT(offered("list sys"), ElementsAre("systems"));
  EXPECT_THAT(offered("help sweep m"), ElementsAre("merge"));
}

TEST(Completion, FollowsListsShortOptionsAndBooleans) {
  EXPECT_THAT(offered("sweep run --recompute none,f"), ElementsAre("none,full"));
  EXPECT_THAT(offered("sweep run --model llama3-8b,llama3-7"), ElementsAre("llama3-8b,llama3-70b"));
  EXPECT_THAT(offered("sweep merge out -o ''"), ElementsAre(":files"));
  EXPECT_THAT(offered("estimate --sp ''"), ElementsAre("true", "false"));
  EXPECT_THAT(offered("estimate --sp --tok"), ElementsAre("--tokens"));
}

TEST(Completion, OffersNoOptionTwice) {
  EXPECT_THAT(offered("estimate --mode"), ElementsAre("--model"));
  EXPECT_THAT(offered("estimate --model llama3-8b --mode"), ElementsAre());
  EXPECT_THAT(offered("search --fix tp=1 --fi"), ElementsAre("--fix"));  // Which may be repeated.
}

TEST(Completion, SaysNothingOfWhatIsNot) {
  for (const char* typed :
       {"nothing ''", "sweep nothing ''", "estimate --nothing=", "list gpus ''"})
    EXPECT_EQ(run_orrery(std::string{"completion words "} + typed).code, 0) << typed;
  EXPECT_THAT(offered("nothing ''"), ElementsAre());
  EXPECT_THAT(offered("estimate --nothing="), ElementsAre());
  EXPECT_EQ(run_orrery("completion tcsh").code, 2);
  EXPECT_EQ(run_orrery("completion").code, 2);
}

}  // namespace
}  // namespace orrery::manual_test
