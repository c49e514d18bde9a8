#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "sim/core/catalog.hpp"
#include "sim/model/model.hpp"

namespace orrery::parameters_test {
namespace {

const std::string source = ORRERY_TEST_SOURCE;

Model catalog_model(const std::string& name) {
  return read_model(source + "/workloads/models/" + name + ".json", {});
}
Model hugging_face_model(const std::string& name) {
  return read_model(source + "/tests/unit/model/hf/" + name + ".json", {});
}
std::int64_t total(const Model& model) { return count_parameters(model).total; }

struct Published {
  std::string name;
  std::int64_t total;
};

// "Model size" of the checkpoints' model pages, to the last parameter (the sum over the published
// safetensors shapes; DeepSeek-V3 without its prediction layer, Gemma 3 without its image tower).
const std::vector<Published>& published() {
  static const std::vector<Published> models{
      {"llama3.1-8b", 8'030'261'248},     {"llama3.1-70b", 70'553'706'496},
      {"llama3.1-405b", 405'853'388'800}, {"llama3.2-1b", 1'235'814'400},
      {"qwen2.5-7b", 7'615'616'512},      {"qwen3-0.6b", 596'049'920},
      {"qwen3-8b", 8'190'735'360},        {"mixtral-8x7b", 46'702'792'704},
      {"qwen3-30b-a3b", 30'532'122'624},  {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v3", 671'026'419'200},   {"gpt2", 124'439'808},
      {"gpt-neox-20b", 20'554'567'680},   {"gemma-7b", 8'537'680'896},
      {"gemma-2-9b", 9'241'705'984},      {"gemma-3-27b", 27'009'346'304},
      {"opt-125m", 125'239'296},          {"smollm3-3b", 3'075'098'624},
      {"mistral-7b", 7'241'732'096}};
  return models;
}

TEST(Parameters, ConfigFilesGiveThePublishedTotals) {
  ASSERT_EQ(published().size(), 19u);
  for (const auto& [name, expected] : published())
    EXPECT_EQ(total(hugging_face_model(name)), expected) << name;
}

TEST(Parameters, TheCatalogGivesThePublishedTotals) {
  for (const auto& [name, expected] : published())
    EXPECT_EQ(total(catalog_model(name)), expected) << name;
}

TEST(Parameters, FurtherCatalogModelsHaveTheirPublishedTotals) {
  // The same pages; Nemotron-4 by its name.
  for (const auto& [name, expected] :
       std::vector<Published>{{"llama2-7b", 6'738'415'616},       {"llama2-13b", 13'015'864'320},
                              {"llama2-70b", 68'976'648'192},     {"qwen2.5-14b", 14'770'033'664},
                              {"qwen2.5-32b", 32'763'876'352},    {"qwen2.5-72b", 72'706'203'648},
                              {"qwen3-14b", 14'768'307'200},      {"qwen3-32b", 32'762'123'264},
                              {"gpt-oss-120b", 116'829'156'672},  {"deepseek-v2", 235'741'434'880},
                              {"kimi-k2", 1'026'408'232'448},     {"llama3.2-3b", 3'212'749'824},
                              {"mistral-7b-v0.3", 7'248'023'552}, {"opt-1.3b", 1'315'758'080},
                              {"opt-2.7b", 2'651'596'800},        {"opt-6.7b", 6'658'473'984},
                              {"opt-13b", 12'853'473'280},        {"opt-30b", 29'974'540'288},
                              {"opt-66b", 65'719'701'504},        {"qwen2.5-0.5b", 494'032'768},
                              {"qwen2.5-1.5b", 1'543'714'304},    {"qwen2.5-3b", 3'085'938'688},
                              {"qwen3-1.7b", 1'720'574'976},      {"qwen3-4b", 4'022'468'096},
                              {"smollm-135m", 134'515'008},       {"smollm-360m", 361'821'120},
                              {"smollm-1.7b", 1'711'376'384},     {"smollm2-135m", 134'515'008},
                              {"smollm2-360m", 361'821'120},      {"smollm2-1.7b", 1'711'376'384}})
    EXPECT_EQ(total(catalog_model(name)), expected) << name;
  EXPECT_NEAR(static_cast<double>(total(catalog_model("nemotron-4-340b"))), 341e9, 0.5e9);
  // Published without its table: GPT-3's layers, and OPT's 50,272 + 2,050 rows of 12,288.
  EXPECT_EQ(total(catalog_model("opt-175b")) - 12'288 * (50'272 + 2'050),
            total(catalog_model("gpt3-175b")) - 12'288 * (51'200 + 2'048));
}

TEST(Parameters, ConfigFileAndCatalogDescribeTheSameShape) {
  for (const auto& [name, unused] : published()) {
    SCOPED_TRACE(name);
    const Model file = hugging_face_model(name), ours = catalog_model(name);
    EXPECT_EQ(file.name, ours.name);
    EXPECT_EQ(file.layers, ours.layers);
    EXPECT_EQ(file.hidden, ours.hidden);
    EXPECT_EQ(file.heads, ours.heads);
    EXPECT_EQ(file.kv_heads, ours.kv_heads);
    EXPECT_EQ(file.head_dim, ours.head_dim);
    EXPECT_EQ(file.ffn, ours.ffn);
    EXPECT_EQ(file.gated, ours.gated);
    EXPECT_EQ(file.vocab, ours.vocab);
    EXPECT_EQ(file.max_sequence, ours.max_sequence);
    EXPECT_EQ(file.tied_embeddings, ours.tied_embeddings);
    EXPECT_EQ(file.learned_positions, ours.learned_positions);
    EXPECT_EQ(file.rotary, ours.rotary);
    EXPECT_EQ(file.norm, ours.norm);
    EXPECT_EQ(file.norms_per_layer, ours.norms_per_layer);
    EXPECT_EQ(file.qk_norm, ours.qk_norm);
    EXPECT_EQ(file.parallel_residual, ours.parallel_residual);
    EXPECT_EQ(file.window, ours.window);
    EXPECT_EQ(file.layer_is_local, ours.layer_is_local);
    EXPECT_EQ(file.layer_has_experts, ours.layer_has_experts);
    EXPECT_EQ(file.prediction_layers, ours.prediction_layers);
    ASSERT_EQ(file.experts.has_value(), ours.experts.has_value());
    if (file.experts) {
      EXPECT_EQ(file.experts->shared_ffn, ours.experts->shared_ffn);
      EXPECT_EQ(file.experts->groups, ours.experts->groups);
      EXPECT_EQ(file.experts->groups_per_token, ours.experts->groups_per_token);
    }
    EXPECT_EQ(count_parameters(file).layers, count_parameters(ours).layers);
    EXPECT_EQ(count_parameters(file).active, count_parameters(ours).active);
  }
}

// Narayanan et al., SC'21, equation 2: P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), which
// leaves out the final norm's 2 h. Table 1 prints it in billions, rounded to the tenth.
TEST(Parameters, MegatronSeriesIsEquationTwoAndTableOne) {
  const std::vector<std::pair<std::string, double>> table{
      {"1.7b", 1.7},   {"3.6b", 3.6},     {"7.5b", 7.5},     {"18.4b", 18.4},   {"39.1b", 39.1},
      {"76.1b", 76.1}, {"145.6b", 145.6}, {"310.1b", 310.1}, {"529.6b", 529.6}, {"1008b", 1008.0}};
  for (const auto& [size, billions] : table) {
    const Model model = catalog_model("megatron-" + size);
    const std::int64_t l = model.layers, h = model.hidden;
    EXPECT_EQ(total(model), 12 * l * h * h + 13 * l * h + (51'200 + 2'048) * h + 2 * h);
    EXPECT_NEAR(static_cast<double>(total(model)) / 1e9, billions, 0.0501) << size;
  }
}

TEST(Parameters, ActiveCountsOnlyVisitedExperts) {
  // Mixtral leaves out 6 of 8 experts of 3 * 4096 * 14336 in each of 32 layers.
  const ParameterCount mixtral = count_parameters(catalog_model("mixtral-8x7b"));
  EXPECT_EQ(mixtral.total - mixtral.active, std::int64_t{32} * 6 * 3 * 4096 * 14336);
  // DeepSeek-V3's report: 37e9 activated.
  EXPECT_NEAR(static_cast<double>(count_parameters(catalog_model("deepseek-v3")).active), 37.5e9,
              0.5e9);
  const ParameterCount dense = count_parameters(catalog_model("llama3-8b"));
  EXPECT_EQ(dense.total, dense.active);
}

TEST(Parameters, PartsAddUpToTheTotalOfEveryCatalogModel) {
  for (const auto& file : std::filesystem::directory_iterator{source + "/workloads/models"}) {
    const Model model = read_model(file.path().string(), {});
    SCOPED_TRACE(model.name);
    if (model.pattern) continue;  // LayerPattern.CountsThatWereWorkedOut
    const ParameterCount count = count_parameters(model);
    ASSERT_EQ(count.layers.size(), static_cast<std::size_t>(model.layers));
    std::int64_t sum = count.embedding + count.head + count.final_norm;
    for (int i = 0; i < model.layers; ++i) {
      EXPECT_EQ(count.layers[static_cast<std::size_t>(i)],
                attention_parameters(model) + mlp_parameters(model, i) +
                    model.norms_per_layer * norm_parameters(model, model.hidden));
      sum += count.layers[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(sum, count.total);
    EXPECT_LE(count.active, count.total);
  }
}

// h = 8, 2 heads of 4, 1 key/value head, f = 16, V = 100, by hand.
TEST(Parameters, EveryFlagAddsItsVectors) {
  Model model;
  model.layers = 1;
  model.hidden = 8;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_dim = 4;
  model.ffn = 16;
  model.vocab = 100;
  EXPECT_EQ(attention_parameters(model), 8 * 8 + 2 * 8 * 4 + 8 * 8);
  EXPECT_EQ(mlp_parameters(model, 0), 2 * 8 * 16);
  EXPECT_EQ(norm_parameters(model, 8), 8);
  const auto added = [&](auto change) {
    Model changed = model;
    change(changed);
    return total(changed) - total(model);
  };
  EXPECT_EQ(added([](Model& m) { m.qkv_bias = true; }), 8 + 2 * 4);
  EXPECT_EQ(added([](Model& m) { m.out_bias = true; }), 8);
  EXPECT_EQ(added([](Model& m) { m.mlp_bias = true; }), 16 + 8);
  EXPECT_EQ(added([](Model& m) { m.gated = true; }), 8 * 16);
  EXPECT_EQ(added([](Model& m) { m.gated = m.mlp_bias = true; }), 8 * 16 + 2 * 16 + 8);
  EXPECT_EQ(added([](Model& m) { m.qk_norm = true; }), 2 * 4);
  EXPECT_EQ(added([](Model& m) { m.attention_sinks = true; }), 2);
  EXPECT_EQ(added([](Model& m) { m.norm_bias = true; }), 3 * 8);  // Two a layer, one final.
  EXPECT_EQ(added([](Model& m) { m.norms_per_layer = 4; }), 2 * 8);
  EXPECT_EQ(added([](Model& m) { m.tied_embeddings = true; }), -100 * 8);
  EXPECT_EQ(added([](Model& m) { m.learned_positions = 32; }), 32 * 8);
  // Two experts of 3 * 8 wide 4, a shared one of 5 wide, router 2 * 8, two correction biases.
  EXPECT_EQ(added([](Model& m) {
              m.experts = Experts{
                  .count = 2, .per_token = 1, .ffn = 4, .shared_ffn = 5, .correction_bias = true};
              m.layer_has_experts = {true};
            }),
            (2 * 2 * 8 * 4 + 2 * 8 * 5 + 2 * 8 + 2) - 2 * 8 * 16);
}

// Queries projected in one step, as DeepSeek-V2-Lite does (q_lora_rank null).
TEST(Parameters, LatentAttentionWithoutQueryRank) {
  Model model;
  model.hidden = 10;
  model.heads = 2;
  model.latent =
      LatentAttention{.q_rank = 0, .kv_rank = 3, .nope_dim = 4, .rope_dim = 1, .v_dim = 5};
  EXPECT_EQ(attention_parameters(model),
            10 * 2 * (4 + 1) + 10 * (3 + 1) + 3 + 3 * 2 * (4 + 5) + 2 * 5 * 10);
}

}  // namespace
}  // namespace orrery::parameters_test
