#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/core/catalog.hpp"
#include "sim/model/model.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::read_model_test {
namespace {

namespace fs = std::filesystem;
const std::string source = ORRERY_TEST_SOURCE;

TEST(ReadModel, ANameAFileOrAFolder) {
  ::setenv("ORRERY_DATA", source.c_str(), 1);
  const Place at{"command line", "--model"};
  EXPECT_EQ(read_model("gpt3-175b", at).layers, 96);
  const fs::path folder =
      fs::temp_directory_path() / ("orrery-model-" + std::to_string(::getpid()));
  fs::create_directories(folder / "Tiny-1B");
  EXPECT_EQ(error_text([&] { read_model(folder / "Tiny-1B", at); }),
            (folder / "Tiny-1B").string() +
                ": is a folder without a config.json; name a model file or a folder that holds a "
                "Hugging Face config.json");
  fs::copy_file(source + "/tests/unit/model/hf/llama3.2-1b.json",
                folder / "Tiny-1B" / "config.json");
  EXPECT_EQ(read_model(folder / "Tiny-1B", at).name, "Tiny-1B");
  EXPECT_EQ(read_model(folder / "Tiny-1B/", at).name, "Tiny-1B");
  EXPECT_EQ(read_model(folder / "Tiny-1B" / "config.json", at).name, "Tiny-1B");
  EXPECT_EQ(error_text([&] { read_model("gpt3-175", at); }),
            "command line: --model: 'gpt3-175' is not in the catalog; did you mean 'gpt3-175b'? (a "
            "path needs a '/' or ends in .json)");
  fs::remove_all(folder);
}

// Names of the hub mean the catalog's models where these have the same shape.
TEST(ReadModel, ANameOfTheHub) {
  ::setenv("ORRERY_DATA", source.c_str(), 1);
  const Place at{"command line", "--model"};
  EXPECT_EQ(read_model("meta-llama/Llama-3.1-8B", at).name, "llama3.1-8b");
  EXPECT_EQ(read_model("Qwen/Qwen3-32B", at).name, "qwen3-32b");
  EXPECT_EQ(error_text([&] { read_model("Qwen/Qwen3-32B-FP8", at); }),
            "command line: --model: 'Qwen/Qwen3-32B-FP8' names weights of fewer bits than "
            "'qwen3-32b'; write 'qwen3-32b'; a deployment takes the format as --weights");
  EXPECT_EQ(read_model("Llama-3.1-8B-Instruct", at).name, "llama3.1-8b");
  EXPECT_EQ(error_text([&] { read_model("Qwen/Qwen3-9B", at); }),
            "command line: --model: 'Qwen/Qwen3-9B' is neither a file nor in the catalog; the "
            "nearest is 'qwen3-4b'; fetch its config.json and name the file, as nothing is "
            "downloaded");
  EXPECT_EQ(error_text([&] { read_model("acme/zyxwvut", at); }),
            "command line: --model: 'acme/zyxwvut' is neither a file nor in the catalog; fetch its "
            "config.json and name the file, as nothing is downloaded");
}

TEST(ReadModel, EveryCatalogFileReadsAndIsNamedLikeItself) {
  ::setenv("ORRERY_DATA", source.c_str(), 1);
  const std::vector<std::string> names = list_catalog("workloads/models");
  EXPECT_GE(names.size(), 41u);
  for (const std::string& name : names) {
    const Model model = read_model(name, {});
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.source.empty()) << name;
  }
}

TEST(ReadModel, EveryPublishedRunsModelReads) {
  int cases = 0;
  for (const auto& file : fs::directory_iterator{source + "/tests/validation/training"})
    for (const JsonValue& run : JsonValue::read_file(file.path().string()).elements()) {
      const JsonValue stated = run.at("model");
      const Model model = stated.is_object() ? parse_model(stated) : read_model(stated.text(), {});
      EXPECT_EQ(model.name, stated.is_object() ? stated.at("name").text() : stated.text());
      EXPECT_GT(count_parameters(model).total, 0);
      ++cases;
    }
  EXPECT_GE(cases, 577);  // As many as there were when the folder was made.
}

// Runs that name a published model must mean it, whatever they leave out.
TEST(ReadModel, SizesAndANameGiveThePublishedTotals) {
  const auto total_of = [](const std::string& file, const std::string& name) -> std::int64_t {
    for (const JsonValue& run :
         JsonValue::read_file(source + "/tests/validation/training/" + file).elements())
      if (run.at("model").at("name").text() == name)
        return count_parameters(parse_model(run.at("model"))).total;
    return 0;
  };
  EXPECT_EQ(total_of("mbridge.json", "Qwen3_30B_a3B"), 30'532'122'624);
  EXPECT_EQ(total_of("mbridge.json", "Qwen3_235B_a22B"), 235'093'634'560);
  EXPECT_EQ(total_of("mbridge.json", "DeepSeekV3"), 671'026'419'200);
  EXPECT_EQ(total_of("mbridge.json", "GPT OSS 120B"), 116'829'156'672);
  EXPECT_EQ(total_of("torchtitan.json", "Llama3.1-405B"), 405'853'388'800);
  EXPECT_EQ(total_of("mbridge.json", "Kimi_K2"), 1'026'408'232'448);
  // 12 * 92 * 10240^2 and two tables of 131,072 * 10240: 118.4e9. With one table it were 117.1e9.
  EXPECT_NEAR(static_cast<double>(total_of("megatron.json", "GPT-119B")), 118.5e9, 0.5e9);
}

TEST(ReadModel, TheExamplesInTheGuideAreRead) {
  std::ostringstream text;
  text << std::ifstream{source + "/docs/guides/own-models-and-systems.md"}.rdbuf();
  const std::string guide = text.str();
  const std::string fence = "```json\n{\"schema\": \"orrery.model/1\"";
  int examples = 0;
  for (std::size_t at = guide.find(fence); at != guide.npos; at = guide.find(fence, at + 1)) {
    const std::size_t begin = guide.find('{', at);
    const std::string example = guide.substr(begin, guide.find("```", begin) - begin);
    EXPECT_NO_THROW(parse_model(JsonValue::parse(example, "guide"))) << example;
    ++examples;
  }
  EXPECT_GE(examples, 1);
}

}  // namespace
}  // namespace orrery::read_model_test
