// A result needs nothing but itself: what is no part of the catalog is read back from it, and what
// the catalog says today does not change it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::stand_alone_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

// A copy of a file of the project in which one text is another.
void copy_with(const std::string& from, const fs::path& to, const std::string& old,
               const std::string& fresh) {
  std::string text = contents(fs::path{ORRERY_TEST_SOURCE} / from);
  const std::size_t at = text.find(old);
  ASSERT_NE(at, text.npos) << from;
  std::ofstream{to} << text.replace(at, old.size(), fresh);
}

std::string without_wall_time(std::string text) {
  const std::size_t at = text.find("\"simulation_wall_s\"");
  if (at != text.npos) text.erase(at, text.find('\n', at) - at);
  return text;
}

// Results are written in one folder, of the user's own files, and read in another.
class StandAlone : public testing::Test {
 protected:
  void SetUp() override {
    copy_with("workloads/models/mixtral-8x7b.json", own("model.json"), "mixtral-8x7b", "mine");
    copy_with("workloads/software/megatron-core.json", own("software.json"),
              "\"name\": \"megatron-core\"", "\"name\": \"my-fork\"");
    copy_with("topologies/gpus/h100-sxm.json", own("gpu.json"), "h100-sxm", "my-gpu");
    copy_with("topologies/systems/dgx-h100.json", own("named.json"), "dgx-h100", "my-cluster");
    std::string system = contents(own("named.json"));
    const std::size_t gpu = system.find("h100-sxm");
    std::ofstream{own("system.json")} << system.replace(gpu, 8, "./gpu.json");
    std::ofstream{own("measured.json")} <<
        R"({"schema": "orrery.calibration/1", "gpu": "my-gpu", "sources": [{"file": "a.log"}],
            "collectives": {"schema": "orrery.curves/1", "curves": [
              {"id": "a", "source": {"title": "a log"}, "collective": "all_reduce", "ranks": 8,
               "nodes": 1, "columns": ["bytes", "time_us"], "points": [[1048576, 50]]}]}})";
  }

  fs::path own(const std::string& name) const { return own_.path() / name; }
  fs::path there(const std::string& name) const { return there_.path() / name; }
  Outcome in_own(const std::string& words) const { return run_orrery(words, own_.path().string()); }
  Outcome elsewhere(const std::string& words) const {
    return run_orrery(words, there_.path().string());
  }
  // What `words` print is all that the other folder gets.
  std::string hand_over(const std::string& words, const std::string& name) const {
    const Outcome outcome = in_own(words);
    EXPECT_EQ(outcome.code, 0) << words;
    std::ofstream{there(name)} << outcome.out;
    return outcome.out;
  }

  TemporaryFolder own_, there_;
};

TEST_F(StandAlone, AResultHoldsModelSystemSoftwareAndCalibration) {
  const std::string result = hand_over(
      "estimate --model model.json --system system.json --software ./software.json --calibration "
      "measured.json --gpus 64 --gbs 256 --tp 2 --ep 8 --pp 4 --seq 4096 --json",
      "r.json");
  const Outcome again = elsewhere("estimate --plan r.json --json");
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(without_wall_time(again.out), without_wall_time(result));
  EXPECT_EQ(elsewhere("export megatron --plan r.json").code, 0);
  EXPECT_EQ(elsewhere("compare r.json '--plan r.json --tp 4'").code, 0);
}

// A plan may hold its model as an object, as imported runs do: an option still replaces it.
TEST_F(StandAlone, AnOptionReplacesAnInlineModel) {
  const nlohmann::json plan{
      {"model", nlohmann::json::parse(contents(own("model.json")))}, {"gpus", 64}, {"gbs", 256}};
  std::ofstream{there("p.json")} << plan;
  for (const std::string command : {"estimate", "export megatron", "kernel step"}) {
    const Outcome replaced =
        elsewhere(command + " --plan p.json --system dgx-h100 --model llama3-8b");
    EXPECT_EQ(replaced.code, 0) << command;
  }
  EXPECT_EQ(elsewhere("estimate --plan p.json --system dgx-h100 --model llama3-8b").out,
            elsewhere("estimate --model llama3-8b --system dgx-h100 --gpus 64 --gbs 256").out);
}

