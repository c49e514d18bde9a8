#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/core/catalog.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/plan/plan_keys.hpp"
#include "tests/support/key_samples.hpp"

namespace orrery::megatron_flags_test {
namespace {

Scenario scenario(const std::string& model, const std::string& system, int gpus,
                  const PlanRequest& request) {
  return scenario_of(read_model(model, test_place), read_system(system, test_place), request, gpus);
}

bool has(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

PlanRequest llama_request() {
  PlanRequest request = plan_request(2, 2, 1, 128, 8192, "megatron-core");
  request.vpp = 4;
  request.recompute = Recompute::full;
  return request;
}

TEST(MegatronFlags, OfADensePlan) {
  const MegatronFlags flags =
      megatron_flags(scenario("llama3-8b", "dgx-h100", 16, llama_request()));
  EXPECT_EQ(flags.left_out, std::vector<std::string>{});
  const std::vector<std::string> expected{
      "--tensor-model-parallel-size 2",
      "--pipeline-model-parallel-size 2",
      "--sequence-parallel",
      "--use-distributed-optimizer",
      "--num-layers-per-virtual-pipeline-stage 4",  // 32 layers on 2 stages of 4 chunks.
      "--micro-batch-size 1",
      "--global-batch-size 128",
      "--seq-length 8192",
      "--recompute-granularity full",
      "--recompute-method uniform",
      "--recompute-num-layers 1",
      "--num-layers 32",
      "--hidden-size 4096",
      "--ffn-hidden-size 14336",
      "--num-attention-heads 32",
      "--vocab-size 128256",
      "--max-position-embeddings 8192",
      "--swiglu",
      "--normalization RMSNorm",
      "--position-embedding-type rope",
      "--untie-embeddings-and-output-weights",
      "--disable-bias-linear",
      "--attention-dropout 0.0",
      "--hidden-dropout 0.0",
      "--group-query-attention",
      "--num-query-groups 8",
      "--attention-backend flash",
      "--bf16",
      "--grad-reduce-in-bf16",
      "--overlap-grad-reduce",
      "--overlap-param-gather",
      "--tp-comm-overlap"};
  EXPECT_EQ(flags.flags, expected);
}

// 61 layers on 16 stages before a prediction layer: 15 times four, and the last takes what is left.
TEST(MegatronFlags, OfExpertsAndUnevenStages) {
  PlanRequest request = plan_request(1, 16, 1, 1024, 4096, "megatron-core");
  request.ep = 8;
  request.routing = "zipf:1.2";
  request.moe_dispatcher = ExpertDispatcher::deepep;
  request.dtype = Dtype::fp8;
  const MegatronFlags flags = megatron_flags(scenario("deepseek-v3", "dgx-h100", 128, request));
  for (const char* flag :
       {"--pipeline-model-parallel-layout "
        "'Etttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tmL'",
        "--multi-latent-attention",
        "--q-lora-rank 1536",
        "--kv-lora-rank 512",
        "--qk-head-dim 128",
        "--qk-pos-emb-head-dim 64",
        "--v-head-dim 128",
        "--mtp-num-layers 1",
        "--expert-model-parallel-size 8",
        "--expert-tensor-parallel-size 1",
        "--num-experts 256",
        "--moe-router-topk 8",
        "--moe-ffn-hidden-size 2048",
        "--moe-shared-expert-intermediate-size 2048",
        "--moe-layer-freq '[0]*3+[1]*58'",
        "--moe-router-num-groups 8",
        "--moe-router-group-topk 4",
        "--moe-router-enable-expert-bias",
        "--moe-token-dispatcher-type flex",
        "--moe-flex-dispatcher-backend deepep",
        "--fp8-format hybrid"})
    EXPECT_TRUE(has(flags.flags, flag)) << flag;
  EXPECT_EQ(flags.left_out, (std::vector<std::string>{
                                "routing=zipf:1.2: the data decide which experts tokens choose",
                                "fp8: which scaling (--fp8-recipe) the plan does not say"}));
}

TEST(MegatronFlags, OfCudaGraphs) {
  PlanRequest request = plan_request(1, 1, 1, 64, 4096, "megatron-bridge");
  const auto scope = [&](CudaGraphs graphs) {
    request.cuda_graphs = graphs;
    const MegatronFlags flags = megatron_flags(scenario("qwen3-30b-a3b", "dgx-h100", 64, request));
    std::string said;
    for (const std::string& flag : flags.flags)
      if (flag.starts_with("--cuda-graph")) said += flag.substr(13) + ";";
    return said;
  };
  EXPECT_EQ(scope(CudaGraphs::none), "");
  EXPECT_EQ(scope(CudaGraphs::router), "impl transformer_engine;scope moe_router moe_preprocess;");
  EXPECT_EQ(scope(CudaGraphs::attention), "impl transformer_engine;scope attn;");
  EXPECT_EQ(scope(CudaGraphs::attention_router),
            "impl transformer_engine;scope attn moe_router moe_preprocess;");
  EXPECT_EQ(scope(CudaGraphs::step), "impl local;scope full_iteration;");
}

// Features that Megatron-LM lacks are reported, and nothing takes their place.
TEST(MegatronFlags, SaysWhatHasNoFlag) {
  PlanRequest request = plan_request(1, 2, 1, 8, 2048, "torchtitan");
  request.schedule = &gpipe();
  request.zero = 3;
  const MegatronFlags flags = megatron_flags(scenario("mpt-7b", "dgx-a100-80gb", 4, request));
  EXPECT_EQ(flags.left_out, (std::vector<std::string>{
                                "reshard=false: Megatron-FSDP frees weights after each pass",
                                "schedule=gpipe: Megatron-LM has 1F1B and interleaved 1F1B",
                                "norm_bias=false: Megatron-LM's LayerNorm has one",
                                "software=torchtitan: the flags are of current Megatron-Core"}));
  EXPECT_TRUE(has(flags.flags, "--data-parallel-sharding-strategy optim_grads_params"));
  EXPECT_TRUE(has(flags.flags, "--position-embedding-type none"));
}

// Without sequence parallelism no flag keeps the gradients' all-reduce from overlapping.
TEST(MegatronFlags, SaysThatGradientsOverlapByThemselves) {
  PlanRequest request = plan_request(2, 1, 1, 8, 1024, "megatron-core");
  request.sp = false;
  EXPECT_EQ(megatron_flags(scenario("gpt2", "dgx-h100", 8, request)).left_out,
            std::vector<std::string>{});
  request.tp_overlap = false;
  EXPECT_EQ(megatron_flags(scenario("gpt2", "dgx-h100", 8, request)).left_out,
            std::vector<std::string>{
                "tp_overlap=false: without sequence parallelism Megatron-LM overlaps the "
                "gradients' all-reduce"});
}

// A key with another value makes other flags or is reported as left out. The number of replicas
// follows from the number of GPUs.
TEST(MegatronFlags, CoverEveryKey) {
  for (const KeySample& sample : key_samples()) {
    const Scenario before = sample.scenario(sample.without);
    const Scenario after = sample.scenario(sample.with);
    if (before.plan == after.plan || sample.key == "dp") continue;
    const MegatronFlags flags = megatron_flags(before);
    const MegatronFlags others = megatron_flags(after);
    EXPECT_TRUE(flags.flags != others.flags || flags.left_out != others.left_out)
        << "--" << sample.key << " " << sample.word;
  }
}

// A flag stands once, whatever the plan; a shell takes the text as it is.
TEST(MegatronFlags, EveryFlagStandsOnce) {
  for (const char* model : {"gpt3-175b", "llama3-70b", "mixtral-8x7b", "deepseek-v3"}) {
    PlanRequest request = plan_request(1, 1, 1, 64, 2048, "megatron-core");
    request.recompute = Recompute::selective;
    const MegatronFlags flags = megatron_flags(scenario(model, "dgx-h100", 8, request));
    std::vector<std::string> names;
    for (const std::string& flag : flags.flags) names.push_back(flag.substr(0, flag.find(' ')));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << model;
  }
  EXPECT_EQ(megatron_text({{"--a 1", "--b"}, {}}), "--a 1 \\\n--b\n");
}

// Flags read back make a plan and a model whose flags are the same, of every catalog model whose
// layers Megatron-LM has, and of plans of all kinds.
TEST(MegatronFlags, ReadBackAreTheSame) {
  int plans = 0;
  for (const char* model :
       {"gpt3-175b", "llama3-8b", "llama3.1-405b", "qwen2.5-72b", "qwen3-8b", "nemotron-4-15b",
        "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3"})
    for (const int tp : {1, 2, 8})
      for (const int pp : {1, 4})
        for (const char* recompute : {"none", "full", "selective:core_attn"})
          for (const char* dtype : {"fp16", "bf16", "fp8", "mxfp8", "nvfp4"})
            for (const int zero : {0, 1, 2, 3}) {
              if (zero >= 2 && pp > 1) continue;
              PlanRequest request = plan_request(tp, pp, 2, 2048, 2048, "megatron-core");
              set_plan_flag(request, "recompute", recompute);
              set_plan_flag(request, "dtype", dtype);
              request.zero = zero;
              request.sp = tp > 1;
              if (std::string{dtype} == "nvfp4") {
                request.bf16_start_layers = tp - 1;
                request.bf16_end_layers = pp;
              }
              const Model shape = read_model(model, test_place);
              if (shape.experts) {
                if (zero >= 2) continue;
                request.ep = 8;
                request.moe_dispatcher = tp == 2   ? ExpertDispatcher::all_gather
                                         : tp == 8 ? ExpertDispatcher::deepep
                                                   : ExpertDispatcher::all_to_all;
              }
              const System system = read_system("dgx-b200", test_place);
              const Scenario first = scenario_of(shape, system, request, 256);
              const std::string text = megatron_text(megatron_flags(first));
              const ImportedRun run =
                  import_megatron_run(MegatronArguments::read(text, "flags", {}), shape.name);
              const JsonValue plan = JsonValue::parse(run.json, "run.json");
              PlanRequest again;
              again.software = "megatron-core";
              for (const std::string& key : plan.keys())
                if (find_plan_key(key)) set_plan_key(again, key, plan.at(key));
              const Scenario second =
                  scenario_of(parse_model(plan.at("model")), system, again, 256);
              ASSERT_EQ(megatron_text(megatron_flags(second)), text);
              ASSERT_EQ(count_parameters(second.model).total, count_parameters(shape).total);
              ++plans;
            }
  EXPECT_GT(plans, 1000);
}

// Keys of a model's file, as far as a step depends on them, and a plan's.
std::map<std::string, std::string> keys_of(const Scenario& scenario) {
  const Model& model = scenario.model;
  const auto bits = [](const std::vector<bool>& flags) {
    std::string text;
    for (const bool flag : flags) text += flag ? '1' : '0';
    return text.find('1') == text.npos ? std::string{} : text;
  };
  const LatentAttention mla = model.latent.value_or(LatentAttention{});
  const Experts experts = model.experts.value_or(Experts{});
  const auto number = [](auto value) { return std::to_string(value); };
  std::map<std::string, std::string> keys{
      {"layers", number(model.layers)},
      {"hidden", number(model.hidden)},
      {"heads", number(model.heads)},
      {"kv_heads", number(model.kv_heads)},
      {"head_dim", number(model.head_dim)},
      {"ffn", number(model.ffn)},
      {"vocab", number(scenario.padded_vocab)},
      {"swiglu", number(model.gated)},
      {"norm", number(model.norm == NormKind::rms)},
      {"norm_bias", number(model.norm_bias)},
      {"norms_per_layer", number(model.norms_per_layer)},
      {"qk_norm", number(model.qk_norm)},
      {"positions", number(model.rotary) + number(model.scaled_rotary)},
      {"position_rows", number(model.learned_positions)},
      {"qkv_bias", number(model.qkv_bias)},
      {"out_bias", number(model.out_bias)},
      {"mlp_bias", number(model.mlp_bias)},
      {"attention_sinks", number(model.attention_sinks)},
      {"clamped_activation", number(model.clamped_activation)},
      {"parallel_residual", number(model.parallel_residual)},
      {"tied_embeddings", number(model.tied_embeddings)},
      {"mla", number(mla.q_rank) + " " + number(mla.kv_rank) + " " + number(mla.nope_dim) + " " +
                  number(mla.rope_dim) + " " + number(mla.v_dim)},
      {"window", bits(model.layer_is_local).empty() ? "" : number(model.window)},
      {"global_every", bits(model.layer_is_local)},
      {"prediction_layers", number(model.prediction_layers)},
      {"experts", number(experts.count)},
      {"top_k", number(experts.per_token)},
      {"moe_ffn", number(experts.ffn)},
      {"shared_expert_ffn", number(experts.shared_ffn)},
      {"moe_every", bits(model.layer_has_experts)},
      {"expert_groups", number(experts.groups)},
      {"groups_per_token", number(experts.groups_per_token)},
      {"correction_bias", number(experts.correction_bias)}};
  for (const PlanKey& key : plan_keys()) keys["plan's " + key.name] = key.text(scenario.plan);
  return keys;
}

// Expects that flags which are read back make the same model and plan, but for keys that a note
// names.
void expect_no_key_lost(const Scenario& first, const MegatronFlags& flags) {
  const ImportedRun run = import_megatron_run(
      MegatronArguments::read(megatron_text(flags), "flags", {}), first.model.name);
  const JsonValue plan = JsonValue::parse(run.json, "run.json");
  PlanRequest again;
  for (const std::string& key : plan.keys())
    if (find_plan_key(key)) set_plan_key(again, key, plan.at(key));
  again.software = first.plan.software;
  const Scenario second =
      scenario_of(parse_model(plan.at("model")), first.system, again, first.plan.gpus());
  const std::map<std::string, std::string> after = keys_of(second);
  for (const auto& [key, before] : keys_of(first)) {
    // Graphs of a part of a layer are read of models with experts alone; the import says so.
    if (key == "plan's cuda_graphs" && !first.model.experts && !run.notes.empty()) continue;
    // Of frozen weights, whose method a note names.
    if (key == "plan's base_format" && !first.plan.trains_weights()) continue;
    const std::string said = key.substr(key.rfind(' ') + 1);
    const auto names_it = [&](const std::string& note) { return note.find(said) != note.npos; };
    EXPECT_TRUE(before == after.at(key) ||
                std::any_of(flags.left_out.begin(), flags.left_out.end(), names_it))
        << first.model.name << ": " << key << " " << before << " -> " << after.at(key) << ", "
        << testing::PrintToString(flags.left_out);
  }
}

// Of models with a pattern of layers that Megatron-LM has: stages that divide them evenly, chunks,
// and stages of different lengths. Megatron-LM counts a mixer and a feed-forward part as a layer
// each, so what one of its layers keeps under full recomputation is another.
TEST(MegatronFlags, PatternsReadBackAreTheSame) {
  const System system = read_system("gb200-nvl72", test_place);
  int plans = 0;
  for (const char* name :
       {"nemotron-3-nano-30b-a3b", "nemotron-3-super-120b-a12b", "nemotron-3-ultra-550b-a55b",
        "nemotron-h-56b", "qwen3-next-80b-a3b", "qwen3.5-397b-a17b", "qwen3.5-27b",
        "granite-4.0-h-small", "bamba-9b", "qwen3.5-122b-a10b"})
    for (const int tp : {1, 2})
      for (const int pp : {1, 2, 4, 5}) {
        SCOPED_TRACE(std::string{name} + " tp " + std::to_string(tp) + " pp " + std::to_string(pp));
        PlanRequest request = plan_request(tp, pp, 1, 640, 4096, "megatron-core");
        request.sp = tp > 1;
        request.vpp = pp == 2 ? 2 : 1;
        const Model shape = read_model(name, test_place);
        if (shape.experts) request.ep = 8;
        const int gpus = pp == 5 ? 80 : 64;
        const Scenario first = scenario_of(shape, system, request, gpus);
        const MegatronFlags flags = megatron_flags(first);
        EXPECT_EQ(flags.left_out, std::vector<std::string>{});
        const std::string text = megatron_text(flags);
        const ImportedRun run =
            import_megatron_run(MegatronArguments::read(text, "flags", {}), shape.name);
        const JsonValue plan = JsonValue::parse(run.json, "run.json");
        PlanRequest again;
        again.software = "megatron-core";
        for (const std::string& key : plan.keys())
          if (find_plan_key(key)) set_plan_key(again, key, plan.at(key));
        const Scenario second = scenario_of(parse_model(plan.at("model")), system, again, gpus);
        EXPECT_EQ(megatron_text(megatron_flags(second)), text);
        EXPECT_EQ(count_parameters(second.model).total, count_parameters(shape).total);
        EXPECT_EQ(count_parameters(second.model).active, count_parameters(shape).active);
        ++plans;
      }
  EXPECT_EQ(plans, 80);
}

// pretrain_gpt.py has gated delta nets and attention in layers of two parts.
TEST(MegatronFlags, OfGatedDeltaNets) {
  const MegatronFlags flags = megatron_flags(scenario(
      "qwen3-next-80b-a3b", "dgx-b200", 64, plan_request(1, 2, 1, 64, 4096, "megatron-core")));
  for (const char* flag :
       {"--num-layers 48", "--experimental-attention-variant gated_delta_net",
        "--linear-attention-freq 4", "--linear-num-key-heads 16", "--linear-num-value-heads 32",
        "--linear-key-head-dim 128", "--linear-value-head-dim 128", "--linear-conv-kernel-dim 4",
        "--attention-output-gate", "--qk-layernorm", "--kv-channels 256", "--num-query-groups 2",
        "--moe-shared-expert-gate"})
    EXPECT_TRUE(has(flags.flags, flag)) << flag;
  const MegatronFlags wide = megatron_flags(
      scenario("olmo-hybrid-7b", "dgx-b200", 64, plan_request(1, 1, 1, 64, 4096, "megatron-core")));
  EXPECT_EQ(wide.left_out,
            std::vector<std::string>{"wide_qk_norm=true: a norm of Megatron-LM spans one head"});
}

TEST(MegatronFlags, OfMambaAndPredictionModules) {
  PlanRequest request = plan_request(2, 4, 1, 64, 4096, "megatron-core");
  request.sp = true;
  request.ep = 16;
  const MegatronFlags flags =
      megatron_flags(scenario("nemotron-3-super-120b-a12b", "gb200-nvl72", 64, request));
  for (const char* flag :
       {"--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec",
        "--hybrid-layer-pattern 'MEMEMEM*EMEMEMEM*EMEME|MEM*EMEMEMEMEM*EMEMEME|"
        "MEM*EMEMEMEMEM*EMEMEME|MEM*EMEMEMEM*EMEMEMEME/*E/*E'",
        "--mtp-use-repeated-layer", "--mamba-num-heads 128", "--mamba-head-dim 64",
        "--mamba-state-dim 128", "--mamba-num-groups 8", "--moe-latent-size 1024",
        "--position-embedding-type none"})
    EXPECT_TRUE(has(flags.flags, flag)) << flag;
  for (const std::string& flag : flags.flags)
    for (const char* name : {"--num-layers", "--mtp-num-layers", "--moe-layer-freq",
                             "--pipeline-model-parallel-layout"})
      EXPECT_FALSE(flag.starts_with(name)) << flag;
}

TEST(MegatronFlags, RefuseLayersThatMegatronLacks) {
  const auto remedy_of = [](const char* name) {
    try {
      megatron_flags(
          scenario(name, "dgx-b200", 64, plan_request(1, 1, 1, 64, 4096, "megatron-core")));
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const std::map<std::string, std::string> reasons{
      {"kimi-linear-48b-a3b", "Megatron-LM has no such layers, and the model has kda layers"},
      {"minimax-m1", "Megatron-LM has no such layers, and the model has lightning layers"},
      {"lfm2-8b-a1b", "Megatron-LM has no such layers, and the model has short_convolution layers"},
      {"falcon-h1-7b", "Megatron-LM has no such layers, and the model has parallel layers"},
      {"mimo-v2-flash", "Megatron-LM has sizes for one kind of attention, and the model has two"},
      {"gemma-4-31b", "Megatron-LM has one norm before each part of a layer"}};
  for (const auto& [name, reason] : reasons)
    EXPECT_NE(remedy_of(name.c_str()).find(reason), std::string::npos)
        << name << remedy_of(name.c_str());
}

TEST(MegatronFlags, LoseNoKeyOfAModelWithoutANote) {
  const System system = read_system("dgx-b200", test_place);
  int models = 0, without_notes = 0;
  for (const std::string& name : list_catalog("workloads/models")) {
    const Model model = read_model(name, test_place);
    if (model.pattern) continue;  // PatternsReadBackAreTheSame.
    const PlanRequest request = plan_request(1, 1, 1, 64, 2048, "megatron-core");
    const Scenario first = scenario_of(model, system, request, 8);
    const MegatronFlags flags = megatron_flags(first);
    expect_no_key_lost(first, flags);
    ++models;
    without_notes += flags.left_out.empty();
  }
  EXPECT_GT(models, 60);
  EXPECT_GT(without_notes, models / 2);
}

TEST(MegatronFlags, LoseNoKeyOfAPlanWithoutANote) {
  for (const KeySample& sample : key_samples()) {
    SCOPED_TRACE("--" + sample.key + " " + sample.word);
    const Scenario first = sample.scenario(sample.with);
    expect_no_key_lost(first, megatron_flags(first));
  }
}

}  // namespace
}  // namespace orrery::megatron_flags_test
