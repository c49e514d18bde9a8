// The binary from outside, as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::command_line_test {
namespace {

namespace fs = std::filesystem;

using orrery::Outcome;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome orrery(const std::string& arguments) { return orrery::run_orrery(arguments); }

const std::string small_plan =
    "estimate --model llama3-8b --system dgx-h100 --gpus 16 --tp 2 --pp 2 --gbs 32 ";

// Only the time that the simulation took may differ between two runs.
std::string without_wall_time(std::string text) {
  const std::size_t at = text.find("\"simulation_wall_s\"");
  if (at != text.npos) text.erase(at, text.find('\n', at) - at);
  return text;
}

TEST(CommandLine, HelpAndVersionGoToStdout) {
  EXPECT_EQ(orrery("--version").code, 0);
  EXPECT_EQ(orrery("--version").out.find("orrery "), 0u);
  for (const char* command : {"", "estimate ", "validate ", "check ", "list "}) {
    const Outcome help = orrery(std::string{command} + "--help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_NE(help.out.find("usage: orrery"), help.out.npos) << command;
  }
}

TEST(CommandLine, HelpIsFoundWhereOneLooksForIt) {
  const std::string help = orrery("search --help").out;
  EXPECT_EQ(orrery("help search").out, help);
  EXPECT_EQ(orrery("search -h").out, help);
  EXPECT_EQ(orrery("help sweep run").out, orrery("sweep run --help").out);
  EXPECT_EQ(orrery("help").out, orrery("--help").out);
  EXPECT_EQ(orrery("help serach").code, 2);
}

TEST(CommandLine, AFullDiskIsReported) {
  for (const char* command : {"list models", "check --model llama3-8b", "--help"}) {
    // run_orrery drops stderr: inside of the brackets it is what stdout was.
    const Outcome outcome = orrery::run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " +
                                              std::string{command} + " 2>&1 >/dev/full)");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_NE(outcome.out.find("cannot be written"), outcome.out.npos) << command;
  }
}

TEST(CommandLine, NoCommandIsBadInput) {
  EXPECT_EQ(orrery("").code, 2);
  EXPECT_EQ(orrery("").out, "");
}

TEST(CommandLine, JsonIsAloneOnStdoutAndTheSameTwice) {
  const Outcome first = orrery(small_plan + "--json");
  const Outcome second = orrery(small_plan + "--json");
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.out.front(), '{');
  EXPECT_EQ(first.out.substr(first.out.size() - 2), "}\n");
  EXPECT_EQ(without_wall_time(first.out), without_wall_time(second.out));
}

TEST(CommandLine, AFlagWinsOverAPlanFile) {
  const fs::path plan =
      fs::temp_directory_path() / ("orrery-plan-" + std::to_string(getpid()) + ".json");
  std::ofstream{plan} << R"({"model": "llama3-8b", "system": "dgx-h100", "gpus": 16, "tp": 2,
                             "pp": 2, "gbs": 64})";
  const Outcome from_file = orrery("estimate --plan " + plan.string() + " --gbs 32 --json");
  EXPECT_EQ(from_file.code, 0);
  EXPECT_EQ(without_wall_time(from_file.out), without_wall_time(orrery(small_plan + "--json").out));
  fs::remove(plan);
}

// Not at the 131,072 tokens that the model could take.
TEST(CommandLine, ASearchSaysHowLongSequencesAre) {
  const std::string asked = " --system dgx-h100 --gpus 64 --gbs 64 --fix tp=8 --fix pp=4 --top 1";
  EXPECT_THAT(orrery("search --model llama3.1-70b" + asked).out,
              HasSubstr("llama3.1-70b on dgx-h100, 64 GPUs\n"
                        "  global batch 64, sequences of 8,192 tokens as in pre-training, bf16,\n"
                        "  software megatron-core, fixed tp 8, fixed pp 4\n"));
  EXPECT_THAT(
      orrery("search --model '" ORRERY_TEST_SOURCE "/tests/unit/model/hf/llama3.1-70b.json'" +
             asked)
          .out,
      HasSubstr("sequences of 8,192 tokens (assumed)"));
}

// Sequences, precision and software of a run stay; what a search varies is free.
TEST(CommandLine, ASearchStartsFromARun) {
  const std::string run = "/run.json";
  const orrery::TemporaryFolder folder;
  orrery(
      "estimate --model llama3-8b --system dgx-h100 --gpus 16 --gbs 32 --seq 4096 --tp 8 "
      "--software megatron-core-fp32-reduce --json > '" +
      folder.path().string() + run + "'");
  const std::string output =
      orrery("search --top 1 --plan '" + folder.path().string() + run + "'").out;
  EXPECT_THAT(output, HasSubstr("llama3-8b on dgx-h100, 16 GPUs\n  global batch 32"));
  EXPECT_THAT(output, HasSubstr("fixed seq 4096"));
  EXPECT_THAT(output, HasSubstr("fixed software megatron-core-fp32-reduce"));
  EXPECT_THAT(output, HasSubstr("--seq 4096"));
  EXPECT_THAT(output, Not(HasSubstr("fixed tp")));
}

