// Models as patterns of layers: a pattern of layers that are alike is the model without one, in
// every figure; and patterns of unlike layers take the same time by every shortcut.
#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/mixers/attention.hpp"
#include "sim/model/mixers/latent_attention.hpp"
#include "tests/exhaustive/all_plans.hpp"

namespace orrery::patterns_test {
namespace {

MixerPointer mixer_of(const Model& model, bool is_local) {
  if (const auto& latent = model.latent) {
    auto mixer = std::make_shared<LatentAttentionMixer>();
    mixer->heads = model.heads;
    mixer->q_rank = latent->q_rank;
    mixer->kv_rank = latent->kv_rank;
    mixer->nope_dim = latent->nope_dim;
    mixer->rope_dim = latent->rope_dim;
    mixer->value_dim = latent->v_dim;
    return mixer;
  }
  auto mixer = std::make_shared<Attention>();
  mixer->heads = model.heads;
  mixer->kv_heads = model.kv_heads;
  mixer->head_dim = mixer->value_dim = model.head_dim;
  mixer->window = is_local ? model.window : 0;
  mixer->rotary = model.rotary;
  mixer->qk_norm = model.qk_norm;
  mixer->wide_qk_norm = model.wide_qk_norm;
  mixer->qkv_bias = model.qkv_bias;
  mixer->out_bias = model.out_bias;
  mixer->sinks = model.attention_sinks;
  return mixer;
}

// The same model, described layer by layer.
Model as_pattern(const Model& model) {
  auto pattern = std::make_shared<LayerPattern>();
  pattern->mixers = {{"global", mixer_of(model, false)}, {"local", mixer_of(model, true)}};
  FeedForward mlp;
  mlp.width = model.ffn;
  mlp.gated = model.gated;
  mlp.bias = model.mlp_bias;
  FeedForward experts = mlp;
  experts.width = 0;
  experts.experts = model.experts;
  pattern->ffns = {{"mlp", mlp}, {"moe", experts}};
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(model.layers); ++layer) {
    const bool is_local = !model.layer_is_local.empty() && model.layer_is_local[layer];
    const bool has_experts = !model.layer_has_experts.empty() && model.layer_has_experts[layer];
    pattern->layers.push_back({is_local ? 1 : 0, has_experts ? 1 : 0});
  }
  pattern->norms_of_part = model.norms_per_layer / 2;
  Model as = model;
  as.pattern = std::move(pattern);
  as.experts.reset();
  as.latent.reset();
  as.layer_has_experts.clear();
  as.layer_is_local.clear();
  as.heads = as.kv_heads = as.head_dim = as.ffn = as.window = 0;
  describe_layers(as);
  return as;
}

void expect_equal(const Scenario& alike, const Scenario& pattern, EstimateContext& context) {
  const Estimate a = estimate(alike, context), b = estimate(pattern, context);
  EXPECT_EQ(a.result.step_time, b.result.step_time);
  for (const bool causal : {false, true})
    EXPECT_DOUBLE_EQ(model_flop(alike.model, 1, alike.plan.seq, causal).si(),
                     model_flop(pattern.model, 1, alike.plan.seq, causal).si());
  for (const RecomputeChoice& choice :
       {RecomputeChoice{Recompute::none}, RecomputeChoice{Recompute::full}}) {
    Scenario one = alike, other = pattern;
    one.plan.recompute = other.plan.recompute = choice;
    const MemoryReport memory = memory_of(one), same = memory_of(other);
    for (std::size_t stage = 0; stage < memory.stages.size(); ++stage) {
      EXPECT_EQ(memory.stages[stage].peak(), same.stages[stage].peak());
      EXPECT_EQ(memory.stages[stage].activations, same.stages[stage].activations);
    }
  }
}

Model small(bool gated, bool local) {
  Model model = small_gpt(8, 256, 8, 2048);
  model.gated = gated;
  model.kv_heads = 4;
  if (!local) return model;
  model.window = 60;
  for (int layer = 0; layer < model.layers; ++layer) model.layer_is_local.push_back(layer % 3 != 0);
  return model;
}

TEST(Patterns, OfLayersThatAreAlikeAreTheModelItself) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  for (const bool gated : {false, true})
    for (const bool local : {false, true}) {
      const Model model = small(gated, local), pattern = as_pattern(model);
      EXPECT_EQ(count_parameters(model).total, count_parameters(pattern).total);
      const int plans = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
        SCOPED_TRACE(describe(scenario));
        Scenario other = scenario;
        other.model = pattern;
        expect_equal(scenario, other, context);
      });
      EXPECT_GT(plans, 50);
    }
}

