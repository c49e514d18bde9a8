#include "sim/formats/deepspeed/deepspeed_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::deepspeed_run_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string file(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/deepspeed/runs/" +
                        name);
}
const std::string script = file("finetune_8b.sh");
const std::string zero3 = file("zero3.json");

ImportedRun run_of(const std::vector<RecipeFile>& files,
                   std::map<std::string, std::string> set = {}) {
  return import_deepspeed_run(files, {"run", std::nullopt, std::nullopt, std::move(set), {}});
}
std::string plan_on_8(const std::vector<RecipeFile>& files) {
  return plan_text(import_deepspeed_run(files, {"run", std::nullopt, 8, {}, {}}));
}
std::string refusal(const std::vector<RecipeFile>& files,
                    std::map<std::string, std::string> set = {}) {
  return refusal_of([&] { run_of(files, std::move(set)); });
}

// Arguments of the smallest run, in YAML.
const std::string arguments =
    "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\nmax_seq_length: 2048\n"
    "bf16: true\n";

TEST(DeepspeedRun, AScriptAndItsConfiguration) {
  const ImportedRun run = run_of({{script, "run.sh"}, {zero3, "zero3.json"}});
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=128 gpus=16 mbs=4 pp=1 "
            "recompute=\"full\" reshard=true seq=4096 software=\"deepspeed\" sp=false tp=1 zero=3");
  EXPECT_THAT(
      run.notes,
      ElementsAre("every sequence counts as 4,096 tokens long (block_size); data that are not "
                  "packed have fewer",
                  "the software deepspeed is described for Hopper and later; on A100 give "
                  "--software composer-2023 to `orrery estimate`"));
  EXPECT_EQ(model_of_run(run).name, "llama3.1-8b");
}

// --set reaches variables of the script, its arguments and DeepSpeed's settings.
TEST(DeepspeedRun, WhatIsGivenWins) {
  const ImportedRun run =
      run_of({{script, "run.sh"}, {zero3, "zero3.json"}}, {{"NODES", "4"},
                                                           {"SEQ", "8192"},
                                                           {"gradient_checkpointing", "false"},
                                                           {"zero_optimization.stage", "2"}});
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=256 gpus=32 mbs=4 pp=1 "
            "recompute=\"none\" seq=8192 software=\"deepspeed\" sp=false tp=1 zero=2");
}

// A configuration that a script names is read where it lies: next to the script, or in a folder
// above it, in which the script is meant to be started.
TEST(DeepspeedRun, AConfigurationNextToTheScriptOrAboveIt) {
  const RecipeAnswers answers{"run", std::nullopt, std::nullopt, {}, [](const std::string& path) {
                                return path == "jobs/zero3.json" ? std::optional{zero3}
                                                                 : std::nullopt;
                              }};
  for (const char* path : {"jobs/run.sh", "jobs/train/8b/run.sh"})
    EXPECT_EQ(plan_text(import_deepspeed_run({{script, path}}, answers)),
              plan_text(run_of({{script, "run.sh"}, {zero3, "zero3.json"}})))
        << path;
  EXPECT_EQ(refusal({{script, "run.sh"}}),
            "run.sh: deepspeed names zero3.json, which is not there; name it too: orrery import "
            "deepspeed run.sh zero3.json");
  // What nothing prices is said first: the file would not help.
  std::string with_images = script;
  with_images.insert(with_images.find("--bf16"), "--vision_tower clip ");
  EXPECT_THAT(refusal({{with_images, "run.sh"}}), HasSubstr("vision_tower"));
}

TEST(DeepspeedRun, LogitsThatAreNeverWhole) {
  for (const char* key : {"use_liger_kernel", "enable_liger_kernel",
                          "liger_fused_linear_cross_entropy", "cut_cross_entropy"})
    EXPECT_THAT(
        plan_text(run_of({{arguments + key + ": true\n", "args.yaml"},
                          {"distributed_type: MULTI_GPU\nnum_processes: 8\n", "acc.yaml"}})),
        HasSubstr("chunked_loss=true"))
        << key;
}

