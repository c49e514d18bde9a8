#include "sim/formats/megatron/megatron_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/model/layer_pattern.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/software.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::megatron_run_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Flags of the smallest run; more may follow.
const std::string tiny =
    "pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 4096 --vocab-size 50257 --micro-batch-size 2 --global-batch-size "
    "64 ";

ImportedRun run_of(const std::string& text, const std::map<std::string, std::string>& given = {}) {
  return import_megatron_run(MegatronArguments::read(text, "run.sh", given), "tiny");
}
JsonValue plan_of(const std::string& text) { return JsonValue::parse(run_of(text).json, "plan"); }
Model model_of(const std::string& text) { return parse_model(plan_of(text).at("model")); }
std::string refusal(const std::string& text) {
  return refusal_of([&] { run_of(text); });
}

// Defaults of arguments.py for flags that are absent.
TEST(MegatronRun, DefaultsAreMegatrons) {
  const JsonValue plan = plan_of(tiny + "--fp16");
  EXPECT_EQ(plan.at("tp").integer(1, 99), 1);
  EXPECT_EQ(plan.at("zero").integer(0, 3), 0);
  EXPECT_FALSE(plan.at("sp").boolean());
  EXPECT_EQ(plan.at("dtype").text(), "fp16");
  EXPECT_EQ(plan.at("recompute").text(), "none");
  EXPECT_FALSE(plan.at("dp_overlap").boolean());
  const Model model = model_of(tiny + "--fp16");
  EXPECT_EQ(model.ffn, 4096);
  EXPECT_FALSE(model.gated);
  EXPECT_EQ(model.norm, NormKind::layer);
  EXPECT_EQ(model.learned_positions, 4096);
  EXPECT_TRUE(model.qkv_bias && model.out_bias && model.mlp_bias && model.tied_embeddings);
  EXPECT_EQ(model.kv_heads, 16);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.vocab, 50304);  // 393 x 128.
}

// As orrery run takes it, however a script or a printed list writes it.
TEST(MegatronRun, KeepsABatchThatGrows) {
  EXPECT_EQ(plan_of(tiny + "--bf16 --rampup-batch-size 16 16 9_765_625").at("ramp").text(),
            "16 16 9765625");
  EXPECT_EQ(
      plan_of(tiny + "--bf16 --rampup-batch-size \"['16', '16', '300000']\"").at("ramp").text(),
      "16 16 300000");
  EXPECT_FALSE(plan_of(tiny + "--bf16").has("ramp"));
}

TEST(MegatronRun, VocabularyIsPaddedForEveryRank) {
  EXPECT_EQ(model_of(tiny + "--bf16 --tensor-model-parallel-size 8").vocab, 51200);
  EXPECT_EQ(model_of(tiny + "--bf16 --make-vocab-size-divisible-by 1").vocab, 50257);
}

// 2/3 of 4 h in tiles of 64: 2730 -> 2688.
TEST(MegatronRun, WidthOfAGatedMlp) { EXPECT_EQ(model_of(tiny + "--bf16 --swiglu").ffn, 2688); }

