#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The most memory that this process ever had.
inline double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// Something that was counted, which is the same on every machine.
struct Count {
  const char* what;
  double number;
};

/// A figure for tests/bench/record.py, where that asks for them: a line of JSON in its file.
inline void note(const std::string& name, double cpu_s, std::initializer_list<Count> counts = {}) {
  const char* path = std::getenv("ORRERY_BENCH_FIGURES");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::fprintf(file, R"({"name":"%s","cpu_s":%.6g,"counts":{)", name.c_str(), cpu_s);
  const char* separator = "";
  for (const Count& count : counts) {
    std::fprintf(file, R"(%s"%s":%.17g)", separator, count.what, count.number);
    separator = ",";
  }
  std::fprintf(file, "}}\n");
  std::fclose(file);
}

struct Sample {
  double cpu_s = 0.0;
  double simulated_s = 0.0;
  double peak_mb = 0.0;
  int tasks = 0;
  int reps = 0;
};

/// The result of `measure` in a process of its own, as SimGrid has one engine a process.
inline Sample in_child(const std::function<Sample()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  if (fork() == 0) {
    const Sample sample = measure();
    _exit(write(ends[1], &sample, sizeof sample) == sizeof sample ? 0 : 1);
  }
  Sample sample;
  const bool whole = read(ends[0], &sample, sizeof sample) == sizeof sample;
  wait(nullptr);
  close(ends[0]);
  close(ends[1]);
  return whole ? sample : Sample{};
}

/// The median of so many by CPU time.
inline Sample median_of(int runs, const std::function<Sample()>& measure) {
  std::vector<Sample> samples;
  for (int i = 0; i < runs; ++i) samples.push_back(in_child(measure));
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.cpu_s < b.cpu_s; });
  return samples[samples.size() / 2];
}

}  // namespace orrery