// TrainingArguments: 8 sequences a GPU, one pass, no sharding; 2 x 4 processes by accelerate.
TEST(DeepspeedRun, DefaultsAreTheTrainers) {
  const ImportedRun run =
      run_of({{"model_name_or_path: gpt2\nblock_size: 1024\nfp16: true\n", "args.yaml"},
              {"distributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: 8\n", "acc.yaml"}});
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"fp16\" gbs=64 gpus=8 mbs=8 pp=1 "
            "recompute=\"none\" seq=1024 software=\"hf-trainer\" sp=false tp=1 zero=0");
}

TEST(DeepspeedRun, HowReplicasShare) {
  const auto of = [](const std::string& accelerate, const std::string& more = "") {
    const ImportedRun run =
        run_of({{arguments + more, "args.yaml"}, {"num_processes: 8\n" + accelerate, "acc.yaml"}});
    const JsonValue plan = JsonValue::parse(run.json, "plan");
    return std::to_string(plan.at("zero").integer(0, 3)) +
           (plan.at("dp_overlap").boolean() ? " beside" : " after") +
           (plan.has("reshard") && !plan.at("reshard").boolean() ? " kept" : "") +
           (plan.has("dp_replicate")
                ? " in " + std::to_string(plan.at("dp_replicate").integer(1, 99))
                : "");
  };
  // DeepSpeed overlaps stage 3 by default, and no other.
  EXPECT_EQ(of("deepspeed_config: {zero_stage: 3}"), "3 beside");
  EXPECT_EQ(of("deepspeed_config: {zero_stage: 2}"), "2 after");
  const std::string fsdp = "distributed_type: FSDP\nfsdp_config: {";
  EXPECT_EQ(of(fsdp + "fsdp_sharding_strategy: SHARD_GRAD_OP}"), "2 beside");
  EXPECT_EQ(of(fsdp + "fsdp_version: 2, fsdp_reshard_after_forward: false}"), "3 beside kept");
  EXPECT_EQ(of(fsdp + "fsdp_reshard_after_forward: HYBRID_SHARD}\nnum_machines: 2\n"),
            "3 beside in 2");
  EXPECT_EQ(of("", "fsdp: hybrid_shard_zero2\nnum_machines: 4\n"), "2 beside in 4");
  EXPECT_EQ(of("", "fsdp: full_shard auto_wrap\n"), "3 beside");
  EXPECT_EQ(of(""), "0 beside");
}

TEST(DeepspeedRun, UlyssesSharesSequences) {
  const ImportedRun run =
      run_of({{arguments, "args.yaml"},
              {"{\"zero_optimization\": {\"stage\": 1}, \"train_batch_size\": 32,\n"
               "\t\"sequence_parallel_size\": 4}",
               "ds.json"},
              {"num_processes: 16\n", "acc.yaml"}});
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=4 cp_comm=\"a2a\" dp_overlap=false dtype=\"bf16\" gbs=32 "
            "gpus=16 mbs=2 pp=1 recompute=\"none\" seq=2048 software=\"deepspeed\" sp=false "
            "tp=1 zero=1");
}

// accelerate, ParallelismConfig.
TEST(DeepspeedRun, TheMeshOfAccelerate) {
  const auto plan_of = [](const std::string& mesh, const std::string& engine = "") {
    std::vector<RecipeFile> files = {{arguments, "args.yaml"},
                                     {"num_processes: 16\n" + mesh, "acc.yaml"}};
    if (!engine.empty()) files.push_back({engine, "ds.json"});
    return plan_text(run_of(files));
  };
  const std::string fsdp =
      "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\n"
      "parallelism_config:\n  parallelism_config_dp_replicate_size: ";
  const std::string shards = "\n  parallelism_config_dp_shard_size: ";
  const std::string hybrid = plan_of(fsdp + "2" + shards + "8\n");
  EXPECT_THAT(hybrid, HasSubstr("dp_replicate=2"));
  EXPECT_THAT(hybrid, HasSubstr("zero=3"));
  EXPECT_EQ(plan_of(fsdp + "1" + shards + "16\n").find("dp_replicate"), std::string::npos);
  EXPECT_THAT(plan_of(fsdp + "16" + shards + "1\n"), HasSubstr("zero=0"));  // DDP.
  EXPECT_THAT(plan_of(fsdp + "1" + shards + "4\n  parallelism_config_cp_size: 4\n"),
              HasSubstr("cp=4 cp_comm=\"all_gather\""));
  EXPECT_THAT(plan_of(fsdp + "1" + shards + "8\n  parallelism_config_tp_size: 2\n"),
              HasSubstr("tp=2"));
  EXPECT_THAT(plan_of("parallelism_config:\n  parallelism_config_sp_size: 4\n"
                      "  parallelism_config_sp_backend: deepspeed\n"
                      "  parallelism_config_sp_seq_length_is_variable: true\n"
                      "  parallelism_config_sp_attn_implementation: sdpa\n",
                      "{\"zero_optimization\": {\"stage\": 3}}"),
              HasSubstr("cp=4 cp_comm=\"a2a\""));
}

