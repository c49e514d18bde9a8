#include <gtest/gtest.h>

#include "sim/model/model_name.hpp"

namespace orrery::named_model_test {
namespace {

TEST(NamedModel, NamesOfTheHub) {
  const auto of = [](const std::string& name) { return catalog_model(name).value_or("none"); };
  EXPECT_EQ(of("meta-llama/Llama-3.1-8B-Instruct"), "llama3.1-8b");
  EXPECT_EQ(of("meta-llama/Meta-Llama-3-70B"), "llama3-70b");
  EXPECT_EQ(of("meta-llama/Llama-2-7b-chat-hf"), "llama2-7b");
  EXPECT_EQ(of("/models/Qwen3-30B-A3B-Instruct-2507/"), "qwen3-30b-a3b");
  EXPECT_EQ(of("mistralai/Mixtral-8x7B-v0.1"), "mixtral-8x7b");
  EXPECT_EQ(of("openai-community/gpt2"), "gpt2");
  EXPECT_EQ(of("deepseek-ai/DeepSeek-V3-0324"), "deepseek-v3");
  EXPECT_EQ(of("lmsys/vicuna-7b-v1.5"), "llama2-7b");
  EXPECT_EQ(of("facebook/opt-1.3b"), "opt-1.3b");
  EXPECT_EQ(of("HuggingFaceTB/SmolLM2-360M-Instruct"), "smollm2-360m");
  EXPECT_EQ(of("mistralai/Mistral-7B-v0.1"), "mistral-7b");
  EXPECT_EQ(of("mistralai/Mistral-7B-Instruct-v0.3"), "mistral-7b-v0.3");
  EXPECT_EQ(of("Qwen/Qwen3-1.7B-Base"), "qwen3-1.7b");
}

// Another size or generation is another model.
TEST(NamedModel, OtherModelsAreNone) {
  for (const char* name : {"gpt2-xl", "deepseek-ai/DeepSeek-V3.9", "Qwen/Qwen3-8B-VL", "", "/",
                           "meta-llama/Llama-3.1-8B-Vision", "instruct",
                           "mistralai/Mistral-7B-Instruct-v0.2", "facebook/opt-350m"})
    EXPECT_FALSE(catalog_model(name)) << name;
}

}  // namespace
}  // namespace orrery::named_model_test
