#include "sim/formats/servers/checkpoint.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sim/core/catalog.hpp"
#include "sim/core/error.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery::checkpoint_test {
namespace {

using enum Dtype;

// "fp8 attention bf16 experts fp8 ends 1 kv fp8"
std::string words_of(const CheckpointFormats& formats) {
  return name(formats.weights) + " attention " + name(formats.attention) + " experts " +
         name(formats.experts) + " ends " + std::to_string(formats.ends_16bit) + " kv " +
         (formats.kv ? name(*formats.kv) : "-");
}

CheckpointFormats formats_of(const std::string& name, const std::string& catalog_name) {
  const Model model = read_model(catalog_name, {"", ""});
  return formats_of_name(name, &model);
}

TEST(CheckpointName, SaysTheFormat) {
  struct Case {
    const char* name;
    const char* model;
    std::optional<Dtype> weights;
  };
  for (const Case& one :
       {Case{"Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-32B", fp8_block},
        {"nvidia/Llama-3.1-70B-Instruct-FP8", "nvidia/Llama-3.1-70B-Instruct", fp8},
        {"nvidia/DeepSeek-R1-0528-FP4", "nvidia/DeepSeek-R1-0528", nvfp4},
        {"RedHatAI/Qwen3-8B-NVFP4A16", "RedHatAI/Qwen3-8B", nvfp4a16},
        {"RedHatAI/Qwen3-8B-FP8-dynamic", "RedHatAI/Qwen3-8B", fp8},
        {"Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B-Instruct", int4},
        {"Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen/Qwen2.5-72B-Instruct", int4},
        {"me/Kimi-K2-W4A16-G32", "me/Kimi-K2", int4_g32},
        {"unsloth/Qwen3-8B-bnb-4bit", "unsloth/Qwen3-8B", nf4_dq},
        {"a/b-FP8x", "a/b-FP8x", std::nullopt}}) {
    const CheckpointName read = read_checkpoint_name(one.name);
    EXPECT_EQ(read.model, one.model);
    EXPECT_EQ(read.weights, one.weights) << one.name;
  }
}

TEST(CheckpointFormats, OfNamesThatPublishersGave) {
  struct Case {
    const char* name;
    const char* model;
    const char* words;
  };
  for (const Case& one : {
           Case{"moonshotai/Kimi-K2-Thinking", "kimi-k2",
                "bf16 attention bf16 experts int4_g32 ends 0 kv -"},
           {"moonshotai/Kimi-K2-Instruct", "kimi-k2",
            "fp8_block attention fp8_block experts fp8_block ends 0 kv -"},
           {"meta-llama/Llama-3.1-405B-Instruct-FP8", "llama3.1-405b",
            "fp8 attention bf16 experts fp8 ends 1 kv -"},
           {"meta-llama/Meta-Llama-3.1-405B-FP8/", "llama3.1-405b",
            "fp8 attention bf16 experts fp8 ends 1 kv -"},
           {"meta-llama/Llama-3.1-405B-Instruct", "llama3.1-405b",
            "bf16 attention bf16 experts bf16 ends 0 kv -"},
           {"openai/gpt-oss-120b", "gpt-oss-120b", "bf16 attention bf16 experts mxfp4 ends 0 kv -"},
           {"nvidia/Llama-3.1-8B-Instruct-FP8", "llama3.1-8b",
            "fp8 attention fp8 experts fp8 ends 0 kv fp8"},
           {"nvidia/DeepSeek-V3.1-NVFP4", "deepseek-v3",
            "nvfp4 attention bf16 experts nvfp4 ends 0 kv fp8"},
           {"nvidia/Qwen3.6-27B-NVFP4", "qwen3.5-27b",
            "nvfp4a16 attention fp8 experts bf16 ends 0 kv fp8"},
           {"nvidia/Qwen3.6-35B-A3B-NVFP4", "qwen3.5-35b-a3b",
            "nvfp4a16 attention fp8 experts nvfp4a16 ends 0 kv fp8"},
           {"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama3.1-70b",
            "fp8 attention fp8 experts fp8 ends 0 kv -"},
       })
    EXPECT_EQ(words_of(formats_of(one.name, one.model)), one.words) << one.name;
  EXPECT_EQ(formats_of("moonshotai/Kimi-K2-Thinking", "kimi-k2").max_length, 262144);
}

// A deployment that states no format has that of the checkpoint that its publisher names as the
// model, which an imported server command has, too: 16 bits but for these.
TEST(CheckpointFormats, ADeploymentHasThoseOfItsPublisher) {
  const std::map<std::string, std::pair<const char*, const char*>> quantised{
      {"gpt-oss-20b", {"openai/gpt-oss-20b", "bf16 attention bf16 experts mxfp4 ends 0 kv -"}},
      {"gpt-oss-120b", {"openai/gpt-oss-120b", "bf16 attention bf16 experts mxfp4 ends 0 kv -"}},
      {"deepseek-v3",
       {"deepseek-ai/DeepSeek-R1", "fp8_block attention fp8_block experts fp8_block ends 0 kv -"}},
      {"deepseek-v3.2",
       {"deepseek-ai/DeepSeek-V3.2",
        "fp8_block attention fp8_block experts fp8_block ends 0 kv -"}},
      {"deepseek-v4-flash",
       {"deepseek-ai/DeepSeek-V4-Flash",
        "fp8_block attention fp8_block experts mxfp4 ends 0 kv -"}},
      {"deepseek-v4-pro",
       {"deepseek-ai/DeepSeek-V4-Pro", "fp8_block attention fp8_block experts mxfp4 ends 0 kv -"}},
      {"kimi-k2",
       {"moonshotai/Kimi-K2-Base", "fp8_block attention fp8_block experts fp8_block ends 0 kv -"}},
      {"minimax-m2.5",
       {"MiniMaxAI/MiniMax-M2.5", "fp8_block attention fp8_block experts fp8_block ends 0 kv -"}}};
  for (const std::string& name : list_catalog("workloads/models")) {
    const Model model = read_model(name, {"", ""});
    const CheckpointFormats served = checkpoint_of(model, {});
    const auto known = quantised.find(name);
    EXPECT_EQ(served.is_quantised(), known != quantised.end()) << name;
    EXPECT_EQ(published_note(model, {}).empty(), known == quantised.end()) << name;
    if (known == quantised.end()) continue;
    EXPECT_EQ(words_of(served), known->second.second);
    EXPECT_EQ(words_of(formats_of(known->second.first, name)), known->second.second);
  }
}

TEST(CheckpointFormats, StatedOnesWin) {
  const auto served = [](const char* model, DeploymentRequest request) {
    return words_of(checkpoint_of(read_model(model, {"", ""}), request));
  };
  DeploymentRequest request;
  request.weights = fp8;
  EXPECT_EQ(served("gpt-oss-120b", request), "fp8 attention fp8 experts fp8 ends 0 kv -");
  request.experts = int4;
  EXPECT_EQ(served("gpt-oss-120b", request), "fp8 attention fp8 experts int4 ends 0 kv -");
  request.weights.reset();
  EXPECT_EQ(served("deepseek-v3", request),
            "fp8_block attention fp8_block experts int4 ends 0 kv -");
  request.attention = bf16;
  EXPECT_EQ(served("deepseek-v3", request), "fp8_block attention bf16 experts int4 ends 0 kv -");
}

// A dense model of eight layers and one with experts, with these keys in their config.json.
std::string dense(const std::string& keys) {
  return R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
             "num_attention_heads": 4, "num_hidden_layers": 8, "vocab_size": 100,
             "max_position_embeddings": 4096)" +
         keys + "}";
}
std::string experts(const std::string& keys) {
  return R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 128,
             "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2,
             "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
             "num_hidden_layers": 8, "vocab_size": 100, "max_position_embeddings": 4096)" +
         keys + "}";
}

