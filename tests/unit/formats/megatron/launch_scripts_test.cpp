// Scripts as people write them: scripts/ has one in the style of each kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/model/model.hpp"
#include "tests/support/error_text.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::launch_scripts_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Given = std::map<std::string, std::string>;

const std::string folder =
    std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/megatron/scripts/";

std::optional<std::string> text_if_there(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  return read_text_file(path);
}

ImportedRun run_of(const std::string& script, const Given& given = {}) {
  return import_megatron_run(MegatronArguments::read(read_text_file(folder + script),
                                                     folder + script, given, text_if_there),
                             "model");
}

struct Read {
  JsonValue plan;
  std::vector<std::string> notes;
  std::string text(const std::string& key) const { return plan.at(key).text(); }
  std::int64_t number(const std::string& key) const { return plan.at(key).integer(0, 1 << 30); }
  Model model() const { return parse_model(plan.at("model")); }
};
Read read(const std::string& script, const Given& given = {}) {
  ImportedRun run = run_of(script, given);
  return {JsonValue::parse(run.json, "plan"), std::move(run.notes)};
}

// Vocabulary of GPT-2's byte pairs: 50,257 in whole 128 x 8.
TEST(LaunchScripts, AnExampleForMoreNodesThanItStarts) {
  const Read run = read("gpt_for_more_nodes.sh");
  EXPECT_EQ(run.number("tp") * run.number("pp"), 128);
  EXPECT_EQ(run.number("gbs"), 1536);
  EXPECT_EQ(run.text("ramp"), "0:16 2.4B:320 12B:1536");
  EXPECT_EQ(run.text("software"), "megatron-core");  // With fused attention, also in fp16.
  EXPECT_FALSE(run.plan.has("attention"));           // Where the GPU has it.
  EXPECT_FALSE(run.plan.has("gpus"));
  EXPECT_EQ(run.model().vocab, 51'200);
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("50,257 tokens, of GPT-2's byte pairs"),
                          "the run starts 8 GPUs, but its ranks need 128 or a multiple of "
                          "that: give --gpus",
                          StartsWith("--step-batch-size-schedule lets the batch grow")));
  EXPECT_EQ(read("gpt_for_more_nodes.sh", {{"NUM_NODES", "64"}}).number("gpus"), 512);
}

TEST(LaunchScripts, AVocabularyByTokenizer) {
  const Read run = read("experts_by_tokenizer.sh");
  EXPECT_EQ(run.number("gpus"), 32);
  EXPECT_EQ(run.number("ep"), 8);
  EXPECT_EQ(run.model().vocab, 32'000);
  EXPECT_EQ(count_parameters(run.model()).total, 46'702'792'704);  // Mixtral 8x7B's.
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("32,000 tokens, of Llama2Tokenizer")));
  EXPECT_THAT(run_of("experts_by_tokenizer.sh", {{"SLURM_NNODES", "1"}}).notes,
              Contains(HasSubstr("starts 8 GPUs, but its ranks need 32")));
}

