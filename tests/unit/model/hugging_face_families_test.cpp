#include "sim/model/hugging_face_families.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face.hpp"
#include "sim/model/model_name.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::hugging_face_families_test {
namespace {

Model parse(const std::string& text) { return parse_model(JsonValue::parse(text, "config.json")); }

struct Published {
  std::string name;        // On Hugging Face's hub.
  std::int64_t total;      // As `source` says, to the last parameter.
  std::int64_t uncounted;  // What that total counts and this project does not.
  std::string source;
  std::string config;  // The values of its config.json that describe a shape.
};

// The hub's sum over safetensors, of the model or of its chat variant, in a copy of 2026-04:
// github.com/tetrabit/llmfit, llmfit-core/data/hf_models.json at 82b3e1c4.
const std::string hub = "hub";
// What transformers' modeling class allocates (version 5.2.0.dev0) with a configuration that was
// read in full: the class's own defaults, or the file in the repository named.
const std::string by_class = "class, ";

const std::vector<Published>& published() {
  static const std::vector<Published> models{
      {"bigcode/starcoder2-7b", 7'173'923'840, 0, hub,
       R"({"model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432,
          "num_hidden_layers": 32, "num_attention_heads": 36, "num_key_value_heads": 4,
          "vocab_size": 49152, "max_position_embeddings": 16384, "sliding_window": 4096,
          "use_bias": true})"},
      {"stabilityai/stablelm-2-1_6b", 1'644'515'328, 0, hub,
       R"({"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632,
          "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
          "vocab_size": 100352, "use_qkv_bias": true, "use_parallel_residual": false,
          "partial_rotary_factor": 0.25})"},
      {"internlm/internlm2-7b", 7'737'708'544, 0, hub,
       R"({"model_type": "internlm2", "bias": false, "hidden_size": 4096,
          "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "vocab_size": 92544, "max_position_embeddings": 32768})"},
      {"internlm/internlm2-20b", 19'861'149'696, 0, hub,
       R"({"model_type": "internlm2", "bias": false, "hidden_size": 6144,
          "intermediate_size": 16384, "num_hidden_layers": 48, "num_attention_heads": 48,
          "num_key_value_heads": 8, "vocab_size": 92544, "max_position_embeddings": 32768})"},
      {"zai-org/GLM-4-9B-0414", 9'400'279'040, 0, by_class + "defaults",
       R"({"model_type": "glm4", "hidden_size": 4096, "intermediate_size": 13696,
          "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2,
          "head_dim": 128, "vocab_size": 151552, "attention_bias": true})"},
      {"zai-org/glm-4-9b-chat-hf", 9'399'951'360, 0, hub,
       R"({"model_type": "glm", "hidden_size": 4096, "intermediate_size": 13696,
          "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2,
          "head_dim": 128, "vocab_size": 151552, "attention_bias": true})"},
      {"baidu/ERNIE-4.5-21B-A3B-PT", 21'825'437'888, 0, by_class + "defaults",
       R"({"model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288,
          "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
          "vocab_size": 103424, "moe_num_experts": 64, "moe_k": 6,
          "moe_num_shared_experts": 2, "moe_intermediate_size": 1536,
          "moe_layer_start_index": 1, "moe_layer_end_index": 28, "moe_layer_interval": 1,
          "use_bias": false})"},
      {"baidu/ERNIE-4.5-0.3B-PT", 360'748'032, 0, by_class + "defaults",
       R"({"model_type": "ernie4_5", "hidden_size": 1024, "intermediate_size": 3072,
          "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2,
          "head_dim": 128, "vocab_size": 103424, "use_bias": false})"},
      {"mosaicml/mpt-7b", 6'649'286'656, 0, by_class + "intel/intel-extension-for-pytorch",
       R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
          "expansion_ratio": 4, "vocab_size": 50432, "max_seq_len": 2048, "no_bias": true,
          "attn_config": {"alibi": true, "attn_type": "multihead_attention", "attn_pdrop":
          0, "alibi_bias_max": 8, "prefix_lm": false, "qk_ln": false, "attn_impl":
          "torch"}})"},
      {"tencent/Hunyuan-A13B-Instruct", 80'393'183'232, 0,
       by_class + "Tencent-Hunyuan/Hunyuan-A13B",
       R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
          "moe_intermediate_size": [3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
          3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
          3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072], "num_experts": 64,
          "moe_topk": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
          8, 8, 8, 8, 8, 8, 8, 8, 8, 8], "num_shared_expert": [1, 1, 1, 1, 1, 1, 1, 1, 1,
          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 128167, "use_cla": false, "use_qk_norm": true,
          "tie_word_embeddings": true, "attention_head_dim": 128})"},
      {"allenai/OLMo-2-1124-7B", 7'298'617'344, 0, by_class + "mlc-ai/mlc-llm, model_preset.py",
       R"({"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
          "vocab_size": 100352})"},
      {"allenai/OLMoE-1B-7B-0924", 6'919'161'856, 0, hub,
       R"({"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024,
          "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16,
          "num_experts": 64, "num_experts_per_tok": 8, "vocab_size": 50304})"},
      {"bigcode/starcoderbase", 15'517'456'384, 0, "a table of StarCoders tuned by MultiPL-T",
       R"({"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48,
          "n_inner": 24576, "n_positions": 8192, "vocab_size": 49152, "multi_query": true})"},
      {"EleutherAI/gpt-neo-1.3B", 1'315'575'808, 0, by_class + "defaults",
       R"({"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24, "num_heads":
          16, "intermediate_size": null, "max_position_embeddings": 2048, "vocab_size":
          50257, "window_size": 256, "attention_types": [[["global", "local"], 12]]})"},
      {"EleutherAI/gpt-neo-2.7B", 2'651'307'520, 0, "a log in AMD's blog on Mamba",
       R"({"model_type": "gpt_neo", "hidden_size": 2560, "num_layers": 32, "num_heads":
          20, "intermediate_size": null, "max_position_embeddings": 2048, "vocab_size":
          50257, "window_size": 256, "attention_types": [[["global", "local"], 16]]})"},
      {"ByteDance-Seed/Seed-OSS-36B-Instruct", 36'151'104'512, 0, hub,
       R"({"model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648,
          "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8,
          "head_dim": 128, "vocab_size": 155136, "attention_bias": true,
          "attention_out_bias": false})"},
      {"rednote-hilab/dots.llm1.inst", 142'774'381'696, 0, hub,
       R"({"model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
          "moe_intermediate_size": 1408, "num_hidden_layers": 62, "num_attention_heads":
          32, "num_key_value_heads": 32, "n_routed_experts": 128, "n_shared_experts": 2,
          "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
          "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "vocab_size": 152064,
          "sliding_window": null, "use_sliding_window": false})"},
      {"deepseek-ai/deepseek-moe-16b-base", 16'375'728'128, 0, hub,
       R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
          "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads":
          16, "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
          "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
          "vocab_size": 102400})"},
      {"baichuan-inc/Baichuan-7B", 7'000'559'616, 0, "README of baichuan-inc/Baichuan-13B",
       R"({"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
          "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 64000,
          "max_position_embeddings": 4096})"},
      {"baichuan-inc/Baichuan-13B-Base", 13'264'901'120, 0, "README of baichuan-inc/Baichuan-13B",
       R"({"model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696,
          "num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 64000,
          "model_max_length": 4096})"},
      {"openbmb/MiniCPM-2B", 2'724'880'896, 0, "n_parameters in embeddings-benchmark/mteb",
       R"({"model_type": "minicpm", "hidden_size": 2304, "intermediate_size": 5760,
          "num_hidden_layers": 40, "num_attention_heads": 36, "num_key_value_heads": 36,
          "vocab_size": 122753, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base":
          256})"},
      {"inclusionAI/Ling-lite", 16'801'974'272, 0, hub,
       R"({"model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5632,
          "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads":
          16, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 64,
          "num_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 0,
          "use_bias": false, "use_qkv_bias": false, "vocab_size": 126464, "norm_head":
          false})"},
      {"Qwen/Qwen-7B", 7'721'324'544, 0, hub,
       R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
          "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128,
          "vocab_size": 151936, "no_bias": true, "max_position_embeddings": 32768,
          "seq_length": 8192, "rotary_pct": 1.0})"},
      {"zai-org/chatglm3-6b", 6'243'584'000, 0, "logs of peft: all params",
       R"({"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696,
          "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128,
          "multi_query_attention": true, "multi_query_group_num": 2, "padded_vocab_size":
          65024, "seq_length": 8192, "add_qkv_bias": true, "add_bias_linear": false,
          "rmsnorm": true})"},
      {"databricks/dbrx-base", 131'596'523'520, 0,
       "by hand; the file in aws-neuron/neuronx-distributed",
       R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
          "max_seq_len": 32768, "vocab_size": 100352, "attn_config": {"clip_qkv": 8,
          "kv_n_heads": 8, "rope_theta": 500000}, "ffn_config": {"ffn_hidden_size": 10752,
          "moe_num_experts": 16, "moe_top_k": 4}})"},
      {"CohereLabs/aya-23-8B", 8'028'033'024, 0, by_class + "mlc-ai/mlc-llm, model_preset.py",
       R"({"model_type": "cohere", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 256000, "logit_scale": 0.0625, "use_qk_norm": false})"},
      {"zai-org/GLM-4.7-Flash", 29'943'393'920, 0, hub,
       R"({"model_type": "glm4_moe_lite", "hidden_size": 2048, "intermediate_size": 10240,
          "moe_intermediate_size": 1536, "num_hidden_layers": 47, "num_attention_heads":
          20, "num_key_value_heads": 20, "n_routed_experts": 64, "n_shared_experts": 1,
          "num_experts_per_tok": 4, "first_k_dense_replace": 1, "q_lora_rank": 768,
          "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
          "v_head_dim": 256, "vocab_size": 154880})"},
      // Not counted: the head's biases, one a token.
      {"microsoft/phi-2", 2'779'683'840, 51'200, hub,
       R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
          "vocab_size": 51200, "max_position_embeddings": 2048, "partial_rotary_factor":
          0.4, "qk_layernorm": false, "resid_pdrop": 0.1})"},
      // Not counted: the norm behind the token table, 2 h.
      {"bigscience/bloom", 176'247'271'424, 28'672, hub,
       R"({"model_type": "bloom", "n_layer": 70, "hidden_size": 14336,
          "num_attention_heads": 112, "vocab_size": 250880, "seq_length": 2048})"},
      // Not counted: the norm behind the token table, 2 h.
      {"bigscience/bloom-7b1", 7'069'016'064, 8'192, "a log of transformers: bloomz-7b1",
       R"({"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32,
          "vocab_size": 250880})"},
      // Not counted: gates of the shared experts, h a layer.
      {"Qwen/Qwen1.5-MoE-A2.7B", 14'315'784'192, 49'152, hub,
       R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
          "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
          "num_experts": 60, "num_experts_per_tok": 4, "num_hidden_layers": 24,
          "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 151936,
          "decoder_sparse_step": 1})"},
      // Not counted: the head's biases, one a token.
      {"microsoft/Phi-3.5-MoE-instruct", 41'873'153'344, 32'064,
       by_class + "aws-neuron/neuronx-distributed-inference, contrib",
       R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "num_local_experts": 16, "num_experts_per_tok": 2, "vocab_size": 32064,
          "attention_bias": true, "lm_head_bias": true, "sliding_window": 2047})"},
      // Counted too many: norms without parameters, h each.
      {"allenai/OLMo-7B-hf", 6'888'095'744, -266'240, by_class + "defaults",
       R"({"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
          "vocab_size": 50304})"},
  };
  return models;
}

