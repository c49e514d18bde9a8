#include "sim/formats/automodel/automodel_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::automodel_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string recipe = read_text_file(
    std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/automodel/recipes/nemotron_nano.yaml");

using Set = std::map<std::string, std::string>;
ImportedRun run_of(const Set& set = {}, const std::string& text = recipe,
                   std::optional<std::int64_t> gpus = 8) {
  return import_automodel_run(text, "run.yaml", {"run", std::nullopt, gpus, set});
}
std::string plan_of(const Set& set) { return plan_text(run_of(set)); }
std::string refusal(const Set& set, const std::string& text = recipe) {
  return refusal_of([&] { run_of(set, text); });
}

TEST(AutomodelRun, ARecipe) {
  const ImportedRun run = run_of({}, recipe, std::nullopt);
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" ep=8 etp=1 exp_avg=\"bf16\" "
            "exp_avg_sq=\"bf16\" gbs=512 main_params=\"none\" mbs=4 moe_dispatcher=\"deepep\" pp=1 "
            "recompute=\"full\" routing=\"round-robin\" seq=4096 software=\"automodel\" sp=false "
            "tp=1 zero=1");
  EXPECT_THAT(run.notes, ElementsAre("the file does not say how many GPUs it uses: give --gpus"));
  EXPECT_EQ(model_of_run(run).name, "nemotron-3-nano-30b-a3b");
  EXPECT_THAT(run_of().notes, IsEmpty());
}

// Gathered weights stay for the whole step, until the last micro-batch, or until after their layer.
TEST(AutomodelRun, ShardsAreByWhatIsGivenBack) {
  const std::string optimized = "model.backend.enable_fsdp_optimizations";
  EXPECT_THAT(plan_of({{optimized, "false"}}), HasSubstr("zero=2"));
  EXPECT_THAT(plan_of({{"distributed.moe.reshard_after_forward", "true"}}), HasSubstr("zero=3"));
  EXPECT_THAT(plan_of({{"distributed.strategy", "ddp"}}), HasSubstr("zero=0"));
  const Set dense{{"model.config.pretrained_model_name_or_path", "meta-llama/Llama-3.1-8B"}};
  EXPECT_THAT(plan_of(dense), HasSubstr("zero=3"));
  EXPECT_THAT(refusal({{"distributed.strategy", "zero"}}), HasSubstr("write fsdp2 or ddp"));
}

TEST(AutomodelRun, StagesAreRoundedToWholeTurnsOfTheRanks) {
  Set set{{"distributed.pp_size", "4"},
          {"distributed.pipeline.pp_schedule", "interleaved1f1b"},
          {"distributed.pipeline.pp_microbatch_size", "1"},
          {"distributed.pipeline.layers_per_stage", "5"}};
  // 52 layers are 11 stages of 5 at most.
  EXPECT_THAT(refusal(set), HasSubstr("makes 11 stages, which 4 ranks do not divide"));
  set["distributed.pipeline.round_virtual_stages_to_pp_multiple"] = "down";
  EXPECT_THAT(plan_of(set), HasSubstr("layers=\"7x4+6x4\""));
  EXPECT_THAT(plan_of(set), HasSubstr("vpp=2"));
  EXPECT_THAT(plan_of(set), HasSubstr("local_batch="));
  set["distributed.pipeline.round_virtual_stages_to_pp_multiple"] = "up";
  EXPECT_THAT(plan_of(set), HasSubstr("layers=\"5x4+4x8\""));
  set["distributed.pipeline.layers_per_stage"] = "13";
  EXPECT_THAT(plan_of(set), HasSubstr("schedule=\"1f1b\""));
  set["distributed.pipeline.pp_schedule"] = "zbv";
  EXPECT_THAT(refusal(set), HasSubstr("is 'zbv', which is not modelled here"));
}

TEST(AutomodelRun, FormatsAreThoseOfTheLoadedWeights) {
  EXPECT_THAT(plan_of({{"model.torch_dtype", "float32"}}), testing::Not(HasSubstr("main_params")));
  const std::string te = "transformer_engine.pytorch.optimizers.FusedAdam";
  EXPECT_THAT(plan_of({{"optimizer._target_", te}}), HasSubstr("main_params=\"none\""));
  EXPECT_THAT(plan_of({{"optimizer._target_", te}}), testing::Not(HasSubstr("exp_avg=")));
  EXPECT_THAT(plan_of({{"optimizer._target_", te}, {"optimizer.master_weights", "true"}}),
              testing::Not(HasSubstr("main_params")));
  EXPECT_THAT(plan_of({{"model.backend.te_fp8.recipe", "mxfp8"}}), HasSubstr("dtype=\"mxfp8\""));
  EXPECT_THAT(plan_of({{"fp8.enabled", "true"}}), HasSubstr("dtype=\"fp8\""));
  EXPECT_THAT(refusal({{"model.backend.te_fp8.recipe", "block"}}), HasSubstr("has no prices"));
  EXPECT_THAT(refusal({{"optimizer._target_", "dion.Muon"}}), HasSubstr("is dion.Muon"));
}

