#include "sim/formats/nemo/nemo_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/model/layer_pattern.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::nemo_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string recipe(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/nemo/recipes/" +
                        name);
}
const std::string gpt_20b = recipe("gpt_20b.yaml");
const std::string bridge_70b = recipe("bridge_70b.yaml");

ImportedRun run_of(const std::string& text, std::map<std::string, std::string> set = {},
                   std::optional<std::int64_t> gpus = std::nullopt) {
  return import_nemo_run(text, "run.yaml", {"run", std::nullopt, gpus, std::move(set), {}});
}
std::string refusal(const std::string& text, std::map<std::string, std::string> set = {}) {
  return refusal_of([&] { run_of(text, std::move(set)); });
}

TEST(NemoRun, NemoOne) {
  const ImportedRun run = run_of(gpt_20b);
  EXPECT_EQ(plan_text(run),
            "cp=1 dp_overlap=true dtype=\"bf16\" gbs=512 gpus=128 "
            "main_params=\"remainders\" mbs=2 pp=2 "
            "recompute=\"selective\" schedule=\"interleaved\" seq=2048 "
            "software=\"megatron-core\" sp=true tp=4 tp_overlap=false vpp=4 zero=1");
  EXPECT_THAT(run.notes,
              ElementsAre("the vocabulary has 50,257 tokens, of GPT2BPETokenizer (Radford et al. "
                          "2019, section 2.3); padded to 50,688",
                          "the nearest software is megatron-core: NeMo and Megatron-Bridge start "
                          "Megatron-Core"));
  const Model model = model_of_run(run);
  EXPECT_EQ(model.ffn, 4 * 6144);
  EXPECT_EQ(model.max_sequence, 2048);
  EXPECT_EQ(model.norm, NormKind::layer);
  EXPECT_TRUE(model.qkv_bias && model.mlp_bias && model.tied_embeddings && !model.gated);
}