TEST(HuggingFaceFamilies, HavePublishedTotals) {
  for (const Published& model : published())
    EXPECT_EQ(count_parameters(parse(model.config)).total, model.total - model.uncounted)
        << model.name << " " << model.source;
}

// transformers_classes.tsv is what the configuration and modeling classes of transformers (version
// 5.2.0.dev0) make of small shapes with random other keys, and of text parts in which all keys are
// absent: the parameters that they allocate, and the values of keys after their defaults. The
// parameters leave out what Orrery does (docs/guides/own-models-and-systems.md), and hold OLMo's
// norms, which have none.
TEST(HuggingFaceFamilies, EqualTheClassesOfTransformers) {
  std::ifstream table{std::string{ORRERY_TEST_SOURCE} +
                      "/tests/unit/model/transformers_classes.tsv"};
  std::string line;
  std::getline(table, line);
  std::set<std::string> types;
  for (int rows = 0; std::getline(table, line); ++rows) {
    SCOPED_TRACE(line);
    const std::vector<std::string> cells = split(line, "\t");
    ASSERT_EQ(cells.size(), 5u);
    const Model model = parse(cells[0]);
    std::string windows = std::to_string(model.window) + ":";
    for (const bool local : model.layer_is_local) windows += local ? '1' : '0';
    const std::vector<std::string> ours{std::to_string(count_parameters(model).total),
                                        std::to_string(model.kv_heads),
                                        std::to_string(model.max_sequence), windows};
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (cells[i + 1] != "-") {
        EXPECT_EQ(ours[i], cells[i + 1]);
      }
    const JsonValue json = JsonValue::parse(cells[0], "");
    types.insert(json.find("text_config").value_or(json).at("model_type").text());
  }
  EXPECT_GE(types.size(), 64u);
}