// Published models of every kind, with experts, latent attention, prediction layers and windows.
TEST(Patterns, OfCatalogModelsAreTheModelsThemselves) {
  const System system = read_system("dgx-h100", test_place);
  EstimateContext context{system};
  for (const char* name : {"llama3-8b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma-2-9b", "mpt-7b",
                           "opt-6.7b", "deepseek-v3", "mixtral-8x7b", "qwen2.5-7b"}) {
    const Model model = read_model(name, test_place), pattern = as_pattern(model);
    const ParameterCount one = count_parameters(model), same = count_parameters(pattern);
    EXPECT_EQ(one.total, same.total) << name;
    EXPECT_EQ(one.active, same.active) << name;
    for (const int tp : {1, 2})
      for (const int cp : {1, 2})
        for (const int zero : {1, 3}) {
          PlanRequest request;
          request.tp = tp;
          request.cp = cp;
          request.cp_comm = cp > 1 ? ContextExchange::all_gather : ContextExchange::p2p;
          request.ep = model.experts ? 8 : 1;
          request.zero = zero;
          request.sp = tp > 1;
          request.gbs = 128;
          request.mbs = 1;
          request.seq = 4096;
          SCOPED_TRACE(std::string{name} + " tp=" + std::to_string(tp) +
                       " cp=" + std::to_string(cp) + " zero=" + std::to_string(zero));
          try {
            const Scenario scenario = scenario_of(model, system, request, 64);
            Scenario other = scenario;
            other.model = pattern;
            expect_equal(scenario, other, context);
          } catch (const Error& error) {
            if (error.kind() != Error::Kind::infeasible) throw;
          }
        }
  }
}

const char* const hybrid = R"({"hidden": 256, "vocab": 2048, "seq": 240,
  "mixers": {"full": {"kind": "attention", "heads": 8, "kv_heads": 4, "head_dim": 32},
             "gdn": {"kind": "gated_delta_net", "key_heads": 8, "value_heads": 16, "key_dim": 32,
                     "value_dim": 32, "conv": 4},
             "ssm": {"kind": "mamba2", "heads": 16, "head_dim": 32, "state": 64, "groups": 8,
                     "conv": 4, "chunk": 64}},
  "ffns": {"mlp": {"width": 1024}},
  "pattern": )";

// Layers in orders in which no two stages need be alike, with half layers among them.
TEST(Patterns, OfUnlikeLayersTakeOneTimeByEveryShortcut) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  for (const char* pattern :
       {R"([[2, ["gdn+mlp", "gdn+mlp", "gdn+mlp", "full+mlp"]]]})",
        R"([[1, ["ssm+none", "none+mlp", "ssm+none", "full+none", "none+mlp", "ssm+none"]],
            [2, ["none+mlp"]]]})",
        R"([[2, ["ssm+mlp", "full+mlp", "gdn+none", "none+mlp"]]]})"}) {
    const Model model = parse_model(JsonValue::parse(std::string{hybrid} + pattern, "hybrid.json"));
    const int plans = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
      SCOPED_TRACE(describe(scenario) + " " + pattern);
      expect_one_time(scenario, context);
    });
    EXPECT_GT(plans, 50);
  }
}

// What ranks hold of a model on one stage, all of them together with each copy once.
TEST(Patterns, RanksHoldAllParameters) {
  const System system = read_system("dgx-h100", test_place);
  const std::string file =
      std::string{ORRERY_TEST_SOURCE} + "/tests/unit/model/data/layer_patterns.json";
  int priced = 0;
  for (const JsonValue& one : JsonValue::read_file(file).elements()) {
    const Model model = parse_model(one.at("model"));
    PlanRequest request;
    request.gbs = 64;
    request.mbs = 1;
    request.seq = 4096;
    try {
      const Scenario scenario = scenario_of(model, system, request, 64);
      const std::int64_t padding =
          (scenario.padded_vocab - model.vocab) * model.hidden * (model.tied_embeddings ? 1 : 2);
      const ParameterCount count = count_parameters(model);
      const std::int64_t held = parameters_on_rank(scenario, 0).sum();
      // Ranks do not count biases of the router's correction, sinks and norms' biases.
      EXPECT_NEAR(static_cast<double>(held - padding), static_cast<double>(count.total),
                  1e-5 * static_cast<double>(count.total))
          << model.name;
      ++priced;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::infeasible) << model.name << ": " << error.what();
    }
  }
  EXPECT_GE(priced, 14);
}

}  // namespace
}  // namespace orrery::patterns_test
