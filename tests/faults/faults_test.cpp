// Every call to the disk fails once, in every way, or is the last one of the process. Afterwards
// whatever stands under the name of an answer is the answer, and the same command gives it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::faults_test {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

Files files_below(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator{folder})
    if (entry.is_regular_file()) {
      std::ostringstream text;
      text << std::ifstream{entry.path(), std::ios::binary}.rdbuf();
      files[fs::relative(entry.path(), folder).string()] = text.str();
    }
  return files;
}

const std::string plan = "--model llama3-8b --system dgx-h100 --gpus 16 --tp 2 --pp 2 --gbs 32 ";
const std::string sweep =
    "sweep run --output s -j 1 --quiet --memory-only --shards 2 " + plan + "--sweep 'mbs=1,2,4' ";

// Appends to a command the copy of a text that the fuzzers begin with.
std::string with_a_copy(const std::string& words, const std::string& text, const std::string& to) {
  return words + " && cp '" ORRERY_TEST_SOURCE "/tests/fuzz/corpus/" + text + "' " + to;
}

struct Command {
  const char* name;
  std::string before;  // What is there when it begins, made without faults; "" for nothing.
  std::string words;
};

void PrintTo(const Command& command, std::ostream* out) { *out << command.words; }

class Faults : public testing::TestWithParam<Command> {
 protected:
  // Exit code; 137 for a kill.
  int run(const std::string& words, const std::string& environment = "") const {
    return run_shell("(" + environment + " '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + words +
                         " >/dev/null 2>&1)",
                     work().string())
        .code;
  }
  int run_with(const std::string& fault, long at) const {
    return run(GetParam().words, "LD_PRELOAD=" ORRERY_TEST_FAULTS " FAULT=" + fault +
                                     " FAULT_AT=" + std::to_string(at) + " FAULT_FOLDER='" +
                                     work().string() + "' FAULT_COUNT=" + count().string());
  }
  void begin_anew() const {
    fs::remove_all(work());
    if (fs::exists(prepared()))
      fs::copy(prepared(), work(), fs::copy_options::recursive);
    else
      fs::create_directory(work());
  }
  fs::path work() const { return fs::canonical(folder_.path()) / "work"; }
  fs::path prepared() const { return folder_.path() / "prepared"; }
  fs::path count() const { return folder_.path() / "count"; }

 private:
  TemporaryFolder folder_;
};

TEST_P(Faults, EveryCallMayFail) {
  begin_anew();
  if (!GetParam().before.empty()) {
    ASSERT_EQ(run(GetParam().before), 0);
    fs::copy(work(), prepared(), fs::copy_options::recursive);
  }
  ASSERT_EQ(run_with("none", 0), 0);
  const Files expected = files_below(work());
  long calls = 0;
  std::ifstream{count()} >> calls;
  ASSERT_GE(calls, 2);
  int injected = 0;
  for (const std::string fault : {"ENOSPC", "EIO", "EINTR", "short", "kill"})
    for (long at = 1; at <= calls; ++at) {
      SCOPED_TRACE(fault + " at call " + std::to_string(at) + " of " + std::to_string(calls));
      begin_anew();
      const int code = run_with(fault, at);
      ++injected;
      const bool is_harmless = fault == "EINTR" || fault == "short";
      const bool is_as_expected = is_harmless       ? code == 0
                                  : fault == "kill" ? code == 137
                                                    : code != 1 && code >= 0 && code <= 5;
      EXPECT_TRUE(is_as_expected) << code;
      // A final name has the whole answer or nothing.
      const Files left = files_below(work());
      for (const auto& [name, text] : left) {
        const auto whole = expected.find(name);
        if (whole == expected.end() || name.ends_with(".sqlite")) continue;
        EXPECT_EQ(text, whole->second) << name;
      }
      if (code == 0) {
        EXPECT_EQ(left.size(), expected.size());
      }
      // And the next run gives it.
      EXPECT_EQ(run(GetParam().words), 0);
      const Files again = files_below(work());
      for (const auto& [name, text] : expected) EXPECT_EQ(again.at(name), text) << name;
      EXPECT_EQ(again.size(), expected.size());
    }
  RecordProperty("injected", injected);
  std::printf("%s: %ld calls, %d faults\n", GetParam().name, calls, injected);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Faults,
    testing::Values(
        Command{"SweepRun", "", sweep},
        Command{"SweepMergeTable", sweep, "sweep merge s -o rows.csv"},
        Command{"SweepMergeDatabase", sweep, "sweep merge s -o rows.sqlite"},
        Command{"SweepPlot", sweep, "sweep plot s --x mbs --y memory_peak_bytes -o plot.svg"},
        Command{"Search", with_a_copy("list gpus", "plan_file/search", "run.json"),
                "search --plan run.json --fix tp=1,2 --fix mbs=1 -j 1"},
        Command{"CalibrateFit",
                with_a_copy("list gpus", "nccl_tests/all_reduce_2_17.txt", "log.txt"),
                "calibrate fit --nccl log.txt --gpu h100-sxm -o own.json"},
        Command{"Report", "", "estimate " + plan + "--html report.html --perfetto trace.json"}),
    [](const auto& command) { return command.param.name; });

}  // namespace
}  // namespace orrery::faults_test
