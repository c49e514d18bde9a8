// `orrery calibrate gpu` up to the GPU: what it starts, and what it says where there is none.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace orrery::calibrate_test {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr.
};

Outcome run(const std::string& environment, const std::string& arguments) {
  const std::string command =
      "env " + environment + " '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.text.append(buffer, count);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

// Takes the place of orrery-gpu: prints its arguments and the work list, and exits with 5.
std::string stand_in(const TemporaryFolder& folder) {
  const fs::path script = folder.path() / "stand-in";
  std::ofstream{script} << "#!/bin/sh\n"
                           "echo \"$@\"\n"
                           "while [ $# -gt 1 ]; do shift; done\n"
                           "[ ! -f \"$1\" ] || cat \"$1\"\n"
                           "exit 5\n";
  fs::permissions(script, fs::perms::owner_all);
  return "ORRERY_GPU=" + script.string();
}

TEST(Calibrate, NoGpuIs77) {
  // CUDA shows no GPU at all; where orrery-gpu was not built, there is no program either.
  const Outcome hidden =
      run("CUDA_VISIBLE_DEVICES=-1", "calibrate gpu --time-limit 1s -o /dev/null");
  EXPECT_EQ(hidden.code, 77) << hidden.text;
  EXPECT_NE(hidden.text.find("no usable NVIDIA GPU"), hidden.text.npos) << hidden.text;
  const Outcome missing = run("ORRERY_GPU=/nowhere/orrery-gpu", "calibrate gpu");
  EXPECT_EQ(missing.code, 77);
  EXPECT_NE(missing.text.find("no usable NVIDIA GPU"), missing.text.npos) << missing.text;
}

TEST(Calibrate, HandsOverOptionsAndTheModelsShapes) {
  const TemporaryFolder folder;
  const Outcome plain =
      run(stand_in(folder), "calibrate gpu --time-limit 5m -o r.json --resume --kinds gemm");
  EXPECT_EQ(plain.code, 5);
  EXPECT_EQ(plain.text, "measure --output r.json --kinds gemm --time-limit 5m --resume\n");

  const Outcome shapes = run(stand_in(folder), "calibrate gpu --model llama3-8b --tp 1,8");
  EXPECT_EQ(shapes.code, 5);
  EXPECT_EQ(shapes.text.find("measure --shapes "), 0u);
  EXPECT_NE(shapes.text.find("\"orrery.calibration-shapes/1\""), shapes.text.npos);
  const std::size_t at = std::string{"measure --shapes "}.size();
  const std::string list = shapes.text.substr(at, shapes.text.find('\n') - at);
  EXPECT_FALSE(fs::exists(list)) << "the work list is left behind";
}

}  // namespace
}  // namespace orrery::calibrate_test