TEST_F(StandAlone, WhatItHoldsIsAFileOfTheSameFormat) {
  hand_over(
      "estimate --model model.json --system system.json --gpus 16 --gbs 64 --tp 8 --ep 8 "
      "--seq 4096 --json",
      "r.json");
  const nlohmann::json inputs = nlohmann::json::parse(contents(there("r.json")))["inputs"];
  std::ofstream{there("m.json")} << inputs["models"]["mine"];
  std::ofstream{there("s.json")} << inputs["systems"]["my-cluster"];
  EXPECT_EQ(elsewhere("check --model m.json").out, in_own("check --model model.json").out);
  EXPECT_EQ(elsewhere("check --system s.json").out, in_own("check --system system.json").out);
}

TEST_F(StandAlone, AConfigOfHuggingFaceKeepsItsName) {
  fs::create_directory(own("Llama-Mine"));
  std::ofstream{own("Llama-Mine/config.json")} <<
      R"({"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "vocab_size": 32000,
          "num_attention_heads": 16, "intermediate_size": 8192, "max_position_embeddings": 4096})";
  const std::string result = hand_over(
      "estimate --model ./Llama-Mine --system dgx-h100 --gpus 8 --gbs 64 --json", "r.json");
  EXPECT_EQ(without_wall_time(elsewhere("estimate --plan r.json --json").out),
            without_wall_time(result));
}

TEST_F(StandAlone, ASearchHoldsThemOnceForAllItsPlans) {
  hand_over(
      "search --model model.json --system system.json --gpus 16 --gbs 64 --fix seq=4096 "
      "--fix pp=2 --fix ep=8 --fix software=./software.json --top 2 --json -j 1",
      "best.json");
  const std::string best = contents(there("best.json"));
  EXPECT_EQ(best.find("orrery.model/1"), best.rfind("orrery.model/1"));
  EXPECT_EQ(elsewhere("export megatron --plan best.json").code, 0);
  EXPECT_EQ(elsewhere("compare best.json '--plan best.json --tp 8'").code, 0);
  EXPECT_NE(elsewhere("estimate --plan best.json").out.find("\nmine on my-cluster, 16 GPUs\n"),
            std::string::npos);
}

TEST_F(StandAlone, AResultHoldsItsSchedule) {
  const std::string plan = " --model llama3-8b --system dgx-h100 --gpus 8 --tp 2 --pp 4 --gbs 8 ";
  std::ofstream{own("order.txt")} << in_own("schedule 1f1b --pp 4 --microbatches 8").out;
  const std::string result = hand_over("estimate --schedule ./order.txt --json" + plan, "r.json");
  EXPECT_EQ(without_wall_time(elsewhere("estimate --plan r.json --json").out),
            without_wall_time(result));
}

TEST_F(StandAlone, ACatalogThatChangedSinceIsReportedAndNotFollowed) {
  const std::string plan = " --system dgx-h100 --gpus 8 --gbs 8 --seq 4096 ";
  copy_with("workloads/models/llama3-8b.json", own("llama3-8b.json"), "\"layers\": 32",
            "\"layers\": 30");
  const std::string result = hand_over("estimate --model llama3-8b.json --json" + plan, "r.json");
  EXPECT_EQ(without_wall_time(elsewhere("estimate --plan r.json --json").out),
            without_wall_time(result));
  const Outcome note =
      run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' estimate --plan r.json 2>&1 >/dev/null)",
                there_.path().string());
  EXPECT_EQ(note.out,
            "orrery: note: the model 'llama3-8b' is taken as the plan file holds it; that of the "
            "catalog differs (--model llama3-8b takes it)\n");
}

}  // namespace
}  // namespace orrery::stand_alone_test