TEST(LaunchScripts, FlagsInQuotesAndBranches) {
  const Read run = read("fp8_on_one_node.sh");
  EXPECT_EQ(run.text("dtype"), "fp8");
  EXPECT_EQ(run.text("software"), "megatron-core");
  EXPECT_EQ(run.number("zero"), 1);
  EXPECT_TRUE(run.plan.at("dp_overlap").boolean());
  EXPECT_EQ(run.number("gpus"), 8);
  EXPECT_EQ(run.model().vocab, 128'256);
  EXPECT_EQ(run_of("fp8_on_one_node.sh", {{"DTYPE", "bf16"}}).json.find("fp8"), std::string::npos);
  // The other branch has another source of the vocabulary.
  const Read other = read("fp8_on_one_node.sh", {{"2", "models/Mistral-7B-v0.3/"}});
  EXPECT_EQ(other.model().vocab, 32'768);
  EXPECT_THAT(other.notes, Contains(HasSubstr("of the tokenizer Mistral-7B-v0.3")));
}

TEST(LaunchScripts, ShardsByASwitch) {
  const Read run = read("shards_by_switch.sh");
  EXPECT_EQ(run.number("zero"), 3);
  EXPECT_EQ(run.number("gpus"), 16);
  EXPECT_EQ(read("shards_by_switch.sh", {{"STRATEGY", "optim"}}).number("zero"), 1);
  EXPECT_EQ(read("shards_by_switch.sh", {{"USE_FSDP", "0"}}).number("zero"), 1);
}

// sbatch reads the job from a document, in which srun starts a text.
TEST(LaunchScripts, AJobInADocument) {
  const Read run = read("job_in_a_document.sh");
  EXPECT_EQ(run.number("gpus"), 256);
  EXPECT_EQ(run.text("moe_dispatcher"), "hybridep");
  EXPECT_EQ(run.text("recompute"), "selective:mlp+moe+mla_up_proj+layernorm");
  EXPECT_EQ(run.model().vocab, 129'280);  // 40 x 3,232.
  EXPECT_EQ(run.model().experts->count, 256);
  EXPECT_EQ(run.model().layer_has_experts[2], false);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("by the catalog's deepseek-v3")));
}

TEST(LaunchScripts, StagesByArithmetic) {
  const Read run = read("stages_by_arithmetic.sh");
  EXPECT_EQ(run.number("pp"), 8);
  EXPECT_EQ(read("stages_by_arithmetic.sh", {{"NODES", "3"}}).number("pp"), 24);
  EXPECT_EQ(run.text("recompute"), "selective");
  const Model model = run.model();
  EXPECT_TRUE(model.gated && model.clamped_activation && model.attention_sinks);
  EXPECT_TRUE(model.rotary && model.scaled_rotary);
  EXPECT_EQ(model.window, 128);
}

// Four files, of which the last is what the job starts; a node has eight tasks.
TEST(LaunchScripts, FilesOf2021) {
  const Read run = read("of_2021/table.sh");
  EXPECT_EQ(run.number("gpus"), 128);
  EXPECT_EQ(run.number("tp"), 4);
  EXPECT_EQ(run.text("recompute"), "full");
  EXPECT_EQ(run.text("attention"), "unfused");
  EXPECT_EQ(run.text("software"), "megatron-2021");
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("of the catalog's megatron-7.5b")));
  const Read large = read("of_2021/table.sh", {{"MODEL_SIZE", "145B"}});
  EXPECT_EQ(large.number("gpus"), 1536);
  EXPECT_EQ(large.number("vpp"), 2);  // 80 layers on 8 stages, 5 a chunk.
}