// axolotl, utils/schemas/config.py and enums.py (RingAttnFunc).
TEST(DeepspeedRun, TheMeshOfAxolotl) {
  const auto plan_of = [](const std::string& more) {
    const std::string text = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 32768\n" + more;
    return plan_text(import_deepspeed_run({{text, "run.yml"}}, {"run", std::nullopt, 16, {}, {}}));
  };
  const std::string fsdp =
      "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\nsample_packing: true\n";
  EXPECT_THAT(plan_of("context_parallel_size: 4\n"), HasSubstr("cp=4 cp_comm=\"p2p\""));
  EXPECT_THAT(plan_of(fsdp + "context_parallel_size: 4\n"),
              HasSubstr("cp=4 cp_comm=\"all_gather\""));
  EXPECT_THAT(plan_of(fsdp + "sequence_parallel_degree: 2\nring_attn_func: batch_zigzag\n"),
              HasSubstr("cp=2 cp_comm=\"p2p\""));
  const std::string mesh =
      plan_of(fsdp + "tensor_parallel_size: 2\ndp_shard_size: 4\ndp_replicate_size: 2\n");
  EXPECT_THAT(mesh, HasSubstr("tp=2"));
  EXPECT_THAT(mesh, HasSubstr("dp_replicate=2"));
  EXPECT_THAT(mesh, HasSubstr("zero=3"));
  EXPECT_THAT(refusal_of([&] { plan_of("dp_shard_size: 4\n"); }),
              HasSubstr("dp_shard_size shards weights over 4 ranks, for which no fsdp is asked"));
}

// deepspeed/runtime/zero/mics.py.
TEST(DeepspeedRun, MicsShardsOverAPart) {
  const auto engine = [](const std::string& more) {
    return std::vector<RecipeFile>{
        {arguments, "args.yaml"},
        {"{\"zero_optimization\": {" + more + "\"mics_shard_size\": 8}}", "ds.json"},
        {"num_processes: 32\n", "acc.yaml"}};
  };
  EXPECT_THAT(plan_text(run_of(engine("\"stage\": 3, "))), HasSubstr("dp_replicate=4"));
  EXPECT_EQ(plan_text(run_of(engine("\"stage\": 2, "))).find("dp_replicate"), std::string::npos);
  EXPECT_THAT(
      refusal(engine("\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}, ")),
      HasSubstr("mics_shard_size shards over a part of the replicas, with which DeepSpeed offloads "
                "nothing"));
}

TEST(DeepspeedRun, FormatsOfProductsAndState) {
  const auto plan_of = [](const std::string& text, const std::string& engine) {
    return plan_text(
        run_of({{text, "args.yaml"}, {engine, "ds.json"}, {"num_processes: 8\n", "acc.yaml"}}));
  };
  const std::string engine = "{\"zero_optimization\": {\"stage\": 2}}";
  const std::string in_fp32 = replaced(arguments, "bf16: true", "seed: 1");
  EXPECT_THAT(plan_of(in_fp32, engine), testing::HasSubstr("dtype=\"fp32\""));
  EXPECT_THAT(plan_of(in_fp32 + "tf32: true\n", engine), testing::HasSubstr("dtype=\"tf32\""));
  EXPECT_THAT(plan_of(arguments + "tf32: true\n", engine), testing::HasSubstr("dtype=\"bf16\""));
  EXPECT_THAT(plan_of(arguments + "optim: paged_adamw_8bit\n", engine),
              testing::HasSubstr("exp_avg=\"int8\" exp_avg_sq=\"int8\""));
  EXPECT_THAT(plan_of(arguments,
                      "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": "
                      "true, \"bf16_master_weights_and_grads\": true, "
                      "\"bf16_optimizer_states\": true}}"),
              testing::HasSubstr("exp_avg=\"bf16\" exp_avg_sq=\"bf16\""));
}