std::string formats_in(const std::string& config, const std::string& beside = "") {
  const Model model = parse_model(JsonValue::parse(config, "m/config.json"));
  std::optional<JsonValue> file;
  if (!beside.empty()) file = JsonValue::parse(beside, "m/hf_quant_config.json");
  const auto formats = formats_of_files(model, file);
  return formats ? words_of(*formats) : "none";
}

TEST(CheckpointFormats, OfItsOwnFiles) {
  const auto quantised = [](const std::string& keys) {
    return R"(, "quantization_config": {)" + keys + "}";
  };
  EXPECT_EQ(formats_in(dense("")), "none");
  EXPECT_EQ(
      formats_in(dense(quantised(R"("quant_method": "fp8", "weight_block_size": [128, 128])"))),
      "fp8_block attention fp8_block experts bf16 ends 0 kv -");
  EXPECT_EQ(formats_in(dense(quantised(R"("quant_method": "gptq", "bits": 8)"))),
            "int8 attention int8 experts bf16 ends 0 kv -");
  EXPECT_EQ(formats_in(dense(quantised(R"("quant_method": "awq", "bits": 4, "group_size": 32)"))),
            "int4_g32 attention int4_g32 experts bf16 ends 0 kv -");
  // Attention by a regular expression; keys and values in fp8.
  EXPECT_EQ(formats_in(dense(quantised(
                R"("quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*"],
                   "kv_cache_scheme": {"num_bits": 8, "type": "float"},
                   "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float",
                                                              "strategy": "channel"}}})"))),
            "fp8 attention bf16 experts bf16 ends 0 kv fp8");
  // Experts alone, the rest by name and by glob.
  EXPECT_EQ(formats_in(experts(quantised(
                R"("quant_method": "compressed-tensors", "ignore": ["re:.*self_attn.*"],
                   "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int",
                                                              "group_size": 32}}})"))),
            "bf16 attention bf16 experts int4_g32 ends 0 kv -");
  EXPECT_EQ(formats_in(experts(quantised(
                R"("quant_method": "mxfp4",
                   "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"])"))),
            "bf16 attention bf16 experts mxfp4 ends 0 kv -");
  // NVIDIA's second file, alone and beside.
  const std::string nvidias =
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4",
          "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}})";
  EXPECT_EQ(formats_in(experts(""), nvidias), "nvfp4 attention nvfp4 experts nvfp4 ends 0 kv fp8");
  EXPECT_EQ(formats_in(experts(quantised(R"("quant_method": "modelopt", "quant_algo": "NVFP4")")),
                       nvidias),
            "nvfp4 attention nvfp4 experts nvfp4 ends 0 kv fp8");
}