// The catalog has the same models in this project's own format.
TEST(HuggingFaceFamilies, EqualTheCatalog) {
  const auto equal = [](const std::string& name, const std::string& config) {
    const Model ours = read_model(name, {"", ""}), theirs = parse(config);
    const ParameterCount a = count_parameters(ours), b = count_parameters(theirs);
    const auto close = [](std::int64_t x, std::int64_t y) { return std::abs(x - y) * 10'000 < y; };
    EXPECT_TRUE(close(b.total, a.total)) << name << " " << b.total;
    EXPECT_TRUE(close(b.active, a.active)) << name << " " << b.active;
    EXPECT_EQ(theirs.layers, ours.layers);
    EXPECT_EQ(theirs.kv_heads, ours.kv_heads);
    EXPECT_EQ(theirs.head_dim, ours.head_dim);
    EXPECT_EQ(theirs.rotary, ours.rotary);
    EXPECT_EQ(theirs.gated, ours.gated);
    EXPECT_EQ(theirs.tied_embeddings, ours.tied_embeddings);
  };
  equal("granite-3.1-8b", R"({"model_type": "granite", "num_hidden_layers": 40, "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12800,
      "vocab_size": 49155, "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0,
      "residual_multiplier": 0.22, "logits_scaling": 16.0, "tie_word_embeddings": true})");
  equal("minimax-m2.5",
        R"({"model_type": "minimax_m2", "num_hidden_layers": 62, "hidden_size": 3072,
      "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
      "intermediate_size": 1536, "vocab_size": 200064, "num_local_experts": 256,
      "num_experts_per_tok": 8, "use_qk_norm": true, "qk_norm_type": "per_layer",
      "use_routing_bias": true, "scoring_func": "sigmoid", "attn_type_list": [1, 1],
      "use_mtp": true,
      "num_mtp_modules": 3, "shared_intermediate_size": 0})");
  equal("nemotron-4-340b", R"({"model_type": "nemotron", "num_hidden_layers": 96,
      "hidden_size": 18432, "num_attention_heads": 96, "num_key_value_heads": 8,
      "intermediate_size": 73728, "vocab_size": 256000})");
  equal("bloom-176b", R"({"model_type": "bloom", "n_layer": 70, "hidden_size": 14336,
      "num_attention_heads": 112, "vocab_size": 250880, "seq_length": 2048})");
  // Mistral Small 3.1 and Pixtral wrap a Mistral, and leave out what equals its class's sizes.
  equal("mistral-small-24b", R"({"model_type": "mistral3", "image_token_index": 10,
      "vision_config": {"hidden_size": 1024}, "spatial_merge_size": 2, "text_config": {
      "model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40,
      "intermediate_size": 32768, "head_dim": 128, "vocab_size": 131072}})");
}

