// `orrery collective` from outside.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/program.hpp"

namespace orrery::collective_test {
namespace {

namespace fs = std::filesystem;

std::string orrery(const std::string& arguments) {
  const orrery::Outcome outcome = orrery::run_orrery("collective " + arguments);
  EXPECT_EQ(outcome.code, 0) << arguments;
  return outcome.out;
}

// The number behind a key of a JSON object.
double number(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": ");
  EXPECT_NE(at, json.npos) << key << " in " << json;
  return at == json.npos ? -1.0 : std::atof(json.c_str() + at + key.size() + 4);
}

// No bytes, and one rank alone: fine, and no time.
TEST(Collective, NothingTakesNoTime) {
  for (const char* nothing : {"all_reduce --system dgx-h100 --gpus 16 --bytes 0 --json",
                              "all_to_all --system dgx-h100 --gpus 1 --bytes 1GiB --json",
                              "send_recv --system dgx-h100 --gpus 1 --bytes 1GiB --json"}) {
    const std::string json = orrery(nothing);
    EXPECT_EQ(number(json, "time_s"), 0.0) << nothing;
    EXPECT_EQ(number(json, "busbw_bytes_per_s"), 0.0) << nothing;
  }
}

TEST(Collective, SaysWhatItPutsOnTheWires) {
  const std::string json =
      orrery("all_reduce --system dgx-h100 --gpus 32 --bytes 1GiB --nccl-algo Ring --json");
  const double gib = 1024.0 * 1024.0 * 1024.0, wire = 2.0 * 31 / 32 * gib;
  EXPECT_NEAR(number(json, "scale_up_bytes_per_rank"), 7.0 / 8 * wire, 1.0);
  EXPECT_NEAR(number(json, "network_bytes_per_rank"), wire / 8, 1.0);
  EXPECT_GT(number(json, "sms"), 0.0);
}

// One rank for all, or each for itself.
TEST(Collective, UnfoldedGivesTheSameTime) {
  for (const char* kind : {"all_reduce", "all_to_all", "all_reduce --hierarchical"}) {
    const std::string what =
        std::string{kind} + " --system dgx-h100 --gpus 32 --bytes 64MiB --json";
    const std::string folded = orrery(what), whole = orrery(what + " --unfolded");
    EXPECT_NEAR(number(folded, "time_s") / number(whole, "time_s"), 1.0, 1e-3);
    EXPECT_LT(number(folded, "flows"), number(whole, "flows"));
  }
}

// A list of sizes is a list of objects.
TEST(Collective, ASweepIsAList) {
  const std::string json =
      orrery("all_gather --system dgx-h100 --gpus 8 --min-bytes 1K --max-bytes 4K --json");
  EXPECT_EQ(json.find("[\n"), 0u);
  std::size_t objects = 0;
  for (std::size_t at = json.find("\"schema\""); at != json.npos;
       at = json.find("\"schema\"", at + 1))
    ++objects;
  EXPECT_EQ(objects, 3u);
}

// A program of two messages, NVLink 10 GB/s and 1 us: 2 x (1 us + 0.1 s).
TEST(Collective, RunsAFile) {
  const fs::path file =
      fs::temp_directory_path() / ("orrery-program-" + std::to_string(getpid()) + ".json");
  std::ofstream{file} << R"([{"step": 0, "src": 0, "dst": 1, "bytes": 1000000000},
                             {"step": 1, "src": 1, "dst": 2, "bytes": 1000000000}])";
  const std::string json = orrery(file.string() + " --system four-by-four --json");
  EXPECT_NEAR(number(json, "time_s"), 0.200002, 1e-8);
  EXPECT_EQ(number(json, "ranks"), 3.0);
  EXPECT_EQ(number(json, "bytes"), 2e9);
  fs::remove(file);
}

}  // namespace
}  // namespace orrery::collective_test