// Weights in fp4 beside another operand in 16 bits are not those of which both are quantised.
TEST(CheckpointFormats, WeightsAloneInFp4) {
  const auto compressed = [](const std::string& other) {
    return formats_in(dense(
        R"(, "quantization_config": {"quant_method": "compressed-tensors",
              "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float",
                                                         "group_size": 16})" +
        other + "}}}"));
  };
  EXPECT_EQ(compressed(""), "nvfp4a16 attention nvfp4a16 experts bf16 ends 0 kv -");
  EXPECT_EQ(compressed(R"(, "input_activations": null)"),
            "nvfp4a16 attention nvfp4a16 experts bf16 ends 0 kv -");
  EXPECT_EQ(compressed(R"(, "input_activations": {"num_bits": 4, "type": "float"})"),
            "nvfp4 attention nvfp4 experts bf16 ends 0 kv -");
  EXPECT_EQ(formats_in(dense(R"(, "quantization_config": {"quant_method": "modelopt",
                                  "quant_algo": "W4A16_NVFP4"})")),
            "nvfp4a16 attention nvfp4a16 experts bf16 ends 0 kv -");
}

// nvidia/Qwen3.6-27B-NVFP4 and Nemotron 3 in NVFP4 name the format of each module.
TEST(CheckpointFormats, OfEachModule) {
  const auto mixed = [](const std::string& layers) {
    return R"(, "quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8",
                "quant_algo": "MIXED_PRECISION", "quantized_layers": {)" +
           layers + "}}";
  };
  const std::string fp8 = R"(": {"quant_algo": "FP8"})",
                    fp4 = R"(": {"quant_algo": "W4A16_NVFP4", "group_size": 16})";
  EXPECT_EQ(
      formats_in(dense(mixed(R"("model.language_model.layers.0.linear_attn.out_proj)" + fp8 +
                             R"(, "model.language_model.layers.3.self_attn.q_proj)" + fp8 +
                             R"(, "model.language_model.layers.0.mlp.down_proj)" + fp4 +
                             R"(, "mtp.layers.0.mlp.down_proj)" + fp8 + R"(, "lm_head)" + fp8))),
      "nvfp4a16 attention fp8 experts bf16 ends 0 kv fp8");
  EXPECT_EQ(formats_in(experts(mixed(R"("backbone.layers.0.mixer.in_proj)" + fp8 +
                                     R"(, "backbone.layers.1.mixer.experts.0.up_proj)" + fp4 +
                                     R"(, "backbone.layers.1.mixer.experts.1.up_proj)" + fp4 +
                                     R"(, "backbone.layers.3.mixer.experts.0.up_proj)" + fp8))),
            "fp8 attention fp8 experts nvfp4a16 ends 0 kv fp8");
  // What no module is named of stays in 16 bits.
  EXPECT_EQ(formats_in(experts(mixed(R"("model.layers.0.mlp.experts)" + fp4))),
            "bf16 attention bf16 experts nvfp4a16 ends 0 kv fp8");
  try {
    formats_in(dense(mixed("")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "m/config.json: /quantization_config: has the quant_algo MIXED_PRECISION without "
                 "quantized_layers; say the formats: --weights, --attention and --experts; orrery "
                 "import: add the modules of hf_quant_config.json, or --set quantization=fp8");
  }
  EXPECT_THROW(formats_in(dense(mixed(R"("model.layers.0.mlp.down_proj": "FP8")"))), Error);
  // MLPs of two layers at each end of eight are not named.
  std::string inner;
  for (int layer = 2; layer < 6; ++layer)
    inner += std::string{layer > 2 ? ", " : ""} + R"("model.layers.)" + std::to_string(layer) +
             ".mlp.down_proj" + fp4;
  EXPECT_EQ(formats_in(dense(mixed(inner))), "nvfp4a16 attention bf16 experts bf16 ends 2 kv fp8");
}

// Beside config.json lies hf_quant_config.json, which is read where the other says nothing.
TEST(CheckpointFormats, OfTheCacheAlone) {
  const auto beside = [](const std::string& file) {
    return formats_in(dense(R"(, "hf_quant_config": )" + file));
  };
  EXPECT_EQ(beside(R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})"),
            "bf16 attention bf16 experts bf16 ends 0 kv fp8");
  EXPECT_EQ(beside(R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}})"),
            "nvfp4 attention nvfp4 experts bf16 ends 0 kv nvfp4");
  for (const char* file : {"[]", R"({"quantization": null})", R"({"quantization": "FP8"})", "{}"})
    EXPECT_THROW(beside(file), Error) << file;
}