TEST(LaunchScripts, ArgumentsInVariables) {
  const Read run = read("arguments_in_variables.sh");
  EXPECT_EQ(run.number("tp"), 4);
  EXPECT_EQ(run.number("ep"), 2);
  EXPECT_EQ(run.model().vocab, 152'064);  // 151,936 in whole 128 x 4.
  EXPECT_THAT(run.notes, Contains("no command has the arguments; taken together are those of "
                                  "$COMMON $ENVIRONMENT $OPTIONS"));
  EXPECT_THAT(run.notes, Contains(StartsWith("--cuda-graph-impl launches kernels by CUDA graphs")));
}

// A recipe of Megatron-LM's functional tests. TikTokenizer takes 131,072 tokens by default.
// The command is text that eval splits; what is not set is no word, and no part of a list.
TEST(LaunchScripts, UnsetVariablesAreNoWords) {
  const auto plan = [](const std::string& options) {
    const std::string script =
        "moe=\" --num-experts 8 --moe-router-topk 2 --moe-layer-freq '([1]*16)' \"\n"
        "run=\"torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 "
        "--num-attention-heads 16 --seq-length 4096 --micro-batch-size 1 --vocab-size 32000 "
        "--bf16 " +
        options + "\"\neval ${run}\n";
    return import_megatron_run(MegatronArguments::read(script, "run.sh", {}), "model");
  };
  EXPECT_EQ(JsonValue::parse(plan("--global-batch-size 64 ${moe} ${offload} --swiglu").json, "plan")
                .at("model")
                .at("experts")
                .integer(1, 99),
            8);
  EXPECT_THAT(error_text([&] { plan("--global-batch-size ${GBS} ${moe}"); }),
              HasSubstr("--global-batch-size is $GBS, which the script does not say"));
}

// Adam's state on the host: all of it, a share, or none.
// Flags are Megatron-LM's with underscores and values; defaults are those of
// swift/megatron/arguments/megatron_args.py.
TEST(LaunchScripts, OfMsSwift) {
  const auto read_text = [](const std::string& text) {
    const ImportedRun run =
        import_megatron_run(MegatronArguments::read(text, "run.sh", {}), "model");
    return Read{JsonValue::parse(run.json, "plan"), run.notes};
  };
  const std::string command =
      "NNODES=2 NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --max_length 8192 "
      "--pipeline_model_parallel_size 2 --expert_model_parallel_size 8 --packing true "
      "--sequence_parallel true --moe_grouped_gemm true --attention_backend flash --lr 1e-5 ";
  const Read run = read_text(command +
                             "--recompute_granularity full --recompute_method uniform "
                             "--recompute_num_layers 1 --global_batch_size 32\n");
  EXPECT_EQ(run.plan.at("model").at("name").text(), "qwen3-30b-a3b");
  EXPECT_EQ(run.number("gpus"), 16);
  EXPECT_EQ(run.number("pp"), 2);
  EXPECT_EQ(run.number("ep"), 8);
  EXPECT_EQ(run.number("seq"), 8192);
  EXPECT_EQ(run.number("mbs"), 1);
  EXPECT_EQ(run.number("gbs"), 32);
  EXPECT_EQ(run.number("zero"), 1);
  EXPECT_EQ(run.text("dtype"), "bf16");
  EXPECT_EQ(run.text("recompute"), "full");
  EXPECT_EQ(run.text("attention"), "flash");
  EXPECT_THAT(run.notes, ElementsAre(StartsWith("--packing ends attention")));

  EXPECT_EQ(read_text(command).number("gbs"), 16);
  EXPECT_EQ(read_text(command + "--external_plugins plugin.py --lr 1").number("pp"), 2);
  EXPECT_EQ(read_text(command).text("recompute"), "selective");
  EXPECT_EQ(read_text(command + "--recompute_granularity none").text("recompute"), "none");
  EXPECT_EQ(read_text(command + "--use_distributed_optimizer false").number("zero"), 0);
  EXPECT_EQ(read_text(command + "--optimizer_cpu_offload true").number("offload_optimizer"), 100);

  const auto refusal = [&](const std::string& text) {
    return refusal_of([&] { read_text(text); });
  };
  const std::string remedy = "; import a run that trains all weights of a language model";
  EXPECT_EQ(
      refusal(command + "--tuner_type lora"),
      "run.sh: line 1: --tuner_type is lora: nothing prices the training of adapters" + remedy);
  EXPECT_EQ(refusal("megatron rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --micro_batch_size 1"),
            "run.sh: starts megatron rlhf of ms-swift: nothing prices texts that are compared or "
            "generated between steps" +
                remedy);
  EXPECT_EQ(refusal("megatron sft --model a/b --max_length 8 --micro_batch_size 1"),
            "run.sh: --model is a/b, a model that is not known; give its shape: --model NAME or a "
            "config.json");
}

// Megatron-DeepSpeed's words and flags (megatron/arguments.py).
TEST(LaunchScripts, OfMegatronDeepSpeed) {
  const ImportedRun run = import_megatron_run(
      MegatronArguments::read(
          "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
          "--ffn-hidden-size 4096 --num-attention-heads 16 --num-key-value-heads 4 --seq-length "
          "2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 "
          "--vocab-size 32000 --bf16 --normalization rmsnorm --swiglu --disable-bias-linear "
          "--use-flash-attn-v2 --ds-sequence-parallel-size 2 --zero-stage 3 --deepspeed "
          "--deepspeed_config ds.json --no-pipeline-parallel --deepspeed-activation-checkpointing",
          "run.sh", {}),
      "model");
  const JsonValue plan = JsonValue::parse(run.json, "plan");
  EXPECT_EQ(plan.at("model").at("norm").text(), "rms");
  EXPECT_EQ(plan.at("model").at("kv_heads").integer(1, 16), 4);
  EXPECT_EQ(plan.at("zero").integer(0, 3), 3);
  EXPECT_EQ(plan.at("cp").integer(1, 8), 2);
  EXPECT_EQ(plan.at("cp_comm").text(), "a2a");
  EXPECT_EQ(plan.at("attention").text(), "flash");
  EXPECT_THAT(run.notes, IsEmpty());
}

// BigScience's of 2021 and 2022: the shards of moments are DeepSpeed's, or Megatron-LM's of 2022.
TEST(LaunchScripts, ShardedMomentsOf2022) {
  const auto software = [](const std::string& options) {
    const ImportedRun run = import_megatron_run(
        MegatronArguments::read("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 "
                                "--hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
                                "--max-position-embeddings 2048 --micro-batch-size 1 "
                                "--global-batch-size 64 --vocab-size 32000 --fp16 "
                                "--checkpoint-activations " +
                                    options,
                                "run.sh", {}),
        "model");
    return JsonValue::parse(run.json, "plan").at("software").text();
  };
  EXPECT_EQ(software(""), "megatron-2021");
  EXPECT_EQ(software("--use-distributed-optimizer"), "megatron-2022");
  EXPECT_EQ(software("--deepspeed --zero-stage 1"), "megatron-deepspeed-2022");
}

TEST(LaunchScripts, AnOptimizerOnTheHost) {
  const auto plan = [](const std::string& options) {
    const std::string script =
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 "
        "--num-attention-heads 16 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 "
        "--vocab-size 32000 --bf16 --use-distributed-optimizer --use-precision-aware-optimizer " +
        options + "\n";
    return JsonValue::parse(
        import_megatron_run(MegatronArguments::read(script, "run.sh", {}), "model").json, "plan");
  };
  const JsonValue all = plan("--optimizer-cpu-offload");
  EXPECT_EQ(all.at("offload_optimizer").integer(0, 100), 100);
  EXPECT_FALSE(all.has("main_params"));  // fp32 masters, whatever --use-precision-aware-... says.
  EXPECT_EQ(plan("--optimizer-cpu-offload --optimizer-offload-fraction 0.25")
                .at("offload_optimizer")
                .integer(0, 100),
            25);
  EXPECT_FALSE(plan("--optimizer-offload-fraction 0.25").has("offload_optimizer"));
  EXPECT_EQ(plan("").at("main_params").text(), "remainders");
  EXPECT_THAT(error_text([&] { plan("--optimizer-cpu-offload --optimizer-offload-fraction 3"); }),
              HasSubstr("--optimizer-offload-fraction is '3'; write 0 to 1"));
}

TEST(LaunchScripts, AFunctionalTest) {
  const Read run = read("functional_test.yaml");
  EXPECT_EQ(run.number("tp") * run.number("pp"), 4);
  EXPECT_EQ(run.number("gbs"), 64);  // The last of the schedule.
  EXPECT_EQ(run.number("seq"), 4096);
  EXPECT_TRUE(run.plan.at("sp").boolean());
  EXPECT_FALSE(run.plan.at("dp_overlap").boolean());
  EXPECT_EQ(run.text("recompute"), "selective:layernorm+moe_act");
  EXPECT_EQ(run.model().layers, 28);
  EXPECT_EQ(run.model().layer_has_experts[0], false);
  EXPECT_EQ(run.model().vocab, 131'072);
  EXPECT_THAT(run.notes, Contains(HasSubstr("give --gpus")));
  EXPECT_EQ(read("functional_test.yaml", {{"LAYERS", "28"}}).model().layers, 28);
  const auto refusal = [](const std::string& text) {
    return refusal_of([&] { MegatronArguments::read(text, "model_config.yaml", {}); });
  };
  EXPECT_THAT(refusal("MODE: inference\nMODEL_ARGS:\n  --num-layers: 4\n"),
              HasSubstr("which generates text"));
  EXPECT_THAT(refusal("MODEL_ARGS:\n  trainer.devices: 8\n"),
              HasSubstr("line 2: 'trainer.devices' is no argument of Megatron-LM"));
  EXPECT_THAT(refusal("MODEL_ARGS:\n  --num-layers: 4\n  --micro-batch-size: 1\n"
                      "  --tokenizer-type: BertWordPieceLowerCase\n"),
              HasSubstr("line 4: --tokenizer-type is of an encoder (BERT)"));
  EXPECT_THAT(refusal("MODEL_ARGS: [1\n"), HasSubstr("is no YAML"));
}

// The number of GPUs, as each launcher gets it.
TEST(LaunchScripts, Launchers) {
  const std::string model =
      " --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --vocab-size "
      "1024 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16";
  const auto gpus = [&](const std::string& head, const std::string& launcher) {
    const auto run = import_megatron_run(
        MegatronArguments::read(head + "\n" + launcher + " pretrain_gpt.py" + model, "run.sh", {}),
        "model");
    const JsonValue plan = JsonValue::parse(run.json, "plan");
    return plan.has("gpus") ? plan.at("gpus").integer(1, 1 << 24) : 0;
  };
  EXPECT_EQ(gpus("", "torchrun --nproc_per_node 4"), 4);
  EXPECT_EQ(gpus("", "torchrun --nnodes=2 --nproc-per-node=8"), 16);
  EXPECT_EQ(gpus("", "torchrun --nnodes $N --nproc-per-node=8"), 0);
  EXPECT_EQ(gpus("#SBATCH -N 2 --gpus-per-node=4",
                 "torchrun --nnodes $SLURM_NNODES --nproc-per-node gpu"),
            8);
  EXPECT_EQ(gpus("#SBATCH -N4\n#SBATCH --ntasks-per-node=8", "srun python"), 32);
  EXPECT_EQ(
      gpus("#SBATCH --nodes=4 --ntasks-per-node=1", "srun torchrun --nnodes 4 --nproc_per_node 8"),
      32);
  EXPECT_EQ(gpus("#SBATCH --nodes=4 --gres=gpu:8", "srun python"), 32);
  EXPECT_EQ(gpus("#SBATCH --nodes=4", "srun --ntasks-per-node 4 python"), 16);
  EXPECT_EQ(gpus("#SBATCH -n 24", "srun python"), 24);
  // A task a node starts what starts a rank a GPU.
  EXPECT_EQ(gpus("#SBATCH --nodes=8 --ntasks-per-node=1 --gpus-per-node=8", "srun run.sh python"),
            64);
  EXPECT_EQ(gpus("#SBATCH --nodes=8 --ntasks-per-node=1 --gres=gpu:h100:8", "srun run.sh python"),
            64);
  EXPECT_EQ(gpus("#SBATCH --nodes=8 --ntasks-per-node=8 --gpus-per-node=8", "srun python"), 64);
  EXPECT_EQ(gpus("", "mpirun -np 64 -x NCCL_DEBUG=INFO python"), 64);
  EXPECT_EQ(gpus("", "deepspeed --num_nodes 2 --num_gpus 8"), 16);
  EXPECT_EQ(gpus("", "python"), 0);
}

// arguments.py: a global batch is one micro-batch of each replica unless it is given.
TEST(LaunchScripts, ABatchThatIsNotGiven) {
  const std::string model =
      " pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length "
      "2048 --vocab-size 1024 --max-position-embeddings 2048 --micro-batch-size 2 --bf16 "
      "--tensor-model-parallel-size 2";
  const auto run = [&](const std::string& launcher) {
    return import_megatron_run(MegatronArguments::read(launcher + model, "run.sh", {}), "model");
  };
  EXPECT_EQ(
      JsonValue::parse(run("torchrun --nproc_per_node 8").json, "plan").at("gbs").integer(1, 99),
      8);
  EXPECT_THAT(refusal_of([&] { run("python"); }), HasSubstr("has no --global-batch-size"));
}

// Features without a cost model are refused by name.
TEST(LaunchScripts, WhatHasNoPrices) {
  const auto refusal = [](const std::string& command) {
    return refusal_of([&] {
      MegatronArguments::read("torchrun --nproc_per_node 8 " + command +
                                  " --tensor-model-parallel-size 2 --micro-batch-size 1",
                              "run.sh", {});
    });
  };
  EXPECT_EQ(refusal("pretrain_t5.py --encoder-num-layers 12"),
            "run.sh: starts pretrain_t5.py: nothing prices an encoder and a decoder (T5); "
            "import a run that trains a GPT-like model");
  EXPECT_THAT(refusal("pretrain_bert.py --num-layers 24"), HasSubstr("an encoder (BERT)"));
  EXPECT_THAT(refusal("pretrain_retro.py --num-layers 24"), HasSubstr("retrieval (RETRO)"));
  EXPECT_THAT(
      refusal("pretrain_mamba.py --hidden-size 1024"),
      HasSubstr("starts pretrain_mamba.py without a pattern of its layers; write the layers "
                "with --hybrid-layer-pattern"));
  EXPECT_THAT(refusal("train.py --language-model-type mistral_7b"), HasSubstr("an image encoder"));
  EXPECT_THAT(refusal("pretrain_gpt.py --num-layers 2 --spec megatron.core.models.mamba stack"),
              HasSubstr("--spec names layers of several kinds without their pattern"));
  EXPECT_THAT(refusal("tools/run_text_generation_server.py --num-layers 2"),
              HasSubstr("which generates text: only training is priced"));
  EXPECT_THAT(refusal("-m examples.inference.offline --num-layers 2"), HasSubstr("generates text"));
  EXPECT_THAT(refusal("train_rl.py --use-checkpoint-args"),
              HasSubstr("takes the model's sizes from a checkpoint"));
}

// They become keys of the plan, or have no effect here.
TEST(LaunchScripts, VariablesOfNccl) {
  const std::string script =
      "export NCCL_ALGO='Ring,Tree' NCCL_IB_TIMEOUT=19\nexport NCCL_NVLS_ENABLE=0\n"
      "NCCL_MAX_CTAS=8 torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size "
      "1024 --num-attention-heads 16 --seq-length 2048 --vocab-size 1024 "
      "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16";
  const auto imported = [](const std::string& text) {
    return import_megatron_run(MegatronArguments::read(text, "x", {}), "x");
  };
  const ImportedRun run = imported(script);
  EXPECT_THAT(run.notes,
              ElementsAre("NCCL_MAX_CTAS=8 has no effect in the model, in which NCCL chooses its "
                          "channels",
                          "NCCL_NVLS_ENABLE=0 is read where there is no NCCL_ALGO: leave NVLS and "
                          "NVLSTree out of it"));
  EXPECT_THAT(run.json, HasSubstr("\"nccl_algo\": \"Ring+Tree\""));
  const std::string rest = script.substr(script.find('\n') + 1);
  EXPECT_THAT(imported("export NCCL_PROTO=^LL128\n" + rest).json,
              HasSubstr("\"nccl_algo\": \"^NVLS+NVLSTree\",\n  \"nccl_proto\": \"^LL128\""));
  EXPECT_EQ(error_text([&] { imported("export NCCL_ALGO=Rong\n" + rest); }),
            "x: NCCL_ALGO: 'Rong' is none of NCCL's; write some of: Tree, Ring, CollnetDirect, "
            "CollnetChain, NVLS, NVLSTree, PAT, Symmetric");
}

// Features that change time or memory and are not modelled are reported.
TEST(LaunchScripts, WhatIsPricedOtherwise) {
  const std::string model =
      "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length "
      "2048 --vocab-size 1024 --max-position-embeddings 2048 --micro-batch-size 1 "
      "--global-batch-size 64 --bf16 ";
  const auto notes = [&](const std::string& flags) {
    return import_megatron_run(
               MegatronArguments::read("torchrun --nproc_per_node 8 " + model + flags, "x", {}),
               "x")
        .notes;
  };
  EXPECT_THAT(notes(""), IsEmpty());
  EXPECT_THAT(notes("--use-precision-aware-optimizer"), IsEmpty());
  EXPECT_THAT(notes("--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8 "
                    "--main-grads-dtype bf16"),
              IsEmpty());
  EXPECT_THAT(notes("--fp8-format hybrid"), ElementsAre(StartsWith("without --fp8-param-gather")));
  EXPECT_THAT(notes("--fp8-format hybrid --fp8-param-gather"), IsEmpty());
  EXPECT_THAT(notes("--fp8-format hybrid --fp8-param-gather --use-distributed-optimizer "
                    "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"),
              testing::Contains(testing::EndsWith("they are counted in 16")));
  EXPECT_THAT(notes("--cuda-graph-impl none"), IsEmpty());
}

// What is in CUDA graphs, as today's and older arguments say it. A layer without experts has
// nothing but launches, so that its parts make no difference.
TEST(LaunchScripts, CudaGraphs) {
  const auto captured = [](const std::string& flags, bool experts = true) {
    std::vector<std::string> notes;
    const auto arguments =
        MegatronArguments::read("pretrain_gpt.py --num-layers 8 " + flags, "x", {});
    const std::string parts = captured_in_graphs(arguments, experts, notes).value_or("-");
    return parts + (notes.empty() ? "" : "; " + notes.at(0));
  };
  const std::string scope = "--cuda-graph-impl transformer_engine --cuda-graph-scope ";
  const std::string priced =
      " launches kernels by CUDA graphs; assumed: a host that launches those of each layer";
  EXPECT_EQ(captured(""), "-");
  EXPECT_EQ(captured("--cuda-graph-scope attn"), "-");
  // Of patterns of layers, under the newer name.
  const std::string modules = "--cuda-graph-impl transformer_engine --cuda-graph-modules ";
  EXPECT_EQ(captured(modules + "attn mamba moe_router moe_preprocess"), "attention+router");
  EXPECT_EQ(captured(modules + "[attn mamba moe_router moe_preprocess]"), "attention+router");
  EXPECT_EQ(captured(modules + "mamba"), "attention");
  EXPECT_EQ(captured(scope + "moe_router moe_preprocess"), "router");
  EXPECT_EQ(captured(scope + "attn"), "attention");
  EXPECT_EQ(captured(scope + "attn moe_router"), "attention+router");
  EXPECT_EQ(captured("--cuda-graph-impl local --cuda-graph-scope full_iteration"), "step");
  EXPECT_EQ(captured("--enable-cuda-graph --cuda-graph-scope full_iteration", false), "step");
  EXPECT_EQ(captured(scope + "attn", false), "-; --cuda-graph-impl" + priced);
  EXPECT_EQ(captured("--enable-cuda-graph"), "-; --enable-cuda-graph" + priced);
  EXPECT_EQ(captured(scope + "attn mlp"),
            "attention; --cuda-graph-impl" + priced + ", but for attention and router");
}

}  // namespace
}  // namespace orrery::launch_scripts_test
