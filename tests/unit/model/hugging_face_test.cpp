#include "sim/model/hugging_face.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/error_text.hpp"

namespace orrery::hugging_face_test {
namespace {

Model parse(const std::string& text) { return parse_model(JsonValue::parse(text, "config.json")); }
std::string parse_error(const std::string& text) {
  return error_text([&] { parse(text); });
}

// A config.json of `type` with four layers of 512 and 8 heads, each with keys and values unless
// `more` says otherwise, and `more` keys.
std::string config(const std::string& type, const std::string& more = "") {
  const bool says = more.find("num_key_value_heads") != more.npos;
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
            "num_attention_heads": 8, "vocab_size": 1000)" +
         (says ? "" : R"(, "num_key_value_heads": 8)") + (more.empty() ? "" : ", " + more) + "}";
}

TEST(HuggingFace, IsDistinguishedFromOurFormatByItsKeys) {
  const auto is = [](const std::string& text) {
    return is_hugging_face(JsonValue::parse(text, "x.json"));
  };
  EXPECT_TRUE(is(R"({"model_type": "llama"})"));
  EXPECT_TRUE(is(R"({"architectures": ["LlamaForCausalLM"]})"));
  EXPECT_TRUE(is(R"({"hidden_size": 1})"));
  EXPECT_TRUE(is(R"({"n_embd": 1})"));
  EXPECT_TRUE(is(R"({"text_config": {}})"));
  EXPECT_FALSE(is(R"({"layers": 1, "hidden": 2})"));
  EXPECT_FALSE(is(R"({"schema": "orrery.model/1", "hidden_size": 1})"));
}

// Qwen3-VL-32B as published: its text part is Qwen3-32B but for the longest sequence.
TEST(HuggingFace, TheTextPartOfAMultimodalModelIsRead) {
  const Model model = read_model(
      std::string{ORRERY_TEST_SOURCE} + "/tests/unit/model/data/Qwen3-VL-32B-Instruct", {"", ""});
  const Model text = read_model("qwen3-32b", {"", ""});
  EXPECT_EQ(count_parameters(model).total, 32'762'123'264);
  EXPECT_EQ(count_parameters(model).total, count_parameters(text).total);
  EXPECT_EQ(model.layers, text.layers);
  EXPECT_EQ(model.kv_heads, text.kv_heads);
  EXPECT_EQ(model.head_dim, text.head_dim);
  EXPECT_EQ(model.max_sequence, 262'144);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST(HuggingFace, AbsentKeysTakeTheirClassDefault) {
  const Model llama = parse(config("llama"));
  EXPECT_EQ(llama.kv_heads, 8);
  EXPECT_EQ(llama.head_dim, 64);
  const std::string bare = R"("hidden_size": 512, "intermediate_size": 1024, "vocab_size": 1000,
      "num_hidden_layers": 4, "num_attention_heads": 8})";
  EXPECT_EQ(parse(R"({"model_type": "llama", )" + bare).kv_heads, 8);
  EXPECT_EQ(parse(R"({"model_type": "mistral", )" + bare).kv_heads, 8);
  EXPECT_EQ(parse(R"({"model_type": "gemma2", )" + bare).kv_heads, 4);
  EXPECT_EQ(parse(R"({"model_type": "gemma2", "num_key_value_heads": null, )" + bare).kv_heads, 8);
  EXPECT_EQ(parse_error(R"({"model_type": "qwen3", )" + bare),
            "config.json: the key 'num_key_value_heads' is missing, and the default of the class, "
            "32, does not divide 8 heads; add it");
  EXPECT_EQ(llama.max_sequence, 2048);
  EXPECT_FALSE(llama.tied_embeddings);
  EXPECT_TRUE(parse(config("gemma")).tied_embeddings);
  EXPECT_EQ(parse(config("gemma")).head_dim, 256);
  EXPECT_EQ(parse(config("qwen3")).head_dim, 128);
  EXPECT_EQ(parse(config("mistral")).max_sequence, 131'072);
  const Model gpt2 = parse(R"({"model_type": "gpt2", "n_embd": 512, "n_layer": 4, "n_head": 8,
                               "vocab_size": 1000, "n_inner": null})");
  EXPECT_EQ(gpt2.ffn, 2048);
  EXPECT_EQ(gpt2.learned_positions, 1024);
  EXPECT_TRUE(gpt2.tied_embeddings);
}

// OPT 350M has tables of 512 before layers of 1,024, and norms behind its layers.
TEST(HuggingFace, WhatOnlyOptHasIsRefused) {
  EXPECT_EQ(parse(R"({"model_type": "opt", "hidden_size": 512, "ffn_dim": 2048, "vocab_size": 1000,
                      "num_hidden_layers": 4, "num_attention_heads": 8})")
                .ffn,
            2048);
  EXPECT_EQ(parse(config("opt")).learned_positions, 2050);
  EXPECT_EQ(parse_error(config("opt", R"("word_embed_proj_dim": 256)")),
            "config.json: /word_embed_proj_dim: means tables narrower than the layers, which "
            "nothing prices; take a model whose embeddings are as wide as its layers");
  EXPECT_EQ(parse_error(config("opt", R"("do_layer_norm_before": false)")),
            "config.json: /do_layer_norm_before: means norms behind the layers, which nothing "
            "prices; take another model");
}

