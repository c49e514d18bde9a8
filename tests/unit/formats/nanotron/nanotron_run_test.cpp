#include "sim/formats/nanotron/nanotron_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::nanotron_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string config = read_text_file(std::string{ORRERY_TEST_SOURCE} +
                                          "/tests/unit/formats/nanotron/configs/llama_3b.yaml");

ImportedRun run_of(const std::string& text, std::map<std::string, std::string> set = {}) {
  return import_nanotron_run(text, "run.yaml", {"run", std::nullopt, std::nullopt, std::move(set)});
}
std::string refusal(const std::string& text, std::map<std::string, std::string> set = {}) {
  return refusal_of([&] { run_of(text, std::move(set)); });
}

TEST(NanotronRun, AConfiguration) {
  const ImportedRun run = run_of(config);
  EXPECT_EQ(
      plan_text(run),
      "attention=\"flash\" cp=1 dp_overlap=false dtype=\"bf16\" gbs=256 gpus=64 mbs=2 pp=1 "
      "recompute=\"none\" seq=8192 software=\"nanotron\" sp=true tp=4 tp_overlap=true zero=1");
  EXPECT_THAT(run.notes, ElementsAre("the software nanotron is described for Hopper and later; on "
                                     "A100 its attention is faster"));
  const Model model = model_of_run(run);
  EXPECT_EQ(model.name, "run");
  EXPECT_EQ(model.vocab, 128512);  // The next multiple of 4 x 128.
  // Llama 3.2 3B (3,212,749,824, its model.safetensors.index.json), and the padding.
  EXPECT_EQ(count_parameters(model).total, 3'212'749'824 + (128'512 - 128'256) * 3072);
}

// config/parallelism_config.py and config.py: what settings that are not there mean.
TEST(NanotronRun, DefaultsAreNanotrons) {
  const ImportedRun run = run_of(
      "model: {model_config: {is_llama_config: true, hidden_size: 1024, intermediate_size: 4096,\n"
      "  num_attention_heads: 8, num_hidden_layers: 4, vocab_size: 32000}}\n"
      "parallelism: {dp: 2, pp: 2, tp: 2}\n"
      "tokens: {micro_batch_size: 3, sequence_length: 512}\n"
      "optimizer: {accumulate_grad_in_fp32: false}\n");
  EXPECT_EQ(
      plan_text(run),
      "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=6 gpus=8 layers=\"3+1\" mbs=3 "
      "pp=2 recompute=\"none\" schedule=\"1f1b\" seq=512 software=\"megatron-core\" sp=false "
      "tp=2 tp_overlap=false zero=0");
  EXPECT_THAT(run.notes[0], HasSubstr("parallelism.pp_engine runs all forward passes before"));
  const Model model = model_of_run(run);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.max_sequence, 2048);
  EXPECT_FALSE(model.tied_embeddings || model.qkv_bias || model.mlp_bias);
}

// Its own software runs all forward passes first, as pp_engine says.
TEST(NanotronRun, PipelinesOfItsOwnSoftware) {
  EXPECT_THAT(
      plan_text(run_of(config, {{"parallelism.pp", "2"}, {"parallelism.pp_engine", "afab"}})),
      HasSubstr("schedule=\"gpipe\" seq=8192 software=\"nanotron\""));
  EXPECT_THAT(
      plan_text(run_of(config, {{"parallelism.pp", "2"}, {"parallelism.pp_engine", "1f1b"}})),
      HasSubstr("schedule=\"1f1b\" seq=8192 software=\"nanotron\""));
}

// models/base.py, build_model. Llama of 16 layers of 4 x 2048^2 + 3 x 2048 x 8192 = 67.1 million
// weights, and a head of 131,072 x 2048 = 268.4 million, which is four layers: half of all is ten
// layers, which do not exceed it, so that the first stage takes eleven. Over four stages of five
// layers' worth each: 6, 5 (eleven exceed ten), 5 and none.
TEST(NanotronRun, StagesAreCutByWeights) {
  const auto layers = [](const std::string& pp, const std::string& vocab) {
    const ImportedRun run = run_of(
        "model: {model_config: {is_llama_config: true, hidden_size: 2048, "
        "intermediate_size: 8192,\n  num_attention_heads: 32, "
        "num_hidden_layers: 16, vocab_size: " +
        vocab + "}}\nparallelism: {dp: 1, tp: 1, pp: " + pp +
        "}\ntokens: {micro_batch_size: 1, sequence_length: 512}\n");
    return JsonValue::parse(run.json, "plan").at("layers").text();
  };
  EXPECT_EQ(layers("2", "131072"), "11+5");
  EXPECT_EQ(layers("4", "131072"), "6+5x2+0");
  EXPECT_EQ(layers("2", "32000"), "9+7");
}