// PyTorch's AdamW updates weights as they were loaded, and has moments of their format.
TEST(DeepspeedRun, WeightsOf16BitsThroughout) {
  const std::string throughout = "dtype=\"bf16\" exp_avg=\"bf16\" exp_avg_sq=\"bf16\"";
  const auto plan_of = [](const std::string& text, const std::string& more = "") {
    return plan_text(run_of({{text, "args.yaml"}, {"num_processes: 8\n" + more, "acc.yaml"}}));
  };
  const std::string pure = replaced(arguments, "bf16: true", "pure_bf16: true");
  EXPECT_THAT(plan_of(pure), HasSubstr(throughout));
  EXPECT_THAT(plan_of(pure), HasSubstr("main_params=\"none\""));
  EXPECT_THAT(plan_of(arguments + "torch_dtype: bfloat16\n"), HasSubstr(throughout));
  EXPECT_THAT(plan_of(arguments), testing::Not(HasSubstr("main_params")));
  const std::string sharded = "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n";
  EXPECT_THAT(plan_of(arguments + "torch_dtype: bfloat16\n", sharded),
              testing::Not(HasSubstr("main_params")));
  EXPECT_EQ(refusal({{pure, "args.yaml"}, {zero3, "ds.json"}}),
            "args.yaml: line 4: pure_bf16 is for PyTorch's own optimizer, and DeepSpeed keeps "
            "masters; write bf16: --set pure_bf16=null --set bf16=true");
}

TEST(DeepspeedRun, AnOptimizerOnTheHost) {
  const auto percent = [](const std::string& engine, const std::string& accelerate = "") {
    std::vector<RecipeFile> files = {{arguments, "args.yaml"},
                                     {"num_processes: 8\n" + accelerate, "acc.yaml"}};
    if (!engine.empty()) files.push_back({engine, "ds.json"});
    const JsonValue plan = JsonValue::parse(run_of(files).json, "plan");
    return plan.has("offload_optimizer") ? plan.at("offload_optimizer").integer(0, 100) : 0;
  };
  const std::string stage = "{\"zero_optimization\": {\"stage\": 2, ";
  EXPECT_EQ(percent(stage + "\"offload_optimizer\": {\"device\": \"cpu\"}}}"), 100);
  EXPECT_EQ(percent(stage + "\"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.3}}}"), 30);
  EXPECT_EQ(percent(stage + "\"offload_optimizer\": {\"device\": \"none\"}}}"), 0);
  EXPECT_EQ(percent(stage + "\"cpu_offload\": true}}"), 100);
  EXPECT_EQ(percent("", "deepspeed_config: {zero_stage: 3, offload_optimizer_device: cpu}\n"), 100);
  EXPECT_THAT(refusal({{arguments, "args.yaml"},
                       {stage + "\"offload_optimizer\": {\"device\": \"nvme\"}}}", "ds.json"}}),
              HasSubstr("offload_optimizer.device is nvme, and is not priced"));
  EXPECT_THAT(refusal({{arguments, "args.yaml"},
                       {stage + "\"offload_param\": {\"device\": \"cpu\"}}}", "ds.json"},
                       {"num_processes: 8\n", "acc.yaml"}}),
              HasSubstr("zero_optimization.offload_param.device decides offloading, and is not "
                        "priced"));  // ZeRO-2 has none.
}