TEST(HuggingFace, BiasesFollowTheFamily) {
  const Model llama = parse(config("llama", R"("attention_bias": true, "mlp_bias": true)"));
  EXPECT_TRUE(llama.qkv_bias && llama.out_bias && llama.mlp_bias);
  const Model qwen2 = parse(config("qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.out_bias || qwen2.mlp_bias || qwen2.qk_norm);
  const Model qwen3 = parse(config("qwen3"));
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
  const Model neox = parse(config("gpt_neox", R"("attention_bias": false)"));
  EXPECT_TRUE(neox.mlp_bias && neox.norm_bias && neox.parallel_residual);
  EXPECT_FALSE(neox.qkv_bias || neox.out_bias || neox.gated);
}

TEST(HuggingFace, Version5SpellingsMeanTheSame) {
  const std::string v5 = R"("dtype": "bfloat16", "rope_parameters": {"rope_theta": 1e6},
                            "num_experts_per_tok": 2, )";
  EXPECT_EQ(parse(config("mixtral", v5 + R"("num_experts": 16)")).experts->count, 16);
  EXPECT_EQ(parse(config("mixtral", v5 + R"("num_local_experts": 16)")).experts->count, 16);
  EXPECT_EQ(
      parse(config("mixtral", v5 + R"("num_experts": 16, "num_local_experts": 16)")).experts->count,
      16);
  EXPECT_EQ(
      parse(config("qwen3_moe", v5 + R"("num_local_experts": 16, "moe_intermediate_size": 64)"))
          .experts->count,
      16);
  const std::string latent = R"("kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                                "v_head_dim": 16, "moe_intermediate_size": 64, )";
  EXPECT_EQ(parse(config("deepseek_v3", v5 + latent + R"("num_local_experts": 16)")).experts->count,
            16);
  EXPECT_EQ(parse_error(config("mixtral", R"("num_experts": 16, "num_local_experts": 8)")),
            "config.json: /num_local_experts: differs from /num_experts, another spelling of it; "
            "keep one of them");
}