TEST(NanotronRun, Experts) {
  const ImportedRun run =
      run_of(config, {{"model.model_config.moe_config.num_experts", "16"},
                      {"model.model_config.moe_config.top_k", "4"},
                      {"model.model_config.moe_config.enable_shared_expert", "true"},
                      {"parallelism.moe_layer_recompute", "true"}});
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=false dtype=\"bf16\" ep=1 etp=4 gbs=256 gpus=64 "
            "mbs=2 moe_dispatcher=\"alltoall\" pp=1 recompute=\"selective:moe\" seq=8192 "
            "software=\"nanotron\" sp=true tp=4 tp_overlap=true zero=1");
  const Model model = model_of_run(run);
  ASSERT_TRUE(model.experts);
  // config/models_config.py: 1,408 and 5,632 wide unless given.
  EXPECT_EQ(model.experts->count, 16);
  EXPECT_EQ(model.experts->per_token, 4);
  EXPECT_EQ(model.experts->ffn, 1408);
  EXPECT_EQ(model.experts->shared_ffn, 5632);
}

TEST(NanotronRun, Starcoder2) {
  const ImportedRun run =
      run_of(replaced(replaced(config, "is_llama_config: true", "is_starcoder2_config: true"),
                      "    num_key_value_heads: 8\n", ""));
  const Model model = model_of_run(run);
  EXPECT_EQ(model.kv_heads, 1);
  EXPECT_EQ(model.norm, NormKind::layer);
  EXPECT_TRUE(!model.gated && model.qkv_bias && model.out_bias && model.mlp_bias);
}

TEST(NanotronRun, NotesWhatItDoesNotRead) {
  const ImportedRun run =
      run_of(config, {{"general.new", "2"}, {"new_key", "1"}, {"model.dtype", "float8"}});
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("model.dtype is of nanotron's branches for fp8"),
                                     HasSubstr("the nearest software"), "not read: new_key"));
  EXPECT_THAT(plan_text(run), HasSubstr("dtype=\"fp8\""));
}

TEST(NanotronRun, Refusals) {
  EXPECT_EQ(refusal("model: {}\n"),
            "run.yaml: has no parallelism or no tokens; give a configuration of nanotron");
  EXPECT_EQ(refusal("a: [\n"),
            "run.yaml: line 2: is no YAML: did not find expected node content; write YAML, as the "
            "tool did");
  EXPECT_EQ(refusal(replaced(config, "is_llama_config", "is_mamba_config")),
            "run.yaml: line 12: model.model_config.is_mamba_config means Mamba layers, which "
            "nothing prices; import a run of a model of attention and MLPs or experts");
  EXPECT_EQ(refusal(replaced(config, "vocab_size: 128256", "vocab_size: -1")),
            "run.yaml: line 23: model.model_config.vocab_size is -1: the data say it; give it: "
            "--set model.model_config.vocab_size=N");
  EXPECT_EQ(refusal(replaced(config, "bfloat16", "float32")),
            "run.yaml: line 7: model.dtype is 'float32', which has no prices; write bfloat16: "
            "--set model.dtype=bfloat16");
  EXPECT_EQ(refusal(config, {{"parallelism.expert_parallel_size", "2"}}),
            "--set: parallelism.expert_parallel_size is 2: expert ranks are separate from the "
            "replicas, which no plan can say; write 1 (--set "
            "parallelism.expert_parallel_size=1), and try --ep of `orrery estimate`");
  EXPECT_EQ(refusal(replaced(config, "  sequence_length: 8192\n", "")),
            "run.yaml: has no tokens.sequence_length; add it, or give --set "
            "tokens.sequence_length=N");
  EXPECT_EQ(refusal(replaced(config, "zero_stage: 1", "zero_stage: 3")),
            "run.yaml: line 32: optimizer.zero_stage is 3, which nanotron has not; write 0 or 1");
}

}  // namespace
}  // namespace orrery::nanotron_run_test
