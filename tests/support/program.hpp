#pragma once

#include <stdio.h>
#include <sys/wait.h>

#include <string>

namespace orrery {

/// How a run of the program from outside ended, and what it wrote to stdout.
struct Outcome {
  int code = -1;
  std::string out;
};

/// Runs a shell command, stdin empty and stderr left out. `folder` is where it runs; "": here.
inline Outcome run_shell(const std::string& command, const std::string& folder = "") {
  const std::string there = folder.empty() ? "" : "cd '" + folder + "' && ";
  Outcome outcome;
  FILE* pipe = ::popen((there + command + " 2>/dev/null </dev/null").c_str(), "r");
  if (!pipe) return outcome;
  char buffer[4096];
  while (const std::size_t count = ::fread(buffer, 1, sizeof buffer, pipe))
    outcome.out.append(buffer, count);
  outcome.code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

/// Runs the program with words for the shell.
inline Outcome run_orrery(const std::string& arguments, const std::string& folder = "") {
  return run_shell("NO_COLOR=1 '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + arguments, folder);
}

}  // namespace orrery