TEST(HuggingFace, ExpertsSitWhereTheFileSays) {
  const std::string moe =
      R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64)";
  EXPECT_EQ(parse(config("qwen3_moe", moe)).layer_has_experts, std::vector<bool>(4, true));
  EXPECT_EQ(parse(config("qwen3_moe", moe + R"(, "decoder_sparse_step": 2)")).layer_has_experts,
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(parse(config("qwen3_moe", moe + R"(, "mlp_only_layers": [1, 3])")).layer_has_experts,
            (std::vector<bool>{true, false, true, false}));
  const std::string deepseek =
      R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
         "kv_lora_rank": 32, "q_lora_rank": null, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
         "v_head_dim": 16, "first_k_dense_replace": 1, "n_shared_experts": 2)";
  const Model v2 = parse(config("deepseek_v2", deepseek + R"(, "topk_method": "greedy")"));
  EXPECT_EQ(v2.layer_has_experts, (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(v2.experts->shared_ffn, 128);
  EXPECT_EQ(v2.latent->q_rank, 0);
  EXPECT_FALSE(v2.experts->correction_bias);
  EXPECT_TRUE(parse(config("kimi_k2", deepseek + R"(, "topk_method": "noaux_tc")"))
                  .experts->correction_bias);
}

TEST(HuggingFace, WindowsFollowTheFamily) {
  const auto local = [](const std::string& text) { return parse(text).layer_is_local; };
  EXPECT_TRUE(local(config("mistral", R"("sliding_window": null)")).empty());
  EXPECT_EQ(local(config("mistral", R"("sliding_window": 64)")), std::vector<bool>(4, true));
  const std::string window = R"("sliding_window": 64, "max_window_layers": 3)";
  EXPECT_TRUE(local(config("qwen2", window + R"(, "use_sliding_window": false)")).empty());
  EXPECT_EQ(local(config("qwen2", window + R"(, "use_sliding_window": true)")),
            (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(local(config("gemma2")), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(local(config("gemma3_text", R"("sliding_window_pattern": 3)")),
            (std::vector<bool>{true, true, false, true}));
  const std::string types = R"("layer_types": ["full_attention", "sliding_attention",
                               "full_attention", "full_attention"])";
  EXPECT_EQ(local(config("gemma2", types)), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(parse_error(config("gemma2", R"("layer_types": ["full_attention"])")),
            "config.json: /layer_types: has 1 entries for 4 layers; write one a layer");
  EXPECT_EQ(local(config("gpt_oss", R"("layer_types": ["sliding_attention", "full_attention",
                                       "full_attention", "full_attention"])")),
            (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(local(config("gpt_oss")), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(local(config("phi3", R"("sliding_window": 2047)")), std::vector<bool>(4, true));
  EXPECT_TRUE(local(config("phi3")).empty());
  EXPECT_EQ(local(config("cohere2")), (std::vector<bool>{true, true, true, false}));
  EXPECT_TRUE(local(config("mistral", R"("sliding_window": 0)")).empty());
  EXPECT_EQ(parse_error(config("gemma2", R"("sliding_window": -1)")),
            "config.json: /sliding_window: -1 is out of range; write a whole number from 0 to "
            "1000000000");
  EXPECT_EQ(parse_error(config("gemma2", types + R"(, "sliding_window": 0)")),
            "config.json: /layer_types/1: is said of a layer, but no sliding_window is set; set "
            "sliding_window (Qwen: with use_sliding_window), or write full_attention");
  EXPECT_EQ(
      parse_error(config("qwen3", R"("layer_types": ["linear_attention", "full_attention",
                                           "full_attention", "full_attention"])")),
      "config.json: /layer_types/0: 'linear_attention' is not a layer type that is known; write "
      "full_attention, sliding_attention or chunked_attention");
}

// transformers v4 says rope_scaling, v5 rope_parameters, older files type for rope_type.
TEST(HuggingFace, YarnScalesQueriesAndKeys) {
  const auto scaled = [](const std::string& keys) {
    const Model model = parse(config("llama", keys));
    EXPECT_TRUE(model.rotary);
    return model.scaled_rotary;
  };
  EXPECT_FALSE(scaled(""));
  EXPECT_FALSE(scaled(R"("rope_scaling": null)"));
  EXPECT_FALSE(scaled(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})"));
  EXPECT_TRUE(scaled(R"("rope_scaling": {"rope_type": "yarn", "factor": 32.0})"));
  EXPECT_TRUE(scaled(R"("rope_scaling": {"type": "yarn", "factor": 4.0})"));
  EXPECT_TRUE(scaled(R"("rope_parameters": {"rope_type": "yarn", "rope_theta": 150000})"));
  EXPECT_FALSE(scaled(R"("rope_scaling": {"rope_type": "yarn", "attention_factor": 1})"));
  EXPECT_TRUE(scaled(R"("rope_scaling": {"rope_type": "yarn", "attention_factor": 1.1})"));
  EXPECT_FALSE(
      scaled(R"("rope_scaling": {"rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": 1.0})"));
  EXPECT_TRUE(scaled(R"("rope_scaling": {"rope_type": "yarn", "mscale": 1.0})"));
  EXPECT_EQ(parse_error(config("llama", R"("rope_scaling": {"type": "yarn",
                                                           "attention_factor": "high"})")),
            "config.json: /rope_scaling/attention_factor: \"high\" is not a number; write a plain "
            "number");
}

// Totals of the published checkpoints, tied heads counted once; GPT-J's without its head's bias.
TEST(HuggingFace, ParallelBlocksOfEachFamily) {
  const auto check = [](const std::string& text, int norms, std::int64_t parameters) {
    const Model model = parse(text);
    EXPECT_TRUE(model.parallel_residual);
    EXPECT_EQ(model.norms_per_layer, norms);
    EXPECT_EQ(count_parameters(model).total, parameters) << text;
  };
  check(R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048,
            "n_inner": null, "rotary_dim": 64, "vocab_size": 50400, "tie_word_embeddings": false})",
        1, 6'050'882'784 - 50'400);
  check(R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
            "num_hidden_layers": 32, "vocab_size": 65024, "multi_query": true, "bias": false,
            "new_decoder_architecture": false, "parallel_attn": true, "alibi": false})",
        1, 6'921'720'704);
  check(R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128,
            "num_hidden_layers": 60, "vocab_size": 65024, "num_kv_heads": 8, "bias": false,
            "new_decoder_architecture": true, "parallel_attn": true})",
        2, 41'303'293'952);
  check(R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
            "num_attention_heads": 64, "num_hidden_layers": 40, "vocab_size": 256000,
            "logit_scale": 0.0625})",
        1, 34'980'831'232);
  check(R"({"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336,
            "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
            "vocab_size": 256000, "sliding_window": 4096, "sliding_window_pattern": 4})",
        1, 8'028'033'024);
  EXPECT_FALSE(parse(config("falcon", R"("parallel_attn": false)")).parallel_residual);
  EXPECT_FALSE(parse(config("gpt_neox", R"("use_parallel_residual": false)")).parallel_residual);
}