// fbgemm_fp8 lists each module of attention, and the MLPs of the first and the last layers.
TEST(CheckpointFormats, LayersAtTheEndsStayIn16Bits) {
  for (const int ends : {0, 1, 3}) {
    std::string list = R"("lm_head")";
    for (int layer = 0; layer < 8; ++layer) {
      const std::string at = R"(, "model.layers.)" + std::to_string(layer);
      for (const char* one : {"q", "k", "v", "o"}) list += at + ".self_attn." + one + R"(_proj")";
      if (layer < ends || layer >= 8 - ends)
        for (const char* one : {"gate", "up", "down"}) list += at + ".mlp." + one + R"(_proj")";
    }
    EXPECT_EQ(formats_in(dense(R"(, "quantization_config": {"quant_method": "fbgemm_fp8",
                                    "modules_to_not_convert": [)" +
                               list + "]}")),
              "fp8 attention bf16 experts bf16 ends " + std::to_string(ends) + " kv -");
  }
}

TEST(CheckpointFormats, AWayThatIsNotKnownIsRefused) {
  try {
    formats_in(dense(R"(, "quantization_config": {"quant_method": "aqlm"})"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "m/config.json: /quantization_config: quantises in a way that is not known here: "
                 "aqlm; say the nearest format: --weights fp8; orrery import: remove it, "
                 "--set quantization=fp8");
  }
}

// RedHatAI's W8A8 has eight bits as W8A16 has, whatever multiplies them.
TEST(CheckpointNames, EightBitsOfWeightsAndActivationsAreInt8) {
  for (const char* name : {"RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8",
                           "RedHatAI/Qwen2.5-72B-Instruct-quantized.w8a8", "org/Qwen3-8B-W8A8"})
    EXPECT_EQ(read_checkpoint_name(name).weights, Dtype::int8) << name;
}

}  // namespace
}  // namespace orrery::checkpoint_test