TEST(CommandLine, TraceIsAWholeFileAndNothingElse) {
  const fs::path folder = fs::temp_directory_path() / ("orrery-trace-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const Outcome traced = orrery(small_plan + "--perfetto " + (folder / "step.json").string());
  EXPECT_EQ(traced.code, 0);
  std::ostringstream text;
  text << std::ifstream{folder / "step.json"}.rdbuf();
  EXPECT_NE(text.str().find("\"traceEvents\""), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}), 1);

  // A plan that cannot run writes nothing.
  fs::remove(folder / "step.json");
  EXPECT_EQ(
      orrery("estimate --model gpt3-175b --system dgx-a100-80gb --gpus 8 --gbs 8 --perfetto " +
             (folder / "step.json").string())
          .code,
      3);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

TEST(CommandLine, UnfoldedAndExpandedGiveTheSameStep) {
  const auto step = [](const std::string& json) {
    return std::strtod(json.substr(json.find("\"step_time_s\":") + 14).c_str(), nullptr);
  };
  const double folded = step(orrery(small_plan + "--json").out);
  EXPECT_GT(folded, 0.0);
  for (const char* detail : {"--unfolded", "--expanded", "--unfolded --expanded"})
    EXPECT_NEAR(step(orrery(small_plan + "--json " + detail).out), folded, 1e-3 * folded) << detail;
}

TEST(CommandLine, AThresholdDecidesTheExitCode) {
  const std::string file = " '" ORRERY_TEST_SOURCE "/tests/validation/training/korthikanti.json'";
  EXPECT_EQ(orrery("validate --fail-if 'mean_abs_error>0.10'" + file).code, 0);
  EXPECT_EQ(orrery("validate --fail-if 'mean_abs_error>0.001'" + file).code, 4);
}

TEST(CommandLine, EveryCatalogEntryIsListedAndChecked) {
  for (const auto& [section, option] :
       {std::pair<std::string, std::string>{"models", "--model"}, {"systems", "--system"}}) {
    std::istringstream names{orrery("list " + section).out};
    int count = 0;
    for (std::string line; std::getline(names, line); ++count) {
      const std::string name = line.substr(0, line.find(' '));
      EXPECT_GT(line.size(), name.size() + 2) << "what is it? " << line;
      EXPECT_EQ(orrery("check " + option + " " + name).code, 0) << name;
    }
    EXPECT_GT(count, 15) << section;
  }
}

TEST(CommandLine, WithoutTimingTheSameBytesComeOut) {
  for (const std::string& words : {small_plan, small_plan + "--json "}) {
    const Outcome first = orrery(words + "--no-timing");
    EXPECT_EQ(first.code, 0);
    EXPECT_EQ(first.out, orrery(words + "--no-timing").out);
    EXPECT_EQ(first.out.find("Took"), std::string::npos);
    EXPECT_EQ(first.out.find("simulation_wall_s"), std::string::npos);
  }
}

// Whatever is typed, nothing that comes back makes a terminal do something.
// Linking it would take longer than the answer.
TEST(CommandLine, SimGridIsLoadedWhereItIsNeeded) {
  const auto loads_it = [](const std::string& engine) {
    const Outcome outcome =
        orrery::run_shell("(LD_DEBUG=files '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + small_plan +
                          " --simulator " + engine + " 2>&1)");
    EXPECT_EQ(outcome.code, 0);
    return outcome.out.find("libsimgrid") != std::string::npos;
  };
  EXPECT_FALSE(loads_it("own"));
  EXPECT_TRUE(loads_it("simgrid"));
}

TEST(CommandLine, NoMessageHasControlCharacters) {
  const std::string evil = "'\x1b[31mx\x07\xc2\x9b\n'";
  for (const std::string words :
       {"E",
        "search --E",
        "search E",
        "collective E",
        "collective all_reduce --E",
        "estimate --mE=3",
        "sweep E",
        "sweep run --shard E --output a",
        "sweep run --sweep E --output a",
        "sweep status E",
        "sweep plot . --kind E -o a.svg",
        "schedule E",
        "calibrate E",
        "calibrate show E",
        "import E",
        "import megatron E",
        "import nccl-tests E",
        "export E",
        "export megatron --E",
        "list E",
        "validate E",
        "validate --fail-if E",
        "check E",
        "check --model E/x.json",
        "compare E",
        "place-experts E",
        "estimate --plan E",
        "estimate --model E/x.json",
        "estimate --model llama3-8b --system dgx-h100 --gpus E",
        "estimate --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --software E",
        "search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --fix E=1",
        "search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --fix tp=E"}) {
    std::string typed;
    for (const char c : words) typed += c == 'E' ? evil : std::string{c};
    const Outcome outcome =
        orrery::run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + typed + " 2>&1)");
    EXPECT_NE(outcome.code, 0) << words;
    EXPECT_NE(outcome.out.find("orrery: error: "), std::string::npos) << words;
    for (const char control : {'\x1b', '\x07', '\x9b'})
      EXPECT_EQ(outcome.out.find(control), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace orrery::command_line_test