TEST(HuggingFace, ArchitecturesStandInForAMissingModelType) {
  const auto named = [](const std::string& architecture) {
    std::string text = config("x");
    text.replace(text.find(R"("model_type": "x")"), 17,
                 R"("architectures": [")" + architecture + "\"]");
    return text;
  };
  EXPECT_TRUE(parse(named("Qwen2ForCausalLM")).qkv_bias);
  EXPECT_TRUE(parse(named("Qwen3ForCausalLM")).qk_norm);
  EXPECT_TRUE(parse(named("GPTNeoXForCausalLM")).parallel_residual);
  EXPECT_TRUE(parse(named("CohereForCausalLM")).parallel_residual);
  EXPECT_EQ(parse_error(named("MambaForCausalLM")),
            "config.json: /architectures/0: the architecture 'MambaForCausalLM' has Mamba layers, "
            "which nothing prices; take a model of attention and MLPs or experts");
  EXPECT_EQ(parse_error(named("WavenetForCausalLM")),
            "config.json: /architectures/0: the architecture 'WavenetForCausalLM' is unknown; "
            "state the model_type");
  EXPECT_EQ(parse_error(R"({"hidden_size": 1})"),
            "config.json: the key 'model_type' is missing; add it, such as \"llama\"");
}

TEST(HuggingFaceErrors, UnknownModelType) {
  std::string known = "known are ";
  for (const std::string& type : hugging_face_types())
    known += (type == hugging_face_types().front() ? "" : ", ") + type;
  EXPECT_EQ(parse_error(config("lama")),
            "config.json: /model_type: the model_type 'lama' is unknown; did you mean 'llama'?");
  EXPECT_EQ(parse_error(config("wavenet")),
            "config.json: /model_type: the model_type 'wavenet' is unknown; " + known);
}

TEST(HuggingFaceErrors, Keys) {
  EXPECT_EQ(
      parse_error(config("llama", R"("num_key_value_head": 2)")),
      "config.json: the key 'num_key_value_head' is unknown and may change the model's shape; "
      "did you mean 'num_key_value_heads'?");
  EXPECT_EQ(parse_error(config("llama", R"("parallel_attn_blocks": 2)")),
            "config.json: the key 'parallel_attn_blocks' is unknown and may change the model's "
            "shape; remove it if it does not");
  // Mixtral's keys mean nothing in a Llama.
  EXPECT_NE(parse_error(config("llama", R"("num_local_experts": 8)")), "no error");
  EXPECT_EQ(parse_error(config("llama", R"("_name_or_path": "x", "num_local_experts": null)")),
            "no error");
  EXPECT_EQ(parse_error(R"({"model_type": "llama", "hidden_size": 512})"),
            "config.json: the key 'num_hidden_layers' is missing; add it");
  EXPECT_EQ(parse_error(config("llama", R"("is_encoder_decoder": true)")),
            "config.json: /is_encoder_decoder: only decoder-only models are read; remove the key, "
            "or describe the model in our own format");
  EXPECT_EQ(parse_error(config("llama", R"("num_key_value_heads": 3)")),
            "config.json: 8 heads cannot share 3 key/value heads evenly; the first must be a "
            "multiple of the second");
  EXPECT_EQ(parse_error(config("llama", R"("head_dim": -1)")),
            "config.json: /head_dim: -1 is out of range; write a whole number from 1 to 10000000");
  EXPECT_EQ(parse_error(R"({"model_type": "gemma3", "text_config": {"hiden_size": 8}})"),
            "config.json: /text_config: the key 'hiden_size' is unknown and may change the model's "
            "shape; did you mean 'hidden_size'?");
}