// Inputs of users: what Python writes for infinity, Qwen3-Coder's switch that is off, and a text
// part whose type is not the wrapper's.
TEST(HuggingFaceFamilies, ReadWhatUsersHave) {
  const Model python = parse(R"({"model_type": "llama", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "intermediate_size": 14336, "vocab_size": 128256, "repetition_penalty": Infinity,
      "temperature": -Infinity, "top_p": NaN})");
  EXPECT_EQ(count_parameters(python).total, 8'030'261'248);
  const Model coder = parse(R"({"model_type": "qwen3_moe", "qkv_bias": false, "use_qk_norm": true,
      "shared_expert_intermediate_size": 0, "num_hidden_layers": 62, "hidden_size": 6144,
      "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
      "intermediate_size": 8192, "moe_intermediate_size": 2560, "num_experts": 160,
      "num_experts_per_tok": 8, "vocab_size": 151936})");
  EXPECT_EQ(count_parameters(coder).total, 480'154'875'392);
  EXPECT_EQ(count_parameters(coder).active, 35'474'765'312);
  const Model kimi = parse(R"({"model_type": "kimi_k25", "tie_word_embeddings": false,
      "vision_config": {"model_type": "kimi_k25"}, "text_config": {"model_type": "kimi_k2",
      "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64,
      "num_key_value_heads": 64, "intermediate_size": 18432, "moe_intermediate_size": 2048,
      "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8,
      "first_k_dense_replace": 1, "topk_method": "noaux_tc", "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "vocab_size": 163840}})");
  EXPECT_EQ(count_parameters(kimi).total, 1'026'408'232'448);
}

// public_configs.tsv is what record_public_configs.py printed: every config.json of some public
// repositories, by commit and path, with its parameters or the reason why it was refused.
TEST(HuggingFaceFamilies, ThePublicConfigsAreStillReadAsRecorded) {
  ::setenv("ORRERY_DATA", ORRERY_TEST_SOURCE, 1);
  std::ifstream table{std::string{ORRERY_TEST_SOURCE} + "/tests/unit/model/public_configs.tsv"};
  std::string line;
  std::getline(table, line);
  int rows = 0, of_catalog = 0, of_types = 0;
  for (; std::getline(table, line); ++rows) {
    const std::vector<std::string> cells = split(line, "\t");
    ASSERT_EQ(cells.size(), 5u) << line;
    const std::string &path = cells[2], &result = cells[4];
    if (cells[3] == "read") {
      // Files are called "Qwen--Qwen3-8B_config.json" or "Qwen/Qwen3-32B.json".
      std::string name = path.substr(0, path.rfind(path.ends_with("_config.json") ? '_' : '.'));
      if (const std::size_t dashes = name.rfind("--"); dashes != name.npos)
        name = name.substr(dashes + 2);
      const auto known = catalog_model(name);
      // EAGLE's are drafts of one layer, named after their models.
      if (!known || cells[0] == "SafeAILab/EAGLE") continue;
      // The catalog's MiniMax-M2.5 has norms of queries and keys of one head's width: 2 / 1e6 less.
      const std::int64_t catalog = count_parameters(read_model(*known, {"", ""})).total;
      EXPECT_LT(std::abs(catalog - std::stoll(result)) * 100'000, catalog) << line;
      ++of_catalog;
    } else if (const std::size_t quote = result.find("model_type '"); quote != result.npos) {
      const std::string type =
          result.substr(quote + 12, result.find('\'', quote + 12) - quote - 12);
      const std::string error = error_text([&] { parse(R"({"model_type": ")" + type + "\"}"); });
      EXPECT_TRUE(error.starts_with("config.json: " + result.substr(result.find("/model_type"))))
          << line << error;
      ++of_types;
    }
  }
  EXPECT_GE(rows, 370);
  EXPECT_GE(of_catalog, 28);
  EXPECT_GE(of_types, 25);
}

// A switch that is off changes no shape, whatever its name; one that is on may.
TEST(HuggingFaceFamilies, UnknownSwitchesThatAreOffChangeNothing) {
  for (const Family& family : hugging_face_families()) {
    if (family.absent.latent || family.experts || family.patterned || family.type == "mpt")
      continue;
    const auto with = [&](const std::string& value) {
      return R"({"model_type": ")" + family.type + R"(", "num_hidden_layers": 4, "hidden_size": 512,
          "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1024,
          "vocab_size": 1000, "switch_of_another": )" +
             value + "}";
    };
    for (const char* off : {"false", "null", "0", "0.0", "[]", "{}", "\"\""})
      EXPECT_NO_THROW(parse(with(off))) << family.type << " " << off;
    for (const char* on : {"true", "1", "[0]", "\"x\""})
      EXPECT_EQ(error_text([&] { parse(with(on)); }),
                "config.json: the key 'switch_of_another' is unknown and may change the model's "
                "shape; remove it if it does not");
  }
}

// Any key of any of these files with a wrong value: a refusal that names the file, or a model whose
// parameters can be counted.
TEST(HuggingFaceFamilies, NoWrongValueDoesHarm) {
  int refused = 0, read = 0;
  for (const Published& model : published()) {
    const JsonValue config = JsonValue::parse(model.config, "config.json");
    for (const std::string& key : config.keys())
      for (const char* wrong : {"-1", "0", "0.5", "1e30", "9223372036854775807", "\"x\"", "[]",
                                "{}", "[[-1]]", "[[[\"local\"], 9999]]", "true", "null", "NaN"}) {
        SCOPED_TRACE(model.name + " " + key + " <- " + wrong);
        const std::string text = config.with(key, JsonValue::parse(wrong, "")).compact();
        try {
          EXPECT_GT(count_parameters(parse(text)).total, 0);
          ++read;
        } catch (const Error& error) {
          EXPECT_TRUE(std::string{error.what()}.starts_with("config.json: ")) << error.what();
          ++refused;
        }
      }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(read, 300);
}

// No two families share a type, and none hides behind another's classes.
TEST(HuggingFaceFamilies, AreFoundByTheirClasses) {
  for (const Family& family : hugging_face_families()) {
    const std::string text =
        R"({"architectures": [")" + family.architecture + R"("], "x_config": 1})";
    const std::string error = error_text([&] { parse(text); });
    EXPECT_EQ(error.find("is unknown; state"), std::string::npos) << family.type << error;
    int owners = 0;
    for (const Family& other : hugging_face_families()) {
      owners += other.type == family.type;
      EXPECT_TRUE(&other == &family || !other.architecture.starts_with(family.architecture))
          << family.type << " " << other.type;
    }
    EXPECT_EQ(owners, 1) << family.type;
  }
}

TEST(HuggingFaceFamilies, LayersThatDifferAreRefusedByWhatTheyHave) {
  const auto refusal = [](const std::string& keys) {
    return error_text([&] {
      parse(R"({"num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8,
          "intermediate_size": 1024, "vocab_size": 1000, )" +
            keys + "}");
    });
  };
  const std::string prices =
      ", which nothing prices; take a model of attention and MLPs or experts";
  for (const auto& [type, layers] : std::vector<std::pair<std::string, std::string>>{
           {"bailing_hybrid", "linear attention"},
           {"zamba2", "Mamba layers"},
           {"mllama_text_model", "layers of cross-attention to images"},
           {"gemma3n_text", "embeddings in every layer, and layers that share keys and values"},
           {"nemotron-nas", "layers whose heads and widths differ"},
           {"step3p7", "layers whose numbers of heads differ"},
           {"git", "norms behind the layers"},
           {"yuan", "convolutions"}})
    EXPECT_EQ(refusal("\"model_type\": \"" + type + "\""),
              "config.json: /model_type: the model_type '" + type + "' has " + layers + prices);
  EXPECT_EQ(
      refusal(R"("architectures": ["OpenMoeForCausalLM"])"),
      "config.json: /architectures/0: the architecture 'OpenMoeForCausalLM' has an MLP behind "
      "the experts" +
          prices);
  EXPECT_EQ(refusal(R"("model_type": "hf_olmo")"),
            "config.json: /model_type: the model_type 'hf_olmo' has keys of its own, so it is not "
            "read; take the file of the same model in another type, or describe it in our own "
            "format");
  EXPECT_EQ(
      refusal(R"("model_type": "mpt", "no_bias": false)"),
      "config.json: /no_bias: is not true, which MPT's class in transformers always has; take "
      "another model");
  EXPECT_EQ(refusal(R"("model_type": "ernie4_5_moe", "moe_num_experts": 8, "moe_k": 2,
                       "moe_intermediate_size": 64, "use_bias": true)"),
            "config.json: /use_bias: biases of MLPs without those of experts are not modelled; "
            "remove the key, or describe the model in our own format");
  EXPECT_EQ(refusal(R"("model_type": "smollm3", "use_sliding_window": true, "sliding_window": 64)"),
            "config.json: /use_sliding_window: says that layers have windows, but not which; add "
            "layer_types");
  EXPECT_EQ(
      refusal(R"("model_type": "hunyuan", "use_cla": true, "num_experts": 16, "moe_topk": 1)"),
      "config.json: /use_cla: layers that share keys and values are not modelled; remove the "
      "key, or describe the model in our own format");
  EXPECT_EQ(refusal(R"("model_type": "hunyuan", "num_experts": [16, 8], "moe_topk": 1)"),
            "config.json: /num_experts/1: differs from the first, and nothing prices layers whose "
            "experts differ; take a model whose layers are alike");
  EXPECT_EQ(refusal(R"("model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"])"),
            "config.json: /architectures/0: 'LlamaForCausalLMEagle3' drafts tokens for another "
            "model, whose layers it reads; name that model");
  EXPECT_EQ(refusal(R"("model_type": "minimax_m2", "num_local_experts": 8, "num_experts_per_tok": 2,
                       "attn_type_list": [1, 0])"),
            "config.json: /attn_type_list/1: is a layer of linear attention" + prices);
}

TEST(HuggingFaceFamilies, ExpertsAndWindowsSitWhereTheFileSays) {
  const auto ernie = parse(R"({"model_type": "ernie4_5_moe", "num_hidden_layers": 4,
      "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1000,
      "moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 64, "moe_layer_end_index": 2})");
  EXPECT_EQ(ernie.layer_has_experts, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(ernie.experts->shared_ffn, 128);
  const auto listed = parse(R"({"model_type": "glm4_moe_lite", "num_hidden_layers": 3,
      "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1000,
      "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
      "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
      "v_head_dim": 16, "mlp_layer_types": ["dense", "sparse", "dense"]})");
  EXPECT_EQ(listed.layer_has_experts, (std::vector<bool>{false, true, false}));
  const auto exaone = [](const std::string& pattern) {
    return parse(R"({"model_type": "exaone4", "num_hidden_layers": 4, "hidden_size": 512,
        "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1024,
        "vocab_size": 1000)" +
                 pattern + "}");
  };
  EXPECT_EQ(exaone(R"(, "sliding_window_pattern": "LLG")").layer_is_local,
            (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(exaone("").layer_is_local, (std::vector<bool>{true, true, true, false}));
  EXPECT_TRUE(exaone(R"(, "sliding_window": null)").layer_is_local.empty());
  EXPECT_EQ(error_text([&] { exaone(R"(, "sliding_window_pattern": "GL")"); }),
            "config.json: /sliding_window_pattern: is no pattern of local layers before a global "
            "one; write it as \"LLLG\"");
}

// One expert is an MLP: 28 layers of h = 2,560 and f = 8,192, of which two attend with 20 heads
// that share one key head, and 26 are state spaces of di = 5,120 channels, N = 16 and R = 160.
TEST(HuggingFaceFamilies, OneExpertOfJambaIsAnMlp) {
  const Model model = parse(
      R"({"model_type": "jamba", "hidden_size": 2560, "intermediate_size": 8192,
          "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 1,
          "attn_layer_offset": 7, "attn_layer_period": 14, "num_experts": 1,
          "num_experts_per_tok": 1, "mamba_dt_rank": 160, "vocab_size": 65536,
          "tie_word_embeddings": true})");
  EXPECT_FALSE(model.experts);
  constexpr std::int64_t h = 2560, f = 8192, di = 5120, n = 16, r = 160;
  constexpr std::int64_t mlp = 3 * h * f, attention = h * (20 + 2) * 128 + h * h;
  constexpr std::int64_t scan =
      h * 2 * di + 5 * di + di * (r + 2 * n) + r * di + di + di * n + di + di * h + r + 2 * n;
  EXPECT_EQ(count_parameters(model).total,
            28 * (mlp + 2 * h) + 2 * attention + 26 * scan + 65536 * h + h);
}

}  // namespace
}  // namespace orrery::hugging_face_families_test
