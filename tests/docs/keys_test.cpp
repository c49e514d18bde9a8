// docs/reference/json.md names every key of every object that the program prints, but for lines of
// a breakdown, which docs/reference/output.md explains.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::keys_test {
namespace {

using nlohmann::json;

const std::string source = ORRERY_TEST_SOURCE;

bool belongs_to_a_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::set<std::string> words_of_page() {
  std::ostringstream text;
  for (const char* page : {"/docs/reference/json.md", "/docs/reference/output.md"})
    text << std::ifstream{source + page}.rdbuf();
  std::set<std::string> words;
  std::string word;
  for (const char c : text.str() + " ") {
    if (belongs_to_a_word(c)) {
      word += c;
    } else {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

// Pages of their own describe the contents of inputs; peers' errors have the names of programs.
void collect_keys(const json& value, std::set<std::string>& keys) {
  if (value.is_object())
    for (const auto& [key, inside] : value.items()) {
      keys.insert(key);
      if (key == "inputs")
        for (const auto& [group, unused] : inside.items()) keys.insert(group);
      else if (key != "peer_errors")
        collect_keys(inside, keys);
    }
  if (value.is_array())
    for (const json& inside : value) collect_keys(inside, keys);
}

// "attention_forward" of a critical path: the page names parts and phases apart.
std::string without_phase(const std::string& key) {
  for (const char* phase : {"_forward", "_backward", "_recomputed"})
    if (key.ends_with(phase)) return key.substr(0, key.rfind('_'));
  return key;
}

TEST(OutputPage, NamesEveryKey) {
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  std::ofstream{where + "/own.json"}
      << R"({"schema": "orrery.calibration/1", "gpu": "h100-sxm", "sources": [{"file": "a.log"}],
             "collectives": {"schema": "orrery.curves/1", "curves": [
               {"id": "a", "source": {"title": "a log"}, "collective": "all_reduce", "ranks": 8,
                "nodes": 1, "columns": ["bytes", "time_us"], "points": [[1048576, 50]]}]}})";
  const std::string plan =
      "--model mixtral-8x7b --system dgx-h100 --gpus 16 --gbs 32 --tp 2 --ep 8 --pp 2 --seq 4096 ";
  const std::string search =
      "search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --fix seq=2048 --top 2 ";
  const std::string commands[] = {
      "estimate " + plan + "--routing zipf:1 --tokens 1T --calibration own.json",
      "estimate " + plan + "--simulator simgrid",
      "estimate --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --pp 4 --tp 2 --schedule " +
          source + "/workloads/schedules/zb-v-4x8.txt",
      "estimate --model nemotron-3-nano-30b-a3b --system dgx-h200 --gpus 8 --gbs 8 --ep 8 "
      "--seq 4096",
      "kernel step --model nemotron-3-nano-30b-a3b --system dgx-h200 --gpus 8 --gbs 8 --ep 8 "
      "--seq 4096",
      search,
      search + "--time-limit 0.001s",
      "buy --model llama3-8b --tokens 1T --system dgx-h100,dgx-a100-superpod --gpus 16,2048 "
      "--max-batch-tokens 1M --fix cp=1",
      "compare " + plan + " '--tp 1' '--ep 4'",
      "collective all_reduce --system dgx-h100 --gpus 16",
      "collective " + source + "/workloads/collectives/three_rank_ring.json --system dgx-h100",
      "validate " + source + "/tests/validation/training/korthikanti.json",
      "validate " + source + "/tests/validation/runs/goodput.json",
      "run --model llama3-8b --system dgx-h100 --gpus 16 --gbs 32 --tp 2 --tokens 1T --slow 5% "
      "--replicates 20",
      "place-experts " + source + "/workloads/routing/example.jsonl --ep 4",
  };
  const std::set<std::string> words = words_of_page();
  for (const std::string& command : commands) {
    const Outcome outcome = run_orrery(command + " --json", where);
    EXPECT_EQ(outcome.code, 0) << command;
    std::set<std::string> keys;
    collect_keys(json::parse(outcome.out, nullptr, false), keys);
    EXPECT_GT(keys.size(), 5u) << command;
    for (const std::string& key : keys)
      EXPECT_TRUE(words.contains(key) || words.contains(without_phase(key)))
          << "no page names " << key << " of " << command;
  }
}

}  // namespace
}  // namespace orrery::keys_test