// Every value of every published file, replaced by each of these: refused with the file's name, or
// a model whose parameters can still be counted. Nothing else may happen.
TEST(HuggingFaceErrors, NoWrongValueOfAnyKeyDoesHarm) {
  const std::vector<std::string> wrong{"-1",    "0",  "0.5", "1e30",   "9223372036854775807",
                                       "\"x\"", "[]", "{}",  "[[-1]]", "true",
                                       "null"};
  int refused = 0, read = 0;
  const std::string folder = std::string{ORRERY_TEST_SOURCE} + "/tests/unit/model/hf";
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    std::vector<std::string> lines;
    std::ifstream stream{file.path()};
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    for (const std::string& original : lines) {
      const std::size_t colon = original.find("\": ");
      if (colon == original.npos || original.find_last_of("[{") == original.size() - 1) continue;
      for (const std::string& value : wrong) {
        std::string text;
        for (const std::string& line : lines)
          text += &line == &original
                      ? line.substr(0, colon + 3) + value + (line.ends_with(',') ? ",\n" : "\n")
                      : line + "\n";
        SCOPED_TRACE(original + " <- " + value);
        try {
          EXPECT_GT(count_parameters(parse(text)).total, 0);
          ++read;
        } catch (const Error& error) {
          EXPECT_TRUE(std::string{error.what()}.starts_with("config.json: "));
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 500);
}

// zai-org/GLM-4.5-Air: its checkpoint has 110,468,824,832 parameters, with a prediction layer. That
// is a layer with experts (2,341,492,864), a product of 2 h x h, three norms, and tables of its own
// (2 V h): 3,616,573,568.
TEST(HuggingFace, Glm45) {
  const Model model = parse(R"({"model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers":
      46, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias":
      true, "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "vocab_size":
      151552, "num_nextn_predict_layers": 1, "use_qk_norm": false, "partial_rotary_factor": 0.5,
      "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "norm_topk_prob": true})");
  EXPECT_EQ(count_parameters(model).total, 110'468'824'832 - 3'616'573'568);
  EXPECT_TRUE(model.qkv_bias && !model.out_bias);
  EXPECT_FALSE(model.layer_has_experts[0]);
  EXPECT_EQ(model.prediction_layers, 1);
}

// Every second layer has experts; three of four attend in chunks.
TEST(HuggingFace, Llama4) {
  const Model model = parse(R"({"model_type": "llama4", "image_token_index": 9, "vision_config": {},
      "text_config": {"model_type": "llama4_text", "hidden_size": 512, "intermediate_size": 1024,
      "intermediate_size_mlp": 2048, "num_hidden_layers": 4, "num_attention_heads": 8,
      "num_key_value_heads": 2, "vocab_size": 1000, "interleave_moe_layer_step": 2,
      "num_local_experts": 16, "num_experts_per_tok": 1, "attention_chunk_size": 8192,
      "no_rope_layers": [], "use_qk_norm": true}})");
  EXPECT_EQ(model.layer_has_experts, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(model.ffn, 2048);
  EXPECT_EQ(model.experts->ffn, 1024);
  EXPECT_EQ(model.experts->shared_ffn, 1024);
  EXPECT_EQ(model.window, 8192);
  EXPECT_EQ(model.layer_is_local, (std::vector<bool>{true, true, true, false}));
}

// By the kind of their layers, and not by a name that looks alike.
TEST(HuggingFace, LayersThatNothingPrices) {
  const auto refusal = [](const std::string& type) { return parse_error(config(type)); };
  EXPECT_EQ(refusal("zamba2"),
            "config.json: /model_type: the model_type 'zamba2' has Mamba layers, which nothing "
            "prices; take a model of attention and MLPs or experts");
  EXPECT_NE(refusal("bert").find("has an encoder"), std::string::npos);
}

}  // namespace
}  // namespace orrery::hugging_face_test
