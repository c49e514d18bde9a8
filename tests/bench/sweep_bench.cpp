// How many points a sweep computes in a second, alone and in two processes, and how much memory it
// takes with a million of them. Prints; asserts nothing by the clock.
//
//     build/release/tests/sweep_bench build/release/orrery      the table of docs/notes/speed.md

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

struct Run {
  double wall_s = 0.0;
  double cpu_s = 0.0;
  double peak_mb = 0.0;  // Memory of the largest of its processes.
};

Run run(const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t process = fork();
  if (process == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(process, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "%s %s FAILED: %d\n", words[1].c_str(), words[2].c_str(), status);
    std::exit(1);
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024.0};
}

void row(const char* what, int points, const Run& run) {
  orrery::note(what + (", " + std::to_string(points)), run.cpu_s,
               {{"points", static_cast<double>(points)}});
  std::printf("%-46s %9d %8.2f %8.2f %10.0f %6.0f\n", what, points, run.wall_s, run.cpu_s,
              points / run.wall_s, run.peak_mb);
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: sweep_bench ORRERY\n"), 2;
  const std::string orrery = words[1];
  const orrery::TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::printf("%-46s %9s %8s %8s %10s %6s\n", "", "points", "wall s", "CPU s", "points/s", "MB");

  // GPT-3 175B, 1,024 A100s: 4 x 3 x 3 x 15 x 2 plans.
  const auto simulated = [&](const char* out, const char* jobs) {
    return run({orrery, "sweep", "run", "--output", path(out), "-j", jobs, "--model", "gpt3-175b",
                "--system", "dgx-a100-80gb", "--gpus", "1024", "--sweep",
                "tp=1..8*2 pp=4,8,16 mbs=1,2,4 gbs=1024..8192+512 recompute=selective,full"});
  };
  const Run one = simulated("one", "1");
  row("simulated, 1 process", 1080, one);
  const Run two = simulated("two", "2");
  row("simulated, 2 processes", 1080, two);
  std::printf("  2 processes are %.2f times as fast\n", one.wall_s / two.wall_s);

  const auto cheap = [&](const char* out, const char* jobs, const char* last) {
    return run({orrery, "sweep", "run", "--output", path(out), "-j", jobs, "--shards", "10",
                "--memory-only", "--yes", "--model", "llama3-70b", "--system", "dgx-h100", "--gpus",
                "1024", "--sweep",
                "tp=1..8*2 pp=1,2,4,5,8 mbs=1,2,4,8,16 recompute=none,selective,full gbs=16384.." +
                    std::string{last} + "+16384"});
  };
  row("memory alone, 10 shards", 30'000, cheap("small", "2", "1638400"));
  row("memory alone, 10 shards", 300'000, cheap("middle", "2", "16384000"));
  row("memory alone, 10 shards", 1'000'200, cheap("large", "2", "54624256"));
  row("merged into SQLite", 1'000'200,
      run({orrery, "sweep", "merge", path("large"), "-o", path("large.sqlite")}));
  row("merged into CSV", 1'000'200,
      run({orrery, "sweep", "merge", path("large"), "-o", path("large.csv")}));
  return 0;
}