// deepspeed/runtime/zero/offload_config.py; accelerate's fsdp_offload_params and the Trainer's
// fsdp.
TEST(DeepspeedRun, WeightsOnTheHost) {
  const auto plan_of = [](const std::string& engine, const std::string& accelerate = "",
                          const std::string& trainer = "") {
    std::vector<RecipeFile> files = {{arguments + trainer, "args.yaml"},
                                     {"num_processes: 8\n" + accelerate, "acc.yaml"}};
    if (!engine.empty()) files.push_back({engine, "ds.json"});
    return plan_text(run_of(files));
  };
  const std::string stage = "{\"zero_optimization\": {\"stage\": 3, ";
  const std::string weights = "\"offload_param\": {\"device\": \"cpu\"}";
  const std::string both = "\"offload_optimizer\": {\"device\": \"cpu\"}, " + weights + "}}";
  const auto is_offloaded = HasSubstr("offload_optimizer=100 offload_weights=true");
  EXPECT_THAT(plan_of(stage + both), is_offloaded);
  EXPECT_THAT(plan_of("",
                      "deepspeed_config: {zero_stage: 3, offload_optimizer_device: cpu, "
                      "offload_param_device: cpu}\n"),
              is_offloaded);
  EXPECT_EQ(plan_of(stage + "\"offload_param\": {\"device\": \"none\"}}}").find("offload"),
            std::string::npos);
  const auto refused = [](const std::string& engine) {
    return refusal(
        {{arguments, "args.yaml"}, {"num_processes: 8\n", "acc.yaml"}, {engine, "ds.json"}});
  };
  EXPECT_THAT(refused(stage + weights + "}}"), HasSubstr("without all of their optimizer"));
  EXPECT_THAT(refused(stage + "\"offload_param\": {\"device\": \"nvme\"}}}"),
              HasSubstr("offload_param.device is nvme, and is not priced"));

  EXPECT_THAT(plan_of("", "", "fsdp: full_shard offload\n"), is_offloaded);
  const std::string fsdp = "distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true, ";
  EXPECT_THAT(plan_of("", fsdp + "fsdp_version: 2, fsdp_reshard_after_forward: true}\n"),
              is_offloaded);
  EXPECT_THAT(refusal({{arguments, "args.yaml"},
                       {"num_processes: 8\n" + fsdp + "fsdp_sharding_strategy: SHARD_GRAD_OP}\n",
                        "acc.yaml"}}),
              HasSubstr("fsdp_config.fsdp_offload_params offloads weights that are kept whole"));
}

TEST(DeepspeedRun, NotesWhatItDoesNotRead) {
  const ImportedRun run =
      run_of({{arguments + "optim: paged_adamw_8bit\nnew_key: 3\n", "args.yaml"},
              {"{\"zero_optimization\": {\"stage\": 2}, \"odd\": 1}", "ds.json"},
              {"num_processes: 8\n", "acc.yaml"}});
  EXPECT_THAT(run.notes, testing::IsSupersetOf({"not read: new_key", "not read: odd"}));
}