// 127 tokens before a query and its own; every second layer sees all, or none does.
TEST(MegatronRun, Windows) {
  const Model some = model_of(tiny + "--bf16 --window-size 127,0 --window-attn-skip-freq 2");
  EXPECT_EQ(some.window, 128);
  EXPECT_EQ(some.layer_is_local, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(model_of(tiny + "--bf16 --window-size '(127, 0)'").layer_is_local,
            std::vector<bool>(4, true));
  for (const char* size : {"127,1", "-1,0", "x", "127,0,0"})
    EXPECT_THAT(refusal(tiny + "--bf16 --window-size " + size),
                HasSubstr("write tokens before a query and 0 after it: \"127,0\""))
        << size;
}

TEST(MegatronRun, ALaunchScript) {
  const std::string text = sample("llama3_8b.sh");
  EXPECT_EQ(refusal(text),
            "run.sh: line 26: --global-batch-size is $GBS, which the script does not say; give "
            "it: --set GBS=N");
  const ImportedRun run = run_of(text, {{"GBS", "256"}});
  EXPECT_THAT(run.notes, testing::IsEmpty());
  const JsonValue plan = JsonValue::parse(run.json, "plan");
  EXPECT_EQ(plan.at("gpus").integer(1, 999), 64);
  EXPECT_EQ(plan.at("tp").integer(1, 99), 4);
  EXPECT_EQ(plan.at("gbs").integer(1, 999), 256);
  EXPECT_TRUE(plan.at("sp").boolean());
  EXPECT_TRUE(plan.at("dp_overlap").boolean());
  EXPECT_EQ(count_parameters(parse_model(plan.at("model"))).total,
            8'030'261'248 + 2 * (128'512 - 128'256) * 4096);  // Llama 3's, and the padding.
}

// A variable in quotes over several lines, as scripts before arrays had them.
TEST(MegatronRun, LinesInQuotesAreWords) {
  const JsonValue plan = plan_of(
      "ARGS=\"\n  --num-layers 4 --hidden-size 1024\n"
      "  --num-attention-heads 16\n  --seq-length 2048 --bf16\n"
      "  --max-position-embeddings 2048 --vocab-size 50257\n"
      "  --micro-batch-size 2\n  --global-batch-size 64\n\"\n"
      "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py $ARGS\n");
  EXPECT_EQ(plan.at("gpus").integer(1, 99), 16);
  EXPECT_EQ(plan.at("gbs").integer(1, 99), 64);
  EXPECT_EQ(plan.at("model").at("heads").integer(1, 99), 16);
}

// Chunks bring their transfers' overlap, and leave that of gradients (tp_overlap) as it is.
TEST(MegatronRun, InterleavingIsNoSlowerThanWithout) {
  const std::string flags = tiny +
                            "--bf16 --tensor-model-parallel-size 2 --sequence-parallel "
                            "--pipeline-model-parallel-size 2 ";
  const JsonValue chunks = plan_of(flags + "--num-virtual-stages-per-pipeline-rank 2");
  EXPECT_FALSE(chunks.has("tp_overlap"));
  EXPECT_FALSE(plan_of(flags).has("tp_overlap"));
  const Software with = read_software(chunks.at("software").text(), {});
  const Software without = read_software(plan_of(flags).at("software").text(), {});
  EXPECT_TRUE(with.overlap_pp);
  EXPECT_FALSE(without.overlap_pp);
  EXPECT_EQ(with.tp_overlap, without.tp_overlap);
  EXPECT_EQ(with.overlap_tp_gradients, without.overlap_tp_gradients);
  EXPECT_EQ(with.tp_hidden, without.tp_hidden);
}

// arguments.py: bf16 gradients are accumulated and reduced in fp32 unless --grad-reduce-in-bf16.
TEST(MegatronRun, GradientsAreReducedInFp32ByDefault) {
  const auto software = [](const std::string& flags) {
    const JsonValue plan = plan_of(tiny + flags);
    return plan.has("software") ? plan.at("software").text() : "";
  };
  EXPECT_EQ(software("--bf16"), "megatron-core-fp32-reduce");
  EXPECT_EQ(software("--bf16 --grad-reduce-in-bf16"), "megatron-core");
  EXPECT_EQ(software("--fp16"), "megatron-core");
  EXPECT_EQ(software("--fp16 --accumulate-allreduce-grads-in-fp32"), "megatron-core-fp32-reduce");
  // Where the run overlaps traffic, a software that does both.
  const std::string chunks =
      "--bf16 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 ";
  EXPECT_EQ(software(chunks), "megatron-core-fp32-reduce-interleaved");
  EXPECT_EQ(software(chunks + "--no-overlap-p2p-communication"), "megatron-core-fp32-reduce");
  EXPECT_EQ(software("--bf16 --tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap"),
            "megatron-core-fp32-reduce-overlap");
}

// "------ arguments ------" of a log, with what a launcher puts in front of each line.
TEST(MegatronRun, APrintedList) {
  const std::string list =
      "0: using world size: 16\n"
      "0: ------------------------ arguments ------------------------\n"
      "0:   bf16 ............................................ True\n"
      "0:   fp16 ............................................ False\n"
      "0:   fp8 ............................................. None\n"
      "0:   add_bias_linear ................................. False\n"
      "0:   global_batch_size ............................... 64\n"
      "0:   hidden_size ..................................... 1024\n"
      "0:   max_position_embeddings ......................... 2048\n"
      "0:   micro_batch_size ................................ 2\n"
      "0:   num_attention_heads ............................. 16\n"
      "0:   num_layers ...................................... 4\n"
      "0:   padded_vocab_size ............................... 50432\n"
      "0:   pipeline_model_parallel_size .................... 2\n"
      "0:   recompute_granularity ........................... selective\n"
      "0:   recompute_modules ............................... ['core_attn', 'mlp']\n"
      "0:   seq_length ...................................... 2048\n"
      "0:   virtual_pipeline_model_parallel_size ............ 2\n"
      "0:   world_size ...................................... 16\n"
      "0: -------------------- end of arguments ---------------------\n";
  const JsonValue plan = plan_of(list);
  EXPECT_EQ(plan.at("gpus").integer(1, 99), 16);
  EXPECT_EQ(plan.at("pp").integer(1, 99), 2);
  EXPECT_EQ(plan.at("vpp").integer(1, 99), 2);
  EXPECT_EQ(plan.at("dtype").text(), "bf16");
  EXPECT_EQ(plan.at("recompute").text(), "selective:core_attn+mlp");
  EXPECT_FALSE(model_of(list).qkv_bias);
  EXPECT_EQ(model_of(list).vocab, 50432);
  EXPECT_FALSE(plan.has("measured") || plan.has("arguments"));
  const JsonValue log =
      plan_of(list + "0: iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | lm loss: 1\n" +
              "0: iteration 2/ 9 | elapsed time per iteration (ms): 1250.0 | lm loss: 1\n");
  EXPECT_EQ(log.at("measured").at("step_s").number(0, 9), 1.25);
  EXPECT_EQ(log.at("measured").at("iterations").integer(0, 9), 1);

  // Of its hundreds of defaults those that are on say nothing.
  const auto with = [&](const std::string& name, const std::string& value) {
    return replaced(list, "0:   seq_length",
                    "0:   " + name + " .... " + value + "\n0:   seq_length");
  };
  for (const char* usual : {"scatter_gather_tensors_in_pipeline", "fp8_wgrad", "data_sharding",
                            "fully_parallel_save", "train_sync_interval"})
    EXPECT_EQ(run_of(with(usual, "True")).json, run_of(list).json) << usual;
  EXPECT_EQ(run_of(with("hybrid_context_parallel", "False")).json, run_of(list).json);
  const std::string refused = refusal(with("hybrid_context_parallel", "True"));
  EXPECT_THAT(refused, HasSubstr("line 17: "));
  EXPECT_THAT(refused, HasSubstr("hybrid_context_parallel decides parallelism, and is not priced; "
                                 "leave it out (--set hybrid_context_parallel=null)"));
  EXPECT_EQ(
      run_of(with("hybrid_context_parallel", "True"), {{"hybrid_context_parallel", "null"}}).json,
      run_of(list).json);
}

// DeepSeek-V3's, but for the layers.
TEST(MegatronRun, ExpertsAndLatentAttention) {
  const std::string text =
      tiny +
      "--bf16 --swiglu --tensor-model-parallel-size 2 --num-experts 64 --moe-router-topk 6 "
      "--moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 1024 "
      "--moe-layer-freq '([0]*1+[1]*3)' --moe-router-num-groups 8 --moe-router-group-topk 4 "
      "--moe-router-enable-expert-bias --expert-model-parallel-size 8 "
      "--moe-token-dispatcher-type flex --multi-latent-attention --q-lora-rank 256 "
      "--kv-lora-rank 512";
  const Model model = model_of(text);
  ASSERT_TRUE(model.experts && model.latent);
  EXPECT_EQ(model.experts->count, 64);
  EXPECT_EQ(model.experts->shared_ffn, 1024);
  EXPECT_EQ(model.layer_has_experts, (std::vector<bool>{false, true, true, true}));
  EXPECT_TRUE(model.experts->correction_bias);
  EXPECT_EQ(model.latent->kv_rank, 512);
  EXPECT_EQ(model.latent->v_dim, 128);
  const JsonValue plan = plan_of(text);
  EXPECT_EQ(plan.at("etp").integer(1, 99), 2);  // arguments.py: tp, unless given.
  EXPECT_EQ(plan.at("moe_dispatcher").text(), "deepep");
}

TEST(MegatronRun, ChunksOfThePipeline) {
  const std::string pp2 = tiny + "--bf16 --pipeline-model-parallel-size 2 ";
  EXPECT_EQ(plan_of(pp2).at("schedule").text(), "1f1b");
  EXPECT_EQ(plan_of(pp2 + "--num-layers-per-virtual-pipeline-stage 1").at("vpp").integer(1, 9), 2);
  EXPECT_EQ(plan_of(pp2 + "--pipeline-model-parallel-layout 'Et|t|t|tL'").at("vpp").integer(1, 9),
            2);
  EXPECT_EQ(refusal(pp2 + "--num-layers-per-virtual-pipeline-stage 3"),
            "run.sh: line 1: --num-layers-per-virtual-pipeline-stage 3 does not divide the 4 "
            "layers on 2 stages; write a divisor");
  EXPECT_THAT(refusal(pp2 + "--pipeline-model-parallel-layout 'Et|t|ttL'"), HasSubstr("3 chunks"));
}

// Without --bf16 and --fp16 weights are of 32 bits: Transformer Engine multiplies them in tf32,
// PyTorch in fp32. Gradients are, too, whatever is said of bf16's.
TEST(MegatronRun, Fp32) {
  for (const auto& [flags, dtype] : {std::pair{"", "tf32"},
                                     {"--transformer-impl local", "fp32"},
                                     {"--grad-reduce-in-bf16", "tf32"}}) {
    const JsonValue plan = plan_of(tiny + flags);
    EXPECT_EQ(plan.at("dtype").text(), dtype);
    EXPECT_EQ(plan.at("attention").text(), "unfused");
    EXPECT_EQ(plan.at("software").text(), "megatron-core-fp32-reduce");
  }
  EXPECT_THAT(run_of(tiny).notes,
              Contains("neither --bf16 nor --fp16 is given: it trains in fp32, and Transformer "
                       "Engine multiplies in tf32, as all products are priced"));
}

// optimizer_config.py: the precision-aware optimizer keeps the lower halves of bf16 weights'
// masters, and where another recipe than delayed scaling quantises the weights, whole ones.
TEST(MegatronRun, StateOfTheOptimizer) {
  const auto state = [](const std::string& flags) {
    const JsonValue plan = plan_of(tiny + flags);
    const auto word = [&](const char* key) {
      const auto said = plan.find(key);
      return said ? said->text() : std::string{"-"};
    };
    return word("main_params") + " " + word("exp_avg") + " " + word("exp_avg_sq") + " " +
           (plan.has("fp8_params") ? "fp8 " : "") + word("software");
  };
  const std::string aware = "--use-distributed-optimizer --use-precision-aware-optimizer ";
  const std::string wide = " megatron-core-fp32-reduce", narrow = " megatron-core";
  EXPECT_EQ(state("--bf16 --use-distributed-optimizer"), "- - -" + wide);
  EXPECT_EQ(state("--bf16 " + aware), "remainders - -" + wide);
  EXPECT_EQ(
      state("--bf16 --main-grads-dtype bf16 --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8 " + aware),
      "remainders bf16 fp8" + narrow);
  EXPECT_EQ(state("--bf16 --main-params-dtype fp16 --exp-avg-dtype fp16 " + aware),
            "fp16 fp16 -" + wide);
  const std::string fp8 = "--bf16 --fp8-format hybrid ";
  EXPECT_EQ(state(fp8 + aware), "remainders - -" + wide);
  EXPECT_EQ(state(fp8 + "--fp8-param-gather " + aware), "- - - fp8" + wide);
  EXPECT_EQ(state(fp8 + "--fp8-recipe tensorwise --exp-avg-dtype bf16 " + aware),
            "- bf16 -" + wide);
}

// Names of 2022 and 2023.
TEST(MegatronRun, Fp8UnderItsOldNames) {
  for (const char* flag : {"--fp8-hybrid", "--fp8-e4m3", "--fp8-format hybrid"})
    EXPECT_EQ(plan_of(tiny + "--bf16 " + flag).at("dtype").text(), "fp8") << flag;
}

// Megatron-LM's usual number of layers at each end is one; without fp8 or fp4 there are none.
TEST(MegatronRun, LayersInBf16) {
  const auto layers = [](const std::string& flags) {
    const JsonValue plan = plan_of(tiny + "--bf16 " + flags);
    const auto of = [&](const char* key) {
      return plan.has(key) ? std::to_string(plan.at(key).integer(0, 99)) : "-";
    };
    return of("bf16_start_layers") + " " + of("bf16_end_layers");
  };
  const std::string fp4 = "--fp4-format e2m1 ";
  EXPECT_EQ(layers(fp4), "- -");
  EXPECT_EQ(layers(fp4 + "--num-layers-at-end-in-bf16 2"), "- -");
  EXPECT_EQ(layers(fp4 + "--first-last-layers-bf16"), "1 1");
  EXPECT_EQ(layers("--first-last-layers-bf16"), "- -");
  EXPECT_THAT(refusal(tiny + "--bf16 --fp8-format hybrid --first-last-layers-bf16"),
              HasSubstr("--first-last-layers-bf16 cannot be combined with delayed scaling"));
  EXPECT_EQ(layers("--fp8-format hybrid --fp8-recipe tensorwise --first-last-layers-bf16 "
                   "--num-layers-at-start-in-bf16 0 "
                   "--num-layers-at-end-in-bf16 2"),
            "- 2");
}

// Patterns of layers. Sizes of published models, as examples/post_training/modelopt/conf of
// Megatron-LM (commit d98e8a64) gives them, make the models of the catalog.
TEST(MegatronRun, PatternsOfLayers) {
  const std::string common =
      "pretrain_hybrid.py --bf16 --micro-batch-size 1 --global-batch-size 64 --seq-length 8192 "
      "--disable-bias-linear --untie-embeddings-and-output-weights --squared-relu "
      "--position-embedding-type none --normalization RMSNorm --group-query-attention "
      "--kv-channels 128 --vocab-size 131072 ";
  const std::string moe =
      "--moe-router-enable-expert-bias --moe-router-score-function sigmoid --moe-grouped-gemm ";
  struct Published {
    std::string name, flags;
  };
  for (const Published& one : std::vector<Published>{
           {"nemotron-3-nano-30b-a3b",
            moe + "--hidden-size 2688 --num-attention-heads 32 --num-query-groups 2 "
                  "--ffn-hidden-size 1856 --num-experts 128 --moe-router-topk 6 "
                  "--moe-shared-expert-intermediate-size 3712 --mamba-num-heads 64 "
                  "--mamba-head-dim 64 --hybrid-layer-pattern "
                  "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"},
           {"nemotron-3-super-120b-a12b",
            moe + "--hidden-size 4096 --num-attention-heads 32 --num-query-groups 2 "
                  "--ffn-hidden-size 2688 --num-experts 512 --moe-router-topk 22 "
                  "--moe-shared-expert-intermediate-size 5376 --moe-latent-size 1024 "
                  "--mamba-num-heads 128 --mtp-use-repeated-layer --hybrid-layer-pattern "
                  "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
                  "EMEMEMEM*EMEMEMEME/*E/*E"},
           {"nemotron-h-56b",
            "--hidden-size 8192 --num-attention-heads 64 --num-query-groups 8 "
            "--ffn-hidden-size 32768 --mamba-state-dim 256 --hybrid-override-pattern "
            "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-"
            "M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"}}) {
    SCOPED_TRACE(one.name);
    const Model read = model_of(common + one.flags);
    const Model known = read_model(one.name, {"", ""});
    EXPECT_EQ(read.layers, known.layers);
    EXPECT_EQ(count_parameters(read).total, count_parameters(known).total);
    EXPECT_EQ(count_parameters(read).active, count_parameters(known).active);
    EXPECT_EQ(read.pattern->layers, known.pattern->layers);
    EXPECT_EQ(read.prediction_layers, known.prediction_layers);
  }
}

// Gated delta nets among layers of pretrain_gpt.py, as Megatron-Bridge's provider of Qwen3-Next
// sets its sizes (models/qwen/qwen3_next_bridge.py).
TEST(MegatronRun, GatedDeltaNets) {
  const std::string common =
      "pretrain_gpt.py --bf16 --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 "
      "--disable-bias-linear --swiglu --normalization RMSNorm --position-embedding-type rope "
      "--num-layers 48 --hidden-size 2048 --num-attention-heads 16 --group-query-attention "
      "--num-query-groups 2 --kv-channels 256 --qk-layernorm --attention-output-gate "
      "--untie-embeddings-and-output-weights --vocab-size 151936 --ffn-hidden-size 5120 "
      "--linear-key-head-dim 128 --linear-value-head-dim 128 --linear-num-key-heads 16 "
      "--linear-num-value-heads 32 --linear-conv-kernel-dim 4 --num-experts 512 "
      "--moe-router-topk 10 --moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 512 "
      "--moe-shared-expert-gate ";
  const std::string variant = common + "--experimental-attention-variant gated_delta_net ";
  const Model known = read_model("qwen3-next-80b-a3b", {"", ""});
  for (const std::string& flags :
       {variant + "--linear-attention-freq 4", variant + "--linear-attention-freq [1,1,1,0]*12",
        common + "--linear-attention-type gated_delta_net --linear-attention-freq "
                 "'([1]*3+[0]*1)*12'",
        common + "--experimental-attention-variant gdn --linear-attention-freq 4"}) {
    SCOPED_TRACE(flags);
    const Model read = model_of(flags);
    EXPECT_EQ(count_parameters(read).total, count_parameters(known).total);
    EXPECT_EQ(count_parameters(read).active, count_parameters(known).active);
    for (int layer = 0; layer < 48; ++layer)
      EXPECT_EQ(read.pattern->layers[layer].mixer, layer % 4 == 3 ? 1 : 0) << layer;
  }
  // Prediction modules have the last layer; the usual arguments cut the stages.
  const std::string cut =
      " --pipeline-model-parallel-size 2 --mtp-num-layers 1 "
      "--moe-layer-freq [0]*2+[1]*46 --decoder-first-pipeline-num-layers 20";
  const Model predicting = model_of(variant + "--linear-attention-freq 4" + cut);
  EXPECT_EQ(predicting.pattern->prediction,
            std::vector<LayerPattern::Layer>{predicting.pattern->layers.back()});
  EXPECT_FALSE(predicting.layer_has_experts[1]);
  EXPECT_TRUE(predicting.layer_has_experts[2]);
  EXPECT_EQ(plan_of(variant + "--linear-attention-freq 4" + cut).at("layers").text(), "20+28");
  EXPECT_THAT(refusal(variant), HasSubstr("without --linear-attention-freq"));
  EXPECT_THAT(refusal(variant + "--linear-attention-freq 0"),
              HasSubstr("write a number, or \"([1]*3+[0]*1)*12\", in all as many as layers"));
  EXPECT_THAT(refusal(variant + "--linear-attention-freq [1,0]*3"), HasSubstr("as many as layers"));
  for (const char* other : {"dsa", "gdn2", "x"})
    EXPECT_THAT(refusal(common + "--linear-attention-freq 4 --experimental-attention-variant " +
                        std::string{other}),
                HasSubstr("whose training has no prices"));
}

// Runs of layers are written shorter, and nothing else changes: all patterns of up to seven letters
// of three kinds.
TEST(MegatronRun, EveryShortPatternKeepsItsLayers) {
  const std::string common =
      "--bf16 --micro-batch-size 1 --global-batch-size 8 --seq-length 512 --hidden-size 1024 "
      "--num-attention-heads 8 --vocab-size 1024 --hybrid-layer-pattern=";
  for (int length = 1; length <= 7; ++length) {
    int patterns = 1;
    for (int i = 0; i < length; ++i) patterns *= 3;
    for (int number = 0; number < patterns; ++number) {
      std::string pattern;
      for (int i = 0, rest = number; i < length; ++i, rest /= 3) pattern += "M*-"[rest % 3];
      std::string found;
      const Model model = model_of(common + "'" + pattern + "'");
      for (const LayerPattern::Layer& layer : model.pattern->layers)
        found += layer.mixer < 0 ? '-'
                 : model.pattern->mixers[static_cast<std::size_t>(layer.mixer)].name == "full"
                     ? '*'
                     : 'M';
      ASSERT_EQ(found, pattern);
    }
  }
}

TEST(MegatronRun, PatternsCutIntoChunks) {
  const std::string common =
      "--bf16 --micro-batch-size 1 --global-batch-size 8 --seq-length 512 --hidden-size 1024 "
      "--num-attention-heads 8 --vocab-size 1024 --pipeline-model-parallel-size 2 ";
  const JsonValue plan = plan_of(common + "--hybrid-layer-pattern 'M-M*-|M-M|*-|M-'");
  EXPECT_EQ(plan.at("vpp").integer(1, 9), 2);
  EXPECT_EQ(plan.at("layers").text(), "5+3+2x2");
  EXPECT_EQ(plan.at("schedule").text(), "interleaved");
  EXPECT_FALSE(plan_of(common + "--hybrid-layer-pattern M-M-").has("layers"));
  const auto refused = [&](const std::string& flags) { return refusal(common + flags); };
  EXPECT_THAT(refused("--hybrid-layer-pattern 'M|M|M'"),
              HasSubstr("cuts its pattern of layers into 3 chunks for 2 stages"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MMM"),
              HasSubstr("a pattern of 3 layers, which 2 stages do not divide"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MM --pipeline-model-parallel-layout 'Et|tL'"),
              HasSubstr("--pipeline-model-parallel-layout cannot be combined with a pattern"));
  EXPECT_THAT(
      refused("--hybrid-layer-pattern MM --account-for-loss-in-pipeline-split"),
      HasSubstr(
          "--account-for-loss-in-pipeline-split cannot be combined with a pattern of layers"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MM --hybrid-override-pattern MM"),
              HasSubstr("keep one of them"));
  EXPECT_THAT(refused("--hybrid-layer-pattern 'M*+M'"), HasSubstr("both attention (*)"));
  EXPECT_THAT(refused("--hybrid-layer-pattern ''"), HasSubstr("is empty"));
  EXPECT_THAT(refused("--hybrid-layer-pattern 'M||M'"), HasSubstr("a chunk without layers"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MXM"), HasSubstr("has 'X', which is no layer"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MDM"), HasSubstr("sparse attention (D)"));
  EXPECT_THAT(refused("--hybrid-layer-pattern 'MM/M/*'"), HasSubstr("modules that differ"));
  EXPECT_THAT(refused("--hybrid-layer-pattern MM --mtp-num-layers 1"),
              HasSubstr("--mtp-num-layers is given with a pattern that has no prediction modules"));
  EXPECT_THAT(refused("--num-layers 4 --hybrid-attention-ratio 0.25"),
              HasSubstr("instead of a pattern of layers"));
  EXPECT_THAT(refused("--num-layers 4 --is-hybrid-model"), HasSubstr("without a pattern"));
  EXPECT_THAT(refused("--hybrid-layer-pattern " + std::string(20'001, 'M')),
              HasSubstr("20,001 letters"));
}

TEST(MegatronRun, NotesWhatItDoesNotRead) {
  EXPECT_THAT(run_of(tiny + "--bf16 --some-new-flag 3 --lr 1e-4").notes,
              testing::ElementsAre(HasSubstr("give --gpus"), "not read: --some-new-flag"));
}

TEST(MegatronRun, Refusals) {
  EXPECT_EQ(refusal("ls -l"),
            "run.sh: holds no arguments of Megatron-LM (no --num-layers or --hidden-size); give "
            "the launch script, or the list of arguments that Megatron-LM prints");
  EXPECT_EQ(refusal("--num-layers 4"), "run.sh: has no --hidden-size; add it");
  EXPECT_EQ(refusal(tiny + "--fp8-format hybrid"),
            "run.sh: multiplies in fp8 weights of 32 bits, which has no prices; add --bf16");
  EXPECT_EQ(refusal(tiny + "--bf16 --hidden-size big"),
            "run.sh: line 1: --hidden-size is 'big', no whole number; write a whole number, or "
            "--set the variable that it comes from");
  EXPECT_THAT(refusal(tiny + "--bf16 --normalization BatchNorm"),
              HasSubstr("--normalization is 'BatchNorm'; known are LayerNorm, RMSNorm"));
  EXPECT_THAT(refusal(tiny + "--bf16 --tensor-model-parallel-size 0"), HasSubstr("is 0"));
  EXPECT_THAT(refusal(tiny + "--bf16 --num-experts 8 --moe-layer-freq [1]*2+[0]*2"),
              HasSubstr("only leading layers may be dense"));
}

}  // namespace
}  // namespace orrery::megatron_run_test
