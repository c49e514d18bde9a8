// The other commands read what `orrery import` writes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
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
      "nvidia-smi-topo eight_gpus.txt --gpu h100-sxm --nic-bandwidth '400 Gb/s' --network "
      "ethernet");
}

TEST(Import, CurvesOfSeveralFilesAreOneDocument) {
  const Outcome both = orrery("import nccl-tests all_reduce_2_17.txt run.json --system mine");
  EXPECT_EQ(both.code, 0);
  EXPECT_EQ(both.out.find("{\"schema\": \"orrery.curves/1\""), 0u);
  EXPECT_NE(both.out.find("\"mine-all_reduce-16x2\""), both.out.npos);
  EXPECT_NE(both.out.find("\"mine-all_to_all-8x1\""), both.out.npos);
}

// A model named alone, a deployment file that names its checkpoint, the command of a server and a
// search take the formats in which the checkpoint is published.
TEST(Import, AllWaysToAskTakeTheFormatsOfTheCheckpoint) {
  struct Case {
    std::string checkpoint, model, gpus, formats;
    bool of_the_model;
  };
  const std::string file = testing::TempDir() + "orrery-formats-" + std::to_string(getpid());
  const auto write = [&](const std::string& text) { std::ofstream{file} << text; };
  for (const Case& one :
       {Case{"openai/gpt-oss-120b", "gpt-oss-120b", "1", "weights bf16, experts mxfp4, kv", true},
        {"deepseek-ai/DeepSeek-R1", "deepseek-v3", "8", "weights fp8_block, kv", true},
        {"MiniMaxAI/MiniMax-M2.5", "minimax-m2.5", "4", "weights fp8_block, kv", true},
        {"moonshotai/Kimi-K2-Thinking", "kimi-k2", "8", "weights bf16, experts int4_g32, kv",
         false},
        {"meta-llama/Llama-3.1-405B-FP8", "llama3.1-405b", "8",
         "weights fp8, attention bf16, ends_16bit 1, kv", false}}) {
    const std::string rest = " --system dgx-h200 --gpus " + one.gpus + " --step 1x100";
    const auto expect = [&](const Outcome& served) {
      EXPECT_NE(served.out.find(one.formats), served.out.npos) << one.checkpoint << served.out;
    };
    if (one.of_the_model) expect(orrery("serve --engine vllm --model " + one.model + rest));
    write(R"({"schema": "orrery.deployment/1", "engine": "vllm", "model": ")" + one.model +
          R"(", "checkpoint": ")" + one.checkpoint + R"("})");
    expect(orrery("serve --plan " + file + rest));
    write("vllm serve " + one.checkpoint + " --max-model-len 2048 -tp " + one.gpus + "\n");
    EXPECT_EQ(orrery("import server " + file + " -o " + file + ".json").code, 0);
    expect(orrery("serve --plan " + file + ".json" + rest));
  }
  fs::remove(file);
  fs::remove(file + ".json");
}

TEST(Import, TheInputIsNotOverwritten) {
  EXPECT_EQ(orrery("import nccl-tests run.json -o run.json").code, 2);
  EXPECT_EQ(orrery("import nccl-tests --help").code, 0);
  EXPECT_EQ(orrery("import nccl-tests").code, 2);
}

}  // namespace
}  // namespace orrery::import_test
