#include "sim/model/model.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::model_test {
namespace {

Model parse(const std::string& text) { return parse_model(JsonValue::parse(text, "m.json")); }
std::string parse_error(const std::string& text) {
  return error_text([&] { parse(text); });
}

// A model object with `more` keys after the sizes that every object must have.
std::string sizes(const std::string& more = "", const std::string& name = "some") {
  return R"({"name": ")" + name + R"(", "layers": 4, "hidden": 512, "heads": 8, "seq": 1024)" +
         (more.empty() ? "" : ", " + more) + "}";
}

TEST(OwnModel, SizesAloneAreAGpt) {
  const Model model = parse(sizes());
  EXPECT_EQ(model.name, "some");
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.ffn, 2048);
  EXPECT_EQ(model.vocab, 51'200);
  EXPECT_EQ(model.max_sequence, 1024);
  EXPECT_FALSE(model.gated);
  EXPECT_FALSE(model.rotary);
  EXPECT_EQ(model.learned_positions, 1024);
  EXPECT_EQ(model.norm, NormKind::layer);
  EXPECT_TRUE(model.norm_bias && model.qkv_bias && model.out_bias && model.mlp_bias);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_FALSE(model.experts || model.latent);
}

void expect_llama(const Model& model) {
  EXPECT_TRUE(model.gated && model.rotary);
  EXPECT_EQ(model.norm, NormKind::rms);
  EXPECT_FALSE(model.norm_bias || model.qkv_bias || model.out_bias || model.mlp_bias);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_EQ(model.learned_positions, 0);
}

TEST(OwnModel, GroupedHeadsExpertsSwigluOrTheNameMakeALlama) {
  expect_llama(parse(sizes(R"("kv_heads": 2)")));
  expect_llama(parse(sizes(R"("experts": 8, "top_k": 2)")));
  expect_llama(parse(sizes(R"("swiglu": true)")));
  expect_llama(parse(sizes("", "LLaMA 7B")));
  EXPECT_FALSE(parse(sizes(R"("kv_heads": 8)")).gated);  // As many as heads: not grouped.
}

TEST(OwnModel, FamiliesAreKnownByName) {
  const Model mpt = parse(sizes("", "MPT-7b"));
  EXPECT_FALSE(mpt.gated || mpt.rotary || mpt.norm_bias || mpt.qkv_bias || mpt.mlp_bias);
  EXPECT_EQ(mpt.norm, NormKind::layer);
  EXPECT_EQ(mpt.learned_positions, 0);
  EXPECT_TRUE(mpt.tied_embeddings);

  const Model nemotron = parse(sizes(R"("kv_heads": 2)", "Nemotron4 15b"));
  EXPECT_FALSE(nemotron.gated || nemotron.qkv_bias || nemotron.mlp_bias ||
               nemotron.tied_embeddings);
  EXPECT_TRUE(nemotron.rotary && nemotron.norm_bias);

  const Model qwen = parse(sizes(R"("kv_heads": 2)", "Qwen3_30B_a3B"));
  EXPECT_EQ(qwen.head_dim, 128);
  EXPECT_TRUE(qwen.qk_norm && qwen.gated);
  EXPECT_FALSE(parse(sizes("", "Qwen 32B")).qk_norm);
  EXPECT_TRUE(parse(sizes("", "qwen2.5-7b")).qkv_bias);

  const Model oss = parse(sizes(R"("experts": 4, "top_k": 2, "kv_heads": 2)", "GPT OSS 120B"));
  EXPECT_EQ(oss.head_dim, 64);
  EXPECT_EQ(oss.window, 128);
  EXPECT_EQ(oss.layer_is_local, (std::vector<bool>{true, false, true, false}));
  EXPECT_TRUE(oss.attention_sinks && oss.clamped_activation && oss.mlp_bias);
  EXPECT_TRUE(oss.gated && oss.rotary && oss.scaled_rotary);

  // Megatron Core's gpt3_7b groups its heads, but sets neither --swiglu nor rotary positions.
  const Model gpt = parse(sizes(R"("kv_heads": 2, "vocab": 131073)", "gpt3_7b_tp1_pp4"));
  EXPECT_FALSE(gpt.gated || gpt.tied_embeddings);
  EXPECT_EQ(gpt.learned_positions, 1024);
  EXPECT_TRUE(parse(sizes(R"("vocab": 131071)", "GPT")).tied_embeddings);
}

TEST(OwnModel, LatentAttentionTrueIsDeepSeek) {
  const std::string moe = R"("mla": true, "experts": 256, "top_k": 8, "moe_ffn": 2048)";
  const Model model = parse(sizes(moe + R"(, "dense_layers": 3)", "DeepSeekV3 (w/ MTP)"));
  ASSERT_TRUE(model.latent && model.experts);
  EXPECT_EQ(model.latent->q_rank, 1536);
  EXPECT_EQ(model.latent->kv_rank, 512);
  EXPECT_EQ(model.latent->nope_dim, 128);
  EXPECT_EQ(model.latent->rope_dim, 64);
  EXPECT_EQ(model.latent->v_dim, 128);
  EXPECT_EQ(model.head_dim, 192);
  EXPECT_EQ(model.ffn, 18'432);
  EXPECT_EQ(model.experts->shared_ffn, 2048);
  EXPECT_EQ(model.experts->groups, 8);
  EXPECT_EQ(model.experts->groups_per_token, 4);
  EXPECT_TRUE(model.experts->correction_bias);
  EXPECT_EQ(model.layer_has_experts, (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(model.prediction_layers, 1);
  EXPECT_EQ(parse(sizes(moe, "DeepSeekV3 (w/o MTP)")).prediction_layers, 0);
  EXPECT_EQ(parse(sizes(moe, "DeepSeekV3 (tokendrop)")).prediction_layers, 1);
  EXPECT_EQ(parse(sizes(moe, "deepseek_v3")).prediction_layers, 0);
  EXPECT_EQ(parse(sizes(moe, "Kimi_K2")).experts->groups, 1);
  EXPECT_FALSE(parse(sizes(R"("mla": false)")).latent);
  EXPECT_FALSE(parse(sizes(R"("mla": false)")).gated);  // A GPT like any other.
}

TEST(OwnModel, EveryKeyOverrulesItsDefault) {
  const Model model = parse(sizes(
      R"("schema": "orrery.model/1", "source": "here", "kv_heads": 4, "head_dim": 32, "ffn": 100,
         "vocab": 7, "swiglu": true, "norm": "layer", "norm_bias": false, "norms_per_layer": 1,
         "qk_norm": true, "positions": "learned", "bias": true, "out_bias": false,
         "attention_sinks": true, "clamped_activation": true, "parallel_residual": true,
         "tied_embeddings": true,
         "window": 16, "global_every": 3, "prediction_layers": 2, "experts": 6, "top_k": 2,
         "moe_ffn": 50, "shared_expert_ffn": 60, "dense_layers": 1, "expert_groups": 3,
         "groups_per_token": 2, "correction_bias": true)"));
  EXPECT_EQ(model.source, "here");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 32);
  EXPECT_EQ(model.ffn, 100);
  EXPECT_EQ(model.vocab, 7);
  EXPECT_TRUE(model.gated && model.qk_norm && model.qkv_bias && model.mlp_bias);
  EXPECT_FALSE(model.out_bias || model.norm_bias || model.rotary);
  EXPECT_EQ(model.norm, NormKind::layer);
  EXPECT_EQ(model.norms_per_layer, 1);
  EXPECT_EQ(model.learned_positions, 1024);
  EXPECT_TRUE(model.attention_sinks && model.clamped_activation && model.parallel_residual &&
              model.tied_embeddings);
  EXPECT_EQ(model.window, 16);
  EXPECT_EQ(model.layer_is_local, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(model.prediction_layers, 2);
  ASSERT_TRUE(model.experts);
  EXPECT_EQ(model.experts->count, 6);
  EXPECT_EQ(model.experts->per_token, 2);
  EXPECT_EQ(model.experts->ffn, 50);
  EXPECT_EQ(model.experts->shared_ffn, 60);
  EXPECT_EQ(model.experts->groups, 3);
  EXPECT_EQ(model.experts->groups_per_token, 2);
  EXPECT_TRUE(model.experts->correction_bias);
  EXPECT_EQ(model.layer_has_experts, (std::vector<bool>{false, true, true, true}));
}

TEST(OwnModel, SequencesAreAsInPreTraining) {
  const auto of = [](const std::string& seq) {
    return parse(R"({"layers": 4, "hidden": 64, "heads": 8, "seq": )" + seq + "}");
  };
  EXPECT_EQ(default_sequence(of("2048")), 2048);
  EXPECT_FALSE(guesses_sequence(of("8192")));
  EXPECT_EQ(default_sequence(of("131072")), 8192);
  EXPECT_TRUE(guesses_sequence(of("131072")));
  EXPECT_EQ(default_sequence(of(R"(131072, "pretraining_seq": 4096)")), 4096);
  const Model sourced = of(R"(131072, "pretraining_seq": {"value": 32768, "source": "paper"})");
  EXPECT_EQ(default_sequence(sourced), 32768);
  EXPECT_FALSE(guesses_sequence(sourced));
  EXPECT_EQ(
      parse_error(R"({"layers": 4, "hidden": 64, "heads": 8, "seq": 8, "pretraining_seq": 9})"),
      "m.json: /pretraining_seq: 9 is out of range; write a whole number from 1 to 8");
}

TEST(OwnModelErrors, Sizes) {
  EXPECT_EQ(parse_error(R"({"layers": -96, "hidden": 12288, "heads": 96, "seq": 2048})"),
            "m.json: /layers: -96 is out of range; write a whole number from 1 to 10000");
  EXPECT_EQ(parse_error(R"({"layers": 96, "hidden": 1e30, "heads": 96, "seq": 2048})"),
            "m.json: /hidden: 1e+30 is out of range; write a whole number from 1 to 10000000");
  EXPECT_EQ(parse_error(R"({"layers": "96", "hidden": 12288, "heads": 96, "seq": 2048})"),
            "m.json: /layers: \"96\" is not a whole number; write a whole number from 1 to 10000");
  EXPECT_EQ(parse_error(R"({"layers": 96.5, "hidden": 12288, "heads": 96, "seq": 2048})"),
            "m.json: /layers: 96.5 is not a whole number; write a whole number from 1 to 10000");
  EXPECT_EQ(parse_error(R"({"layers": 96, "hiden": 12288, "heads": 96, "seq": 2048})"),
            "m.json: the key 'hiden' is unknown; did you mean 'hidden'?");
  EXPECT_EQ(parse_error(R"({"layers": 96, "heads": 96, "seq": 2048})"),
            "m.json: the key 'hidden' is missing; add it");
  EXPECT_EQ(parse_error(R"({"layers": 96, "hidden": 100, "heads": 96, "seq": 2048})"),
            "m.json: 96 heads do not divide a hidden size of 100; state head_dim");
  EXPECT_EQ(parse_error(sizes(R"("kv_heads": 3)")),
            "m.json: 8 heads cannot share 3 key/value heads evenly; the first must be a multiple "
            "of the second");
  EXPECT_EQ(parse_error("[1]"), "m.json: [1] is not an object; write {\"key\": value, ...}");
  EXPECT_EQ(parse_error(sizes(R"("schema": "orrery.model/2")")),
            "m.json: /schema: 'orrery.model/2' is not what is read here; write \"orrery.model/1\"");
  EXPECT_EQ(parse_error(sizes(R"("norm": "rmsnorm")")),
            "m.json: /norm: 'rmsnorm' is unknown; write one of: rms, layer");
  EXPECT_EQ(parse_error(sizes(R"("positions": "rotery")")),
            "m.json: /positions: 'rotery' is unknown; did you mean 'rotary'?");
}

TEST(OwnModelErrors, Experts) {
  EXPECT_EQ(parse_error(sizes(R"("experts": 4, "top_k": 5)")),
            "m.json: a token cannot visit 5 of 4 experts; lower the experts per token");
  EXPECT_EQ(parse_error(sizes(R"("experts": 4)")), "m.json: the key 'top_k' is missing; add it");
  EXPECT_EQ(parse_error(sizes(R"("moe_ffn": 4)")),
            "m.json: /moe_ffn: means nothing in a model without experts; add the key 'experts'");
  EXPECT_EQ(parse_error(sizes(R"("experts": 4, "top_k": 1, "dense_layers": 5)")),
            "m.json: /dense_layers: 5 is out of range; write a whole number from 0 to 4");
  EXPECT_EQ(parse_error(sizes(R"("experts": 4, "top_k": 1, "expert_groups": 3)")),
            "m.json: 4 experts do not form 3 groups of which a token reaches 1; the groups must be "
            "equal, and those that a token reaches hold enough experts");
}

// Every size at its limit at once must be refused before a 64-bit count overflows.
TEST(OwnModelErrors, SizesThatOverflowTogether) {
  const std::string refusal =
      "m.json: has more than 1e16 parameters; check the sizes; the largest known have 1e13";
  EXPECT_EQ(parse_error(R"({"layers": 10000, "hidden": 10000000, "heads": 1, "head_dim": 1,
                            "ffn": 10000000, "seq": 1})"),
            refusal);
  EXPECT_EQ(parse_error(R"({"layers": 1, "hidden": 1, "heads": 100000, "head_dim": 10000000,
                            "seq": 1, "experts": 100000, "top_k": 1, "moe_ffn": 10000000,
                            "vocab": 1000000000})"),
            "no error");  // 4e12 + 3e12 parameters: absurd, but they count.
  EXPECT_EQ(parse_error(R"({"layers": 1, "hidden": 10000000, "heads": 100000, "head_dim": 1,
                            "seq": 1, "mla": {"kv_lora_rank": 1, "qk_head_dim": 1,
                            "qk_pos_emb_head_dim": 1, "v_head_dim": 10000000}})"),
            refusal);
}

// Each kind once, whatever the layers that have it are called.
TEST(Model, LayersThatDifferAreRefusedWithTheirKinds) {
  const auto refusal = [](const std::string& name) {
    return error_text([&] {
      require_alike(read_model(name, {"", "--model"}), "serving", {"", "--model"});
    });
  };
  EXPECT_EQ(refusal("llama3-8b"), "no error");
  EXPECT_EQ(refusal("glm-5.2"),
            "--model: serving of such layers as 'glm-5.2' has (latent_attention) is not known yet; "
            "orrery check --model shows their sizes, and orrery estimate what most of them take in "
            "training");
  EXPECT_NE(refusal("qwen3.5-35b-a3b").find("has (attention, gated_delta_net) is"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::model_test
