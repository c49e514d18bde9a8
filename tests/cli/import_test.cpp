// The other commands read what `orrery import` writes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/program.hpp"

namespace orrery::import_test {
namespace {

namespace fs = std::filesystem;

using orrery::Outcome;

Outcome orrery(const std::string& arguments) {
  return orrery::run_orrery(arguments, ORRERY_TEST_SOURCE "/tests/unit/calibration/data");
}

// 18 links x 25 GB/s, of both files.
void expect_checked(const std::string& arguments) {
  const fs::path file =
      fs::temp_directory_path() / ("orrery-import-" + std::to_string(getpid()) + ".json");
  const Outcome imported = orrery("import " + arguments + " -o " + file.string());
  EXPECT_EQ(imported.code, 0);
  EXPECT_EQ(imported.out, "");
  const Outcome checked = orrery("check --system " + file.string());
  EXPECT_EQ(checked.code, 0);
  EXPECT_NE(checked.out.find("450 GB/s each way"), checked.out.npos) << checked.out;
  fs::remove(file);
}

TEST(Import, CheckReadsASystemOfNccl) { expect_checked("nccl-topo eight_h100.xml"); }

TEST(Import, CheckReadsASystemOfNvidiaSmi) {
  expect_checked(
      "nvidia-smi-topo eight_gpus.txt --gpu h100-sxm --nic-bandwidth '400 Gb/s' --fabric ethernet");
}

TEST(Import, CurvesOfSeveralFilesAreOneDocument) {
  const Outcome both = orrery("import nccl-tests all_reduce_2_17.txt run.json --system mine");
  EXPECT_EQ(both.code, 0);
  EXPECT_EQ(both.out.find("{\"schema\": \"orrery.curves/1\""), 0u);
  EXPECT_NE(both.out.find("\"mine-all_reduce-16x2\""), both.out.npos);
  EXPECT_NE(both.out.find("\"mine-all_to_all-8x1\""), both.out.npos);
}

TEST(Import, TheInputIsNotOverwritten) {
  EXPECT_EQ(orrery("import nccl-tests run.json -o run.json").code, 2);
  EXPECT_EQ(orrery("import nccl-tests --help").code, 0);
  EXPECT_EQ(orrery("import nccl-tests").code, 2);
}

}  // namespace
}  // namespace orrery::import_test