TEST(DeepspeedRun, Refusals) {
  const auto of_arguments = [](const std::string& more) {
    return refusal({{arguments + more, "args.yaml"}});
  };
  EXPECT_EQ(of_arguments(""),
            "args.yaml: does not say how many sequences a step has: they are 2 for each replica, "
            "whose number it does not say; give --gpus N");
  EXPECT_EQ(of_arguments("finetuning_type: freeze\n"),
            "args.yaml: line 5: finetuning_type is 'freeze': nothing prices the training of a part "
            "of the weights; write full or lora");
  EXPECT_EQ(of_arguments("adapter: prefix\n"),
            "args.yaml: line 5: adapter is 'prefix', which nothing prices; write lora, qlora, or "
            "leave it out");
  EXPECT_EQ(of_arguments("quantization_bit: 8\n"),
            "args.yaml: line 5: quantization_bit is 8, in which nothing prices frozen weights; "
            "write 4, or leave it out");
  EXPECT_EQ(of_arguments("load_in_4bit: true\n"),
            "args.yaml: keeps weights in four bits, which do not train, without adapters; add "
            "adapters, or leave the four bits out");
  EXPECT_EQ(of_arguments("use_peft: true\nuse_dora: true\n"),
            "args.yaml: line 6: use_dora scales the weights by columns (DoRA), which nothing "
            "prices; leave it out: --set use_dora=null");
  EXPECT_EQ(refusal({{replaced(script, "run_clm.py", "run_mlm.py"), "run.sh"}, {zero3, "z.json"}}),
            "run.sh: starts run_mlm.py: nothing prices an encoder; import a run that trains all "
            "weights of a language model");
  EXPECT_EQ(refusal({{replaced(arguments, "Qwen/Qwen3-8B", "org/mine"), "args.yaml"}}),
            "args.yaml: line 1: model_name_or_path is org/mine, a model that is not known; give "
            "its shape: --model NAME or a config.json");
  EXPECT_EQ(refusal({{replaced(arguments, "max_seq_length", "max_steps"), "args.yaml"}}),
            "args.yaml: does not say how long its sequences are; give it: --set max_seq_length=N");
  EXPECT_EQ(refusal({{"echo hello\n", "run.sh"}}),
            "run.sh: starts no training with --per_device_train_batch_size or --deepspeed; give "
            "the script that launches it, or its settings in JSON or YAML");
  EXPECT_EQ(refusal({{zero3, "a.json"}, {zero3, "b.json"}}),
            "b.json: says what a.json says too; name one of them");
  EXPECT_EQ(refusal({{zero3, "zero3.json"}}),
            "zero3.json: names no model (model_name_or_path); give its shape: --model NAME or a "
            "config.json");
  EXPECT_EQ(refusal({{"{\"zero_optimization\": {\"stage\": }", "z.json"}}),
            "z.json: line 2: is no YAML: did not find expected ',' or '}'; write YAML, as the tool "
            "did");
}

// axolotl's own names for what the Trainer and accelerate have.
TEST(DeepspeedRun, OfAxolotl) {
  const std::string yaml =
      "base_model: Qwen/Qwen3-8B\nsequence_len: 8192\nsample_packing: true\nmicro_batch_size: 2\n"
      "gradient_accumulation_steps: 4\noptimizer: adamw_torch_fused\nbf16: auto\n"
      "gradient_checkpointing: true\nflash_attention: true\n";
  const std::string fsdp =
      "fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
      "  transformer_layer_cls_to_wrap: Qwen3DecoderLayer\n  reshard_after_forward: true\n";
  const auto run_on_eight = [](const std::string& text) {
    return import_deepspeed_run({{text, "run.yml"}}, {"run", std::nullopt, 8, {}, {}});
  };
  const ImportedRun run = run_on_eight(yaml + fsdp);
  EXPECT_EQ(
      plan_text(run),
      "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=64 gpus=8 mbs=2 pp=1 "
      "recompute=\"full\" reshard=true seq=8192 software=\"hf-trainer\" sp=false tp=1 zero=3");
  EXPECT_THAT(run.notes, Contains(HasSubstr("sample_packing ends attention with each document")));
  EXPECT_THAT(run.notes, Not(Contains(HasSubstr("not read"))));
  // Without FSDP, PyTorch's AdamW updates weights that were loaded in bf16.
  EXPECT_THAT(plan_text(run_on_eight(yaml)),
              AllOf(HasSubstr("exp_avg=\"bf16\""), HasSubstr("main_params=\"none\"")));
  EXPECT_THAT(plan_text(run_on_eight(yaml + fsdp + "  offload_params: true\n")),
              AllOf(HasSubstr("offload_weights=true"), HasSubstr("offload_optimizer=100")));
  EXPECT_THAT(plan_text(run_on_eight(yaml + "adapter: lora\nlora_r: 32\nlora_dropout: 0.05\n"
                                            "lora_target_linear: true\n")),
              AllOf(HasSubstr("finetune=\"lora\""), HasSubstr("lora_rank=32"),
                    HasSubstr("lora_dropout=true"), HasSubstr("lora_targets=\"all-linear\""),
                    Not(HasSubstr("main_params"))));
  EXPECT_THAT(plan_text(run_on_eight(yaml + "adapter: qlora\nload_in_4bit: true\n"
                                            "lora_target_modules: [q_proj, v_proj]\n")),
              AllOf(HasSubstr("finetune=\"qlora\""), HasSubstr("lora_rank=8"),
                    HasSubstr("lora_targets=\"qkv\"")));
  EXPECT_THAT(refusal_of([&] { run_on_eight(yaml + "rl: dpo\n"); }), HasSubstr("rl means texts"));
  EXPECT_THAT(refusal_of([&] { run_on_eight(yaml + "expert_parallel_size: 2\n"); }),
              HasSubstr("expert_parallel_size decides parallelism"));
}

