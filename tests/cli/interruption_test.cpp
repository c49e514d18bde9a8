// Ctrl-C: what a command says before it ends, and that nothing is lost.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::interruption_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

struct Interrupted {
  int code = -1;
  std::string out, errors;
};

// Starts the program in `folder` and sends it and its workers what a terminal sends on Ctrl-C, as
// soon as `ready` says so.
template <class Ready>
Interrupted interrupted(const std::string& words, const fs::path& folder, const Ready& ready) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::setpgid(0, 0);
    ::setenv("NO_COLOR", "1", 1);
    const std::string command = "cd '" + folder.string() +
                                "' && exec '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + words +
                                " >out 2>errors </dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  using namespace std::chrono_literals;
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (!ready() && std::chrono::steady_clock::now() - begin < 60s)
    std::this_thread::sleep_for(20ms);
  ::kill(-process, SIGINT);
  ::waitpid(process, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), contents(folder / "out"),
          contents(folder / "errors")};
}

auto after(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  return [end] { return std::chrono::steady_clock::now() > end; };
}

// Its space takes minutes to enumerate, and more to simulate.
const std::string long_search =
    "search --model deepseek-v3 --system dgx-h100 --gpus 2048 --gbs 8192 --fix seq=4096 -j 2";

TEST(Interruption, ASearchPrintsTheBestSoFar) {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Interrupted search = interrupted(long_search, folder.path(), after(4s));
  EXPECT_EQ(search.code, 130);
  EXPECT_EQ(search.errors, "");
  EXPECT_NE(search.out.find("  1 "), search.out.npos) << search.out;
  EXPECT_NE(search.out.find("Not proven: the interruption left out"), search.out.npos)
      << search.out;
  EXPECT_NE(search.out.find("Not all plans are known"), search.out.npos) << search.out;
  EXPECT_NE(search.out.find("orrery estimate --model deepseek-v3"), search.out.npos) << search.out;
}

// Rows of 16 GPUs take seconds, those of 16,384 minutes: the second worker is at one of them while
// the first does what is before and behind it.
TEST(Interruption, APurchaseAnswersWhatIsDoneBehindASlowRow) {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Interrupted purchase = interrupted(
      "buy --model qwen3-30b-a3b --tokens 1T --system dgx-h100,dgx-h200 --gpus 16,16384 -j 2 --csv",
      folder.path(), after(15s));
  EXPECT_EQ(purchase.code, 130);
  EXPECT_EQ(purchase.errors, "");
  std::istringstream lines{purchase.out};
  std::vector<bool> searched;
  for (std::string line; std::getline(lines, line);)
    searched.push_back(line.find("not searched before the interruption") == line.npos);
  EXPECT_EQ(searched, (std::vector<bool>{true, true, false, true, false})) << purchase.out;
}

TEST(Interruption, ASearchThatKnowsNothingYetSaysSo) {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Interrupted search = interrupted(long_search + " --json", folder.path(), after(250ms));
  EXPECT_EQ(search.code, 130);
  EXPECT_NE(search.out.find("\"interrupted\": true"), search.out.npos) << search.out;
}

TEST(Interruption, ASweepGoesOnWhereItWasStopped) {
  const std::string axes =
      " --model deepseek-v3 --system dgx-h100 --gpus 1024 --pp 8 --ep 32 --seq 4096 "
      "--routing zipf:1 --recompute full --sweep 'gbs=2048..16384 mbs=1,2' -j 1";
  const TemporaryFolder folder;
  const fs::path rows = folder.path() / "stopped/shard-00000-of-00001.jsonl.part";
  const auto has_rows = [&] {
    const std::string text = contents(rows);
    return std::count(text.begin(), text.end(), '\n') >= 2;  // A header and a row.
  };
  const Interrupted sweep =
      interrupted("sweep run --output stopped" + axes, folder.path(), has_rows);
  EXPECT_EQ(sweep.code, 130) << sweep.errors;
  EXPECT_EQ(sweep.out, "");
  EXPECT_NE(sweep.errors.find(" of 8 points; to go on: orrery sweep run --output stopped\n"),
            sweep.errors.npos)
      << sweep.errors;
  const std::string there = folder.path().string();
  const Outcome again = run_orrery("sweep run --output stopped", there);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, run_orrery("sweep run --output whole" + axes, there).out);
  EXPECT_EQ(contents(folder.path() / "stopped/shard-00000-of-00001.jsonl"),
            contents(folder.path() / "whole/shard-00000-of-00001.jsonl"));
}

}  // namespace
}  // namespace orrery::interruption_test