TEST(NemoRun, MegatronBridge) {
  const ImportedRun run = run_of(bridge_70b, {}, 64);
  EXPECT_EQ(plan_text(run),
            "cp=1 dp_overlap=true dtype=\"fp8\" exp_avg=\"bf16\" "
            "fp8_params=true gbs=128 gpus=64 mbs=1 pp=4 "
            "recompute=\"none\" schedule=\"interleaved\" seq=8192 software=\"megatron-core\" "
            "sp=true tp=4 tp_overlap=true vpp=5 zero=1");
  EXPECT_THAT(run.notes,
              ElementsAre("the nearest software is megatron-core: NeMo and Megatron-Bridge start "
                          "Megatron-Core"));
  EXPECT_EQ(count_parameters(model_of_run(run)).total, 70'553'706'496);  // Llama 3.1 70B.
}

// Patterns of layers are Megatron-Core's: the same model as by its flags, and formats of its ends.
TEST(NemoRun, PatternsOfLayers) {
  const ImportedRun run = run_of(
      "model:\n"
      "  hybrid_layer_pattern: M-M*-/*-\n  num_layers: 5\n"
      "  hidden_size: 1024\n  num_attention_heads: 8\n  num_query_groups: 2\n"
      "  ffn_hidden_size: 4096\n  mamba_num_heads: 16\n  mamba_state_dim: 64\n"
      "  vocab_size: 32768\n  seq_length: 4096\n  normalization: RMSNorm\n"
      "  add_bias_linear: false\n  position_embedding_type: none\n"
      "  tensor_model_parallel_size: 1\n  pipeline_model_parallel_size: 1\n"
      "train:\n  micro_batch_size: 1\n  global_batch_size: 64\n"
      "mixed_precision:\n  bf16: true\n  fp4: e2m1\n  fp4_recipe: nvfp4\n"
      "  first_last_layers_bf16: true\n  num_layers_at_end_in_bf16: 2\n",
      {}, 8);
  const Model model = model_of_run(run);
  EXPECT_EQ(model.layers, 5);
  EXPECT_EQ(model.prediction_layers, 1);
  ASSERT_TRUE(model.pattern);
  ASSERT_EQ(model.pattern->mixers.size(), 2u);
  EXPECT_EQ(model.pattern->mixers[1].mixer->kind(), "mamba2");
  EXPECT_THAT(plan_text(run), HasSubstr("bf16_end_layers=2 "));
  EXPECT_THAT(plan_text(run), Not(HasSubstr("bf16_start_layers")));
  EXPECT_THAT(plan_text(run), HasSubstr("dtype=\"nvfp4\""));
}

// Its log prints the configuration between other lines.
TEST(NemoRun, ALogOfMegatronBridge) {
  const std::string log = "a: [ line\n------- Task Configuration -------\n" + bridge_70b +
                          "\n----------------------------------\nTraining ...\nb: ]\n";
  EXPECT_EQ(run_of(log, {}, 64).json, run_of(bridge_70b, {}, 64).json);
  // Lines are those of the log, two more than the configuration has.
  EXPECT_EQ(refusal(replaced(log, "num_layers: 80", "num_layers: few")),
            "run.yaml: line 35: model.num_layers is 'few', no whole number; write a whole number, "
            "or --set the variable that it comes from");
}

// llm.pretrain recipes that nemo-run writes: sizes are those of a class.
// Of 32 bits; and apex's distributed_fused_adam keeps the lower halves of masters.
TEST(NemoRun, FormatsOfNemoOne) {
  const std::string wide = plan_text(run_of(replaced(gpt_20b, "precision: bf16", "precision: 32")));
  EXPECT_THAT(wide, testing::HasSubstr("dtype=\"tf32\""));
  EXPECT_THAT(plan_text(run_of(gpt_20b)), testing::HasSubstr("main_params=\"remainders\""));
}

// NeMo, nlp_overrides.py: "Hybrid sharding is currrently not supported."
TEST(NemoRun, HybridShardingIsNemosOwnRefusal) {
  const auto with = [](const std::string& strategy) {
    return replaced(gpt_20b, "model:\n",
                    "model:\n  fsdp: true\n  fsdp_sharding_strategy: " + strategy + "\n");
  };
  EXPECT_THAT(plan_text(run_of(with("full"))), testing::HasSubstr("zero=3"));
  EXPECT_THAT(plan_text(run_of(with("grad"))), testing::HasSubstr("zero=2"));
  EXPECT_THAT(refusal(with("hybrid")), testing::HasSubstr("fsdp_sharding_strategy is 'hybrid'"));
}

TEST(NemoRun, NemoTwo) {
  const ImportedRun run = run_of(
      "_target_: nemo.collections.llm.api.pretrain\n"
      "model:\n  _target_: nemo.collections.llm.gpt.model.llama.LlamaModel\n"
      "  config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B}\n"
      "trainer:\n  devices: 8\n  num_nodes: 2\n"
      "  plugins: {precision: bf16-mixed, grad_reduce_in_fp32: false}\n"
      "  strategy:\n    tensor_model_parallel_size: 2\n    sequence_parallel: true\n"
      "    context_parallel_size: 2\n"
      "    ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}\n"
      "data: {seq_length: 8192, micro_batch_size: 1, global_batch_size: 128}\n");
  EXPECT_EQ(plan_text(run),
            "cp=2 cp_comm=\"p2p\" dp_overlap=true dtype=\"bf16\" gbs=128 "
            "gpus=16 mbs=1 pp=1 recompute=\"none\" seq=8192 software=\"megatron-core\" sp=true "
            "tp=2 tp_overlap=false zero=1");
  EXPECT_EQ(model_of_run(run).name, "llama3-8b");
}

// Lists of settings are lists of arguments, and what stages hold and graphs launch is said.
TEST(NemoRun, StagesGraphsAndListsAreTheArguments) {
  const ImportedRun run = run_of(
      "mixed_precision: bf16_mixed\n"
      "model:\n  num_layers: 30\n  hidden_size: 4096\n  ffn_hidden_size: 14336\n"
      "  num_attention_heads: 32\n  seq_length: 4096\n  vocab_size: 128256\n"
      "  num_moe_experts: 8\n  moe_router_topk: 2\n  moe_ffn_hidden_size: 14336\n"
      "  gated_linear_unit: true\n  add_bias_linear: false\n  normalization: RMSNorm\n"
      "  position_embedding_type: rope\n"
      "  pipeline_model_parallel_size: 2\n  expert_model_parallel_size: 8\n"
      "  recompute_granularity: selective\n  recompute_modules: [core_attn, layernorm]\n"
      "  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn, moe_router]\n"
      "  account_for_embedding_in_pipeline_split: true\n"
      "  account_for_loss_in_pipeline_split: true\n"
      "train: {global_batch_size: 256, micro_batch_size: 1}\n",
      {}, 16);
  const JsonValue plan = JsonValue::parse(run.json, "plan");
  EXPECT_EQ(plan.at("recompute").text(), "selective:core_attn+layernorm");
  EXPECT_EQ(plan.at("cuda_graphs").text(), "attention+router");
  EXPECT_EQ(plan.at("layers").text(), "15x2");
}

TEST(NemoRun, PrecisionByName) {
  const auto type = [](const std::string& word) {
    const std::string text = replaced(
        bridge_70b,
        bridge_70b.substr(bridge_70b.find("mixed_precision:"),
                          bridge_70b.find("model:\n") - bridge_70b.find("mixed_precision:")),
        "mixed_precision: " + word + "\n");
    return JsonValue::parse(run_of(text, {}, 64).json, "plan").at("dtype").text();
  };
  EXPECT_EQ(type("bf16_mixed"), "bf16");
  EXPECT_EQ(type("bf16_with_fp8_current_scaling_mixed"), "fp8");
  EXPECT_EQ(type("bf16_with_mxfp8_mixed"), "mxfp8");
  EXPECT_EQ(type("fp16_mixed"), "fp16");
}

TEST(NemoRun, NotesWhatItDoesNotRead) {
  const ImportedRun run = run_of(gpt_20b, {{"model.new_key", "1"}, {"model.fsdp", "true"}});
  EXPECT_THAT(run.notes, testing::Contains("not read: model.new_key"));
  EXPECT_THAT(plan_text(run), HasSubstr("zero=3"));
}

TEST(NemoRun, Refusals) {
  EXPECT_EQ(refusal("train: {micro_batch_size: 1}\n"),
            "run.yaml: has no model.num_layers, and names no model that is known; give a whole "
            "recipe, not one that overrides another, or its model: --model NAME or a config.json");
  EXPECT_EQ(refusal(gpt_20b, {{"model.mm_cfg.llm", "x"}}),
            "--set: model.mm_cfg means an image encoder, which nothing prices; import a run that "
            "trains all weights of a GPT-like model");
  EXPECT_EQ(refusal(replaced(gpt_20b, "GPT2BPETokenizer", "BertWordPieceCase")),
            "run.yaml: line 32: model.tokenizer.type is of an encoder (BERT), which nothing "
            "prices; import a run that trains a GPT-like model");
  EXPECT_EQ(refusal(replaced(gpt_20b, "GPT2BPETokenizer", "mine")),
            "run.yaml: has no model.vocab_size, and neither its tokenizer nor its shape is known; "
            "give it: --set model.vocab_size=N");
  EXPECT_EQ(refusal(replaced(gpt_20b, "global_batch_size: 512", "global_batch_size: ${gbs}")),
            "run.yaml: line 11: model.global_batch_size is ${gbs}, which the file does not say; "
            "give it: --set model.global_batch_size=VALUE");
  EXPECT_EQ(refusal(replaced(gpt_20b, "  num_attention_heads: 48\n", "")),
            "run.yaml: has no model.num_attention_heads; give it: --set "
            "model.num_attention_heads=N");
  EXPECT_EQ(refusal(replaced(gpt_20b, "precision: bf16", "seed: 1")),
            "run.yaml: does not say in which format it trains; give --set trainer.precision=bf16");
}

const std::string performance_70b = recipe("performance_70b.sh");

ImportedRun started_by(const std::string& text, std::map<std::string, std::string> set = {}) {
  return import_nemo_run(text, "run.sh", {"run", std::nullopt, std::nullopt, std::move(set), {}});
}
std::string started_refusal(const std::string& text) {
  return refusal_of([&] { started_by(text); });
}
std::string command(const std::string& flags) {
  return "python setup_experiment.py -m deepseek -mr deepseek_v3 -ng 256 -g gb200 " + flags + "\n";
}

// What flags do not say is the recipe's: of 64 H100 in fp8_cs eight stages of five chunks.
TEST(NemoRun, ScriptsOfMegatronBridgesPerformanceRecipes) {
  const ImportedRun run = started_by(performance_70b);
  EXPECT_EQ(plan_text(run),
            "cp=1 dp_overlap=true dtype=\"fp8\" gbs=256 gpus=64 "
            "layers=\"2x35+3+2x3+1\" mbs=1 nccl_algo=\"^NVLS+NVLSTree\" pp=8 recompute=\"none\" "
            "schedule=\"interleaved\" seq=8192 software=\"megatron-core\" sp=true tp=4 "
            "tp_overlap=true vpp=5 zero=1");
  EXPECT_THAT(
      run.notes,
      ElementsAre("what the script leaves open is as in Megatron-Bridge's performance "
                  "recipe of August 2026",
                  HasSubstr("--fp8-param-gather"), "not read: model.cross_entropy_fusion_impl"));
  EXPECT_EQ(model_of_run(run).name, "llama3-70b");
  EXPECT_EQ(plan_text(started_by(performance_70b,
                                 {{"PRECISION", "bf16"}, {"model.context_parallel_size", "1"}})),
            "cp=1 dp_overlap=true dtype=\"bf16\" gbs=256 gpus=64 mbs=1 "
            "nccl_algo=\"^NVLS+NVLSTree\" pp=4 recompute=\"none\" schedule=\"interleaved\" "
            "seq=8192 software=\"megatron-core\" sp=true tp=4 tp_overlap=true vpp=5 zero=1");
}

TEST(NemoRun, FlagsOfPerformanceScripts) {
  EXPECT_EQ(plan_text(started_by(command(""))),
            "cp=1 cuda_graphs=\"attention+router\" delay_wgrad=false "
            "dp_overlap=true dtype=\"bf16\" ep=64 ep_overlap=false etp=1 exp_avg=\"bf16\" "
            "exp_avg_sq=\"bf16\" gbs=4096 gpus=256 "
            "layers=\"4x15+1\" main_params=\"remainders\" mbs=1 moe_dispatcher=\"hybridep\" pp=4 "
            "recompute=\"selective:mla_up_proj\" schedule=\"interleaved\" seq=4096 "
            "shared_expert_overlap=false software=\"megatron-core\" sp=false tp=1 vpp=4 zero=1");
  EXPECT_EQ(plan_text(started_by(
                command("-c fp8_mx -pp 8 -vp None -ep 32 --moe_flex_dispatcher_backend None "
                        "--moe_a2a_overlap true --recompute_modules mla_up_proj,mlp "
                        "--cuda_graph_impl none -sl 8192 -mb 2 -ce NCCL_PROTO=Simple"))),
            "cp=1 delay_wgrad=true dp_overlap=true dtype=\"mxfp8\" ep=32 "
            "ep_overlap=true etp=1 exp_avg=\"bf16\" exp_avg_sq=\"bf16\" gbs=4096 gpus=256 "
            "layers=\"8x7+5\" mbs=2 "
            "moe_dispatcher=\"alltoall\" nccl_proto=\"Simple\" pp=8 "
            "recompute=\"selective:mla_up_proj+mlp\" schedule=\"1f1b\" seq=8192 "
            "shared_expert_overlap=false software=\"megatron-core\" sp=false tp=1 zero=1");
}

TEST(NemoRun, WhatPerformanceScriptsCannotMean) {
  EXPECT_EQ(started_refusal(command("-c nvfp4")),
            "run.sh: starts it in 'nvfp4', for which no recipe is known; import the configuration "
            "that the run prints, or: write one of: bf16, fp8_cs, fp8_mx");
  EXPECT_EQ(started_refusal(command("--task sft")),
            "run.sh: --task: is sft, whose recipes are not known; import the configuration that "
            "the run prints");
  EXPECT_EQ(started_refusal(command("--num_layers 4")),
            "run.sh: --num_layers: changes the model of the recipe; give the model: --model NAME "
            "or a config.json");
  EXPECT_EQ(started_refusal(command("-ng 512")),
            "run.sh: starts 512 GPUs, for which the recipe has no global batch; add "
            "--global_batch_size, or give --set train.global_batch_size=N");
  EXPECT_THAT(started_by(command("-ng 512 -gb 8192")).notes,
              testing::Contains("the recipe is for 256 GPUs"));
  EXPECT_EQ(started_refusal(command("-ng many")),
            "run.sh: -ng: is not a number of GPUs; write a whole number");
  EXPECT_EQ(started_refusal("run_script.py -mr llama3_70 -ng 8 -g h100"),
            "run.sh: starts the recipe 'llama3_70', for which no recipe is known; import the "
            "configuration that the run prints, or: did you mean 'llama3_70b'?");
  EXPECT_EQ(started_refusal("run_script.py -mr llama3_8b -ng 8"),
            "run.sh: does not say --gpu; add it to the command");
}

// Each recipe of the table becomes a plan that divides.
TEST(NemoRun, EveryPerformanceRecipe) {
  const JsonValue table = JsonValue::read_file(std::string{ORRERY_TEST_SOURCE} +
                                               "/workloads/recipes/megatron-bridge.json");
  int recipes = 0, offloaded = 0;
  for (const JsonValue& one : table.at("recipes").elements()) {
    const auto word = [&](const char* key) {
      const auto value = one.find(key);
      return value ? value->text() : std::string{};
    };
    const std::string gpus = std::to_string(one.at("gpus").integer(1, 1 << 20));
    std::string text = "python run_script.py -mr " + word("recipe") + " -ng " + gpus + " -g " +
                       word("gpu") + " -c " + word("dtype");
    if (one.has("variant")) text += " -cv " + word("variant");
    SCOPED_TRACE(text);
    ++recipes;
    const JsonValue plan = JsonValue::parse(started_by(text).json, "plan");
    // Activations of parts of a layer go to the host.
    if (one.at("settings").has("model.fine_grained_activation_offloading")) {
      EXPECT_TRUE(plan.has("offload_modules"));
      ++offloaded;
    }
    EXPECT_EQ(plan.at("gpus").integer(1, 1 << 20), std::stoi(gpus));
  }
  EXPECT_EQ(recipes, 202);
  EXPECT_EQ(offloaded, 3);
}

// A configuration that its program printed has hundreds of keys that nobody set; these decide.
TEST(NemoRun, DecisiveKeysOfPrintedConfigurations) {
  const std::string printed = bridge_70b + "_target_: megatron.bridge.training.config\n";
  const auto with = [&](const std::string& key, const std::string& value) {
    return plan_text(run_of(printed, {{key, value}}, 64));
  };
  EXPECT_THAT(refusal(printed, {{"optimizer.optimizer", "muon"}}),
              HasSubstr("optimizer.optimizer is muon, and is not priced"));
  EXPECT_THAT(refusal(printed, {{"dist.use_torch_fsdp2", "true"}}),
              HasSubstr("dist.use_torch_fsdp2 shards by PyTorch's FSDP"));
  EXPECT_THAT(with("model.attention_backend", "unfused"), HasSubstr("attention=\"unfused\""));
  EXPECT_THAT(with("model.attention_backend", "AttnBackend.fused"),
              HasSubstr("attention=\"flash\""));
  EXPECT_THAT(with("optimizer.optimizer", "adam"), HasSubstr("zero=1"));
}

}  // namespace
}  // namespace orrery::nemo_run_test