// PEFT's file beside the Trainer's, LLaMA-Factory's own words, and trl's defaults.
TEST(DeepspeedRun, Adapters) {
  const std::string adapter =
      "{\"peft_type\": \"LORA\", \"r\": 64, \"lora_alpha\": 16, \"lora_dropout\": 0.1, "
      "\"target_modules\": [\"o_proj\", \"up_proj\"], \"modules_to_save\": null}";
  const ImportedRun run =
      import_deepspeed_run({{arguments, "args.yaml"}, {adapter, "adapter_config.json"}},
                           {"run", std::nullopt, 8, {}, {}});
  EXPECT_THAT(plan_text(run), AllOf(HasSubstr("lora_rank=64"), HasSubstr("lora_dropout=true"),
                                    HasSubstr("lora_targets=\"proj+fc1\"")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("only 1 of the 2 modules that read one tensor")));
  const auto refused = [&](const std::string& more) {
    return refusal_of([&] {
      import_deepspeed_run({{arguments, "args.yaml"},
                            {replaced(adapter, "\"modules_to_save\": null", more), "a.json"}},
                           {"run", std::nullopt, 8, {}, {}});
    });
  };
  for (const char* key : {"layers_to_transform", "rank_pattern", "layer_replication", "lora_bias",
                          "target_parameters", "use_qalora", "loftq_config"})
    EXPECT_THAT(refused("\"" + std::string{key} + "\": 3"), HasSubstr("which nothing prices"))
        << key;
  EXPECT_THAT(refused("\"modules_to_save\": [\"score\"]"), HasSubstr("trains 'score' as a whole"));
  EXPECT_EQ(refused("\"modules_to_save\": [\"embed_tokens\", \"lm_head\"]"), "no error");
  EXPECT_THAT(refused("\"bias\": \"all\""), HasSubstr("trains biases as well"));
  EXPECT_THAT(refused("\"exclude_modules\": [\"q_proj\"]"), HasSubstr("leaves out 'q_proj'"));
  EXPECT_EQ(refused("\"exclude_modules\": [\"lm_head\"]"), "no error");
  EXPECT_THAT(refusal_of([&] {
                import_deepspeed_run(
                    {{arguments, "args.yaml"}, {replaced(adapter, "LORA", "IA3"), "a.json"}},
                    {"run", std::nullopt, 8, {}, {}});
              }),
              HasSubstr("peft_type is 'IA3'"));
  EXPECT_THAT(refusal_of([&] {
                import_deepspeed_run(
                    {{arguments + "use_peft: true\nfsdp: full_shard offload\n", "args.yaml"}},
                    {"run", std::nullopt, 8, {}, {}});
              }),
              HasSubstr("moves frozen weights to the host"));
  const ImportedRun factory = import_deepspeed_run(
      {{arguments + "finetuning_type: lora\nquantization_bit: 4\nquantization_method: gptq\n",
        "args.yaml"}},
      {"run", std::nullopt, 8, {}, {}});
  EXPECT_THAT(plan_text(factory),
              AllOf(HasSubstr("finetune=\"qlora\""), HasSubstr("base_format=\"int4\""),
                    HasSubstr("lora_targets=\"all-linear\"")));
}

// A count that the shell does not know.
TEST(DeepspeedRun, AVariableThatIsNeverSet) {
  EXPECT_EQ(
      refusal({{replaced(script, "batch_size 4", "batch_size $MBS"), "run.sh"}, {zero3, "z.json"}}),
      "run.sh: line 11: per_device_train_batch_size is $MBS, which the script does not say; "
      "give it: --set MBS=N");
}