TEST(AutomodelRun, TokensReachTheirExpertsByTheDispatcher) {
  const std::string at = "model.backend.";
  EXPECT_THAT(plan_of({{at + "dispatcher", "hybridep"}}), HasSubstr("\"hybridep\""));
  EXPECT_THAT(plan_of({{at + "dispatcher", "torch"}}), HasSubstr("\"allgather\""));
  EXPECT_THAT(refusal({{at + "dispatcher", "mori"}}), HasSubstr("write deepep, hybridep or torch"));
  EXPECT_THAT(plan_of({{at + "fake_balanced_gate", "false"}}), testing::Not(HasSubstr("routing")));
  EXPECT_THAT(plan_of({{at + "fake_gate_noise", "0.5"}}), HasSubstr("drawn-uniform"));
}

// A recipe without a dispatcher gets a note; older recipes have a switch instead.
TEST(AutomodelRun, ADispatcherIsAssumedAloud) {
  std::string text = recipe;
  const std::string line = "    dispatcher: deepep\n";
  text.erase(text.find(line), line.size());
  const ImportedRun run = run_of({}, text);
  EXPECT_THAT(plan_text(run), HasSubstr("\"deepep\""));
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("model.backend.dispatcher is not stated")));
  EXPECT_THAT(plan_text(run_of({{"model.backend.enable_deepep", "false"}}, text)),
              HasSubstr("\"allgather\""));
}

TEST(AutomodelRun, RecomputationIsATruthOrAWord) {
  const std::string at = "distributed.activation_checkpointing";
  for (const char* word : {"true", "yes", "on", "TRUE", "full"})
    EXPECT_THAT(plan_of({{at, word}}), HasSubstr("recompute=\"full\"")) << word;
  for (const char* word : {"false", "no"})
    EXPECT_THAT(plan_of({{at, word}}), HasSubstr("recompute=\"none\"")) << word;
  EXPECT_THAT(plan_of({{at, "selective"}}), HasSubstr("recompute=\"selective\""));
  EXPECT_THAT(refusal({{at, "zzz"}}), HasSubstr("zzz"));
}

TEST(AutomodelRun, BadValuesAreNamed) {
  for (const char* path :
       {"distributed.tp_size", "distributed.ep_size", "distributed.dp_replicate_size",
        "step_scheduler.global_batch_size", "step_scheduler.local_batch_size"})
    for (const char* value : {"0", "-8", "2000000"})
      EXPECT_THAT(refusal({{path, value}}), HasSubstr(path)) << value;
  EXPECT_THAT(refusal({{"distributed.dp_size", "16"}}), HasSubstr("means 16 GPUs"));
  EXPECT_THAT(refusal({{"model.backend.fake_gate_noise", "nan"}}),
              HasSubstr("a share from 0 to 1"));
  EXPECT_THAT(refusal({{"optimizer.exp_avg_dtype", "zzz"}}), HasSubstr("is 'zzz'"));
  EXPECT_THAT(refusal({{"model.config.first_k_dense_replace", "5"}}),
              HasSubstr("changes the model's config.json"));
  std::string text = recipe;
  text.replace(text.find("distributed:"), 12, "distributed: 5\nother:");
  EXPECT_THAT(refusal({}, text), HasSubstr("is no section of settings"));
}

TEST(AutomodelRun, Adapters) {
  EXPECT_THAT(plan_of({{"peft.dim", "16"}, {"peft.match_all_linear", "True"}}),
              testing::AllOf(HasSubstr("finetune=\"lora\""), HasSubstr("lora_rank=16"),
                             HasSubstr("lora_targets=\"all-linear\"")));
  EXPECT_THAT(plan_of({{"peft.target_modules", "*.q_proj, *.k_proj, *.v_proj, *.down_proj"}}),
              testing::AllOf(HasSubstr("lora_rank=8"), HasSubstr("lora_targets=\"qkv+fc2\"")));
  EXPECT_THAT(plan_of({{"peft.dim", "8"}, {"quantization.load_in_4bit", "True"}}),
              HasSubstr("finetune=\"qlora\""));
  EXPECT_THAT(plan_of({{"peft.dim", "8"}}), HasSubstr("lora_targets=\"all-linear\""));
  EXPECT_THAT(refusal({{"peft.use_dora", "true"}}), HasSubstr("peft.use_dora scales"));
  EXPECT_THAT(refusal({{"peft.exclude_modules", "*.o_proj"}}), HasSubstr("leaves out '*.o_proj'"));
  EXPECT_THAT(refusal({{"peft.target_modules", "zzz"}}), HasSubstr("no known linear layer"));
}

TEST(AutomodelRun, RefusesWhatNoPlanSays) {
  EXPECT_THAT(refusal({{"recipe", "TrainEagle3Recipe"}}), HasSubstr("is not read"));
  EXPECT_THAT(refusal({{"peft._target_", "a.DoRA"}}), HasSubstr("which nothing prices"));
  EXPECT_THAT(refusal({{"peft.dim", "0"}}), HasSubstr("write a rank from 1"));
  EXPECT_THAT(refusal({{"dataset.seq_len", "0"}}),
              HasSubstr("does not say how long a sequence is"));
  EXPECT_THAT(refusal({{"model.config.num_hidden_layers", "4"}}),
              HasSubstr("changes the model's config.json"));
  EXPECT_THAT(refusal({{"model.config.pretrained_model_name_or_path", "a/b"}}),
              HasSubstr("is 'a/b', which is not in the catalog"));
  EXPECT_THAT(refusal({}, "model: {a: 1}\n"), HasSubstr("give a recipe of NeMo AutoModel"));
}

}  // namespace
}  // namespace orrery::automodel_run_test