// trl, trainer/sft_config.py: bf16 and gradient checkpointing unless said otherwise.
TEST(DeepspeedRun, TrlHasDefaultsOfItsOwn) {
  const std::string words =
      "--model_name_or_path Qwen/Qwen2.5-7B --max_length 4096 --packing "
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 4";
  for (const char* launch : {"accelerate launch --num_processes 8 trl/scripts/sft.py ",
                             "torchrun --nproc_per_node 8 -m trl.scripts.sft ", "trl sft "}) {
    const std::string text = plan_on_8({{launch + words, "sft.sh"}});
    EXPECT_THAT(text, AllOf(HasSubstr("dtype=\"bf16\""), HasSubstr("recompute=\"full\"")))
        << launch;
  }
  const std::string other = "accelerate launch --num_processes 8 sft.py " + words;
  EXPECT_THAT(plan_on_8({{other + " --fp16 --gradient_checkpointing false", "sft.sh"}}),
              AllOf(HasSubstr("dtype=\"fp16\""), HasSubstr("recompute=\"none\"")));
}

// Optimizers with other states than AdamW's two are no AdamW, whatever they are called.
TEST(DeepspeedRun, OnlyAdamWIsAdamW) {
  for (const char* name : {"galore_adamw", "apollo_adamw", "stable_adamw", "schedule_free_adamw",
                           "adamw_anyprecision", "ao_adamw_4bit", "adopt_adamw", "sgd", "lion"})
    EXPECT_THAT(refusal({{arguments + "optim: " + name + "\n", "run.yaml"}}),
                HasSubstr("AdamW is priced in its place"))
        << name;
  for (const auto& [name, state] :
       {std::pair{"adamw_torch_fused", ""}, std::pair{"paged_adamw_8bit", "exp_avg=\"int8\""},
        std::pair{"ao_adamw_fp8", "exp_avg=\"fp8\""}})
    EXPECT_THAT(plan_on_8({{arguments + "optim: " + name + "\n", "run.yaml"}}), HasSubstr(state))
        << name;
}

TEST(DeepspeedRun, AttentionKernels) {
  const std::string axolotl =
      "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 2048\nbf16: true\n";
  const auto attention = [](const std::string& text) {
    const std::string plan = plan_on_8({{text, "run.yaml"}});
    return plan.find("unfused") == plan.npos ? "flash" : "unfused";
  };
  EXPECT_STREQ(attention(axolotl), "flash");
  EXPECT_STREQ(attention(axolotl + "flash_attention: false\nsdp_attention: true\n"), "flash");
  EXPECT_STREQ(attention(axolotl + "eager_attention: true\n"), "unfused");
  const std::string factory = arguments + "cutoff_len: 2048\nfinetuning_type: full\n";
  EXPECT_STREQ(attention(factory + "flash_attn: fa2\n"), "flash");
  EXPECT_STREQ(attention(factory + "flash_attn: disabled\n"), "unfused");
}

TEST(DeepspeedRun, FullBf16OfAxolotlHasNoMasters) {
  const std::string run =
      "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 2048\nfsdp_version: 2\n"
      "fsdp_config:\n  reshard_after_forward: true\n";
  EXPECT_THAT(plan_on_8({{run + "bf16: full\n", "run.yaml"}}),
              AllOf(HasSubstr("main_params=\"none\""), HasSubstr("exp_avg=\"bf16\"")));
  EXPECT_THAT(plan_on_8({{run + "bf16: auto\n", "run.yaml"}}), Not(HasSubstr("main_params")));
}

TEST(DeepspeedRun, Fp8OfAccelerateCanBeReplaced) {
  const RecipeFile accelerate{
      "mixed_precision: fp8\ndistributed_type: MULTI_GPU\n"
      "num_processes: 8\n",
      "accelerate.yaml"};
  const RecipeFile trainer{
      "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\n"
      "max_seq_length: 2048\n",
      "run.yaml"};
  EXPECT_THAT(refusal({trainer, accelerate}), HasSubstr("--set mixed_precision=bf16"));
  EXPECT_THAT(plan_text(run_of({trainer, accelerate}, {{"mixed_precision", "bf16"}})),
              HasSubstr("dtype=\"bf16\""));
}

}  // namespace
}  // namespace orrery::deepspeed_run_test
