#include "sim/formats/torchtitan/torchtitan_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::torchtitan_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ImportedRun run_of(const std::string& text, std::map<std::string, std::string> set = {},
                   std::optional<std::int64_t> gpus = 64) {
  return import_torchtitan_run(text, "job.toml", {"job", std::nullopt, gpus, std::move(set)});
}
std::string refusal(const std::string& text, std::map<std::string, std::string> set = {}) {
  return refusal_of([&] { run_of(text, std::move(set)); });
}
std::string job(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/torchtitan/jobs/" +
                        name);
}

const std::string small =
    "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 4\nseq_len = 8192\n"
    "[compile]\nenable = true\n[activation_checkpoint]\nmode = 'none'\n";

TEST(TorchtitanRun, AJob) {
  const ImportedRun run = run_of(job("llama3_70b.toml"), {}, std::nullopt);
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"fp8\" gbs=64 gpus=256 mbs=2 pp=1 "
            "recompute=\"full\" reshard=true seq=8192 software=\"torchtitan\" sp=true tp=8 "
            "tp_overlap=true zero=3");
  EXPECT_THAT(run.notes,
              ElementsAre("quantize.linear.float8.enable_fsdp_float8_all_gather gathers weights in "
                          "fp8; assumed: a gather in 16 bits"));
  EXPECT_EQ(model_of_run(run).name, "llama3.1-70b");
}

// config/job_config.py: 8 sequences of 2,048 tokens, one of two layers computed again, no compiler.
TEST(TorchtitanRun, DefaultsAreTorchtitans) {
  const ImportedRun run = run_of("[model]\nname = 'llama3'\nflavor = '8B'\n", {}, 16);
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=128 gpus=16 mbs=8 pp=1 "
            "recompute=\"full\" reshard=true seq=2048 software=\"torchtitan\" sp=false tp=1 "
            "zero=3");
  EXPECT_THAT(run.notes,
              ElementsAre("activation_checkpoint.selective_ac_option computes one of 2 layers "
                          "again; assumed: every layer",
                          "compile.enable is off; assumed: kernels that torch.compile fused"));
}

TEST(TorchtitanRun, FormatsOfProductsAndState) {
  EXPECT_THAT(plan_text(run_of(small, {{"training.dtype", "bfloat16"}})),
              HasSubstr("exp_avg=\"bf16\" exp_avg_sq=\"bf16\""));
  EXPECT_THAT(plan_text(run_of(small, {{"training.dtype", "bfloat16"}})),
              HasSubstr("main_params=\"none\""));
  EXPECT_THAT(plan_text(run_of(small, {{"training.mixed_precision_param", "float32"}})),
              HasSubstr("dtype=\"fp32\""));
  EXPECT_THAT(refusal(small, {{"training.dtype", "bfloat16"},
                              {"training.mixed_precision_param", "float32"}}),
              HasSubstr("keeps weights in 16 bits that are computed with in 32"));
}

// Settings of 2024 under [training] and [experimental] mean what their successors do.
TEST(TorchtitanRun, TheLayoutOf2024) {
  const ImportedRun run = run_of(
      "[model]\nname = 'llama3'\nflavor = '70B'\n[training]\nbatch_size = 8\nseq_len = 8192\n"
      "data_parallel_shard_degree = -1\ntensor_parallel_degree = 8\ncompile = true\n"
      "[experimental]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = "
      "'interleaved_1f1b'\nenable_async_tensor_parallel = true\n[float8]\nenable_float8_linear = "
      "true\n[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = 'op'\n");
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"fp8\" gbs=16 gpus=64 "
            "layers=\"10+11+10x5+9\" mbs=2 pp=4 recompute=\"selective\" reshard=false "
            "schedule=\"interleaved\" seq=8192 "
            "software=\"torchtitan\" sp=true tp=8 tp_overlap=true vpp=2 zero=3");
  EXPECT_THAT(run.notes, IsEmpty());
}

// MXFP8 by torchao, which torchtitan has from 2025 on.
TEST(TorchtitanRun, ProductsInMxfp8) {
  const auto mx = [](const std::string& converters) {
    return run_of(
        "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 1\n"
        "seq_len = 8192\n[compile]\nenable = true\n[activation_checkpoint]\nmode = 'full'\n",
        {{"model.converters", converters}});
  };
  for (const char* converter : {"mx", "quantize.linear.mx"}) {
    const ImportedRun run = mx(converter);
    EXPECT_THAT(plan_text(run), HasSubstr("dtype=\"mxfp8\"")) << converter;
    EXPECT_THAT(plan_text(run), HasSubstr("software=\"torchtitan-2026\"")) << converter;
    EXPECT_THAT(run.notes, IsEmpty()) << converter;
  }
  const ImportedRun experts = mx("quantize.grouped_mm.mx");
  EXPECT_THAT(plan_text(experts), HasSubstr("software=\"torchtitan\""));
  EXPECT_THAT(experts.notes, ElementsAre(HasSubstr("computes experts in mxfp8")));
}

// 80 layers, the embedding and the head on eight stages: 82 = 8 x 10 + 2, of which the first stage
// gives one to the embedding and the last one to the head. On four stages 82 = 4 x 20 + 2.
TEST(TorchtitanRun, LayersOfStages) {
  const std::string text =
      "[model]\nname = 'llama3'\nflavor = '70B'\n[training]\nlocal_batch_size = 8\n"
      "seq_len = 8192\n[compile]\nenable = true\n[activation_checkpoint]\nmode = 'full'\n"
      "[parallelism]\npipeline_parallel_degree = 4\n";
  const auto layers = [&](std::map<std::string, std::string> set) {
    const JsonValue plan = JsonValue::parse(run_of(text, std::move(set)).json, "run.json");
    return plan.at("schedule").text() + " " + plan.at("layers").text();
  };
  const std::string schedule = "parallelism.pipeline_parallel_schedule";
  EXPECT_EQ(layers({}), "1f1b 20+21+20+19");
  EXPECT_EQ(layers({{schedule, "Interleaved1F1B"}}), "interleaved 10+11+10x5+9");
  EXPECT_EQ(layers({{schedule, "LoopedBFS"}}), "looped-bfs 10+11+10x5+9");
}

// A local batch of 8 is 8 micro-batches of one sequence, and a global one fills the pipeline again.
TEST(TorchtitanRun, MicroBatchesOfAPipeline) {
  const std::map<std::string, std::string> pipeline{{"parallelism.pipeline_parallel_degree", "2"},
                                                    {"training.local_batch_size", "8"},
                                                    {"training.global_batch_size", "512"}};
  const ImportedRun run = run_of(small, pipeline);
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" gbs=512 gpus=64 "
            "layers=\"16x2\" local_batch=8 mbs=1 pp=2 recompute=\"none\" reshard=false "
            "schedule=\"1f1b\" seq=8192 software=\"torchtitan\" "
            "sp=false tp=1 zero=3");
}

TEST(TorchtitanRun, HowReplicasShare) {
  const auto of = [&](const std::string& keys) {
    const JsonValue plan = JsonValue::parse(run_of(small + "[parallelism]\n" + keys).json, "plan");
    return std::to_string(plan.at("zero").integer(0, 3)) +
           (plan.has("dp_replicate")
                ? " x " + std::to_string(plan.at("dp_replicate").integer(1, 64))
                : "") +
           (plan.has("reshard") ? plan.at("reshard").boolean() ? " again" : " kept" : "");
  };
  EXPECT_EQ(of(""), "3 again");
  EXPECT_EQ(of("fsdp_reshard_after_forward = 'never'"), "3 kept");
  EXPECT_EQ(of("data_parallel_replicate_degree = 64"), "0");  // DDP.
  EXPECT_EQ(of("data_parallel_shard_degree = 1\ncontext_parallel_degree = 64"), "3 again");
  EXPECT_EQ(of("data_parallel_replicate_degree = 8"), "3 x 8 again");  // HSDP.
}

// distributed/fsdp.py: CPUOffloadPolicy; DDP has none.
TEST(TorchtitanRun, WeightsOnTheHost) {
  const std::string text =
      replaced(small, "[training]\n", "[training]\nenable_cpu_offload = true\n");
  EXPECT_THAT(plan_text(run_of(text)), HasSubstr("offload_optimizer=100 offload_weights=true"));
  EXPECT_EQ(plan_text(run_of(text + "[parallelism]\ndata_parallel_replicate_degree = 64\n"))
                .find("offload"),
            std::string::npos);
}

TEST(TorchtitanRun, Experts) {
  const std::string text =
      "[model]\nname = 'deepseek_v3'\nflavor = '16B'\n[parallelism]\nexpert_parallel_degree = 8\n"
      "expert_parallel_comm_backend = 'deepep'\n[compile]\nenable = true\n"
      "[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = 'op'\n";
  const ImportedRun run = run_of(text);
  EXPECT_EQ(plan_text(run),
            "attention=\"flash\" cp=1 dp_overlap=true dtype=\"bf16\" ep=8 etp=1 gbs=512 gpus=64 "
            "mbs=8 moe_dispatcher=\"deepep\" pp=1 recompute=\"full\" reshard=true seq=2048 "
            "software=\"torchtitan\" sp=false tp=1 zero=3");
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("selective_ac_option computes every other product again")));
  // arXiv 2405.04434, table 6: 15.7 billion parameters (DeepSeek-V2-Lite).
  EXPECT_NEAR(static_cast<double>(count_parameters(model_of_run(run)).total), 15.7e9, 0.05e9);
}

// The counts of the hub's files, except for llama4's and the debugging models.
TEST(TorchtitanRun, Flavors) {
  const auto size = [](const char* family, const char* flavor) {
    return count_parameters(*torchtitan_model(family, flavor, "x")).total;
  };
  EXPECT_EQ(size("simple_fsdp.llama3", "8B"), 8'030'261'248);
  EXPECT_EQ(size("llama3_ft", "405B"), 405'853'388'800);
  EXPECT_EQ(size("qwen3", "1.7B"), 1'720'574'976);  // Tied; model.safetensors of Qwen3-1.7B.
  EXPECT_EQ(size("qwen3", "4B"), 4'022'468'096);
  EXPECT_NEAR(static_cast<double>(size("llama4", "17bx16e")), 107.8e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(size("llama4", "17bx128e")), 400.7e9, 0.3e9);
  EXPECT_NEAR(static_cast<double>(size("gpt_oss", "20b")), 20.9e9, 0.05e9);  // 2508.10925, table 1.
}

TEST(TorchtitanRun, NotesWhatItDoesNotRead) {
  EXPECT_THAT(run_of(small + "[odd]\nsome_new_key = 3\nanother = 'x'\n").notes,
              ElementsAre("not read: odd.some_new_key odd.another"));
  EXPECT_THAT(run_of(small).notes, IsEmpty());
}

TEST(TorchtitanRun, Refusals) {
  EXPECT_EQ(refusal("[model\n"),
            "job.toml: line 1: is no TOML: expected ']', saw '\\\\n'; write TOML, as the tool "
            "did");
  EXPECT_EQ(refusal("a = 1\n"),
            "job.toml: has neither [training] nor [model]; give a job file of torchtitan");
  EXPECT_EQ(refusal("[model]\nname = 'flux'\n"),
            "job.toml: line 2: model.name is 'flux': nothing prices a generator of images; import "
            "a job of a language model");
  EXPECT_EQ(refusal("[model]\nname = 'mine'\n"),
            "job.toml: line 2: model.name is 'mine', a model that is not known; give its shape: "
            "--model NAME or a config.json");
  EXPECT_EQ(refusal("[model]\nname = 'llama4'\nflavor = '17b'\n"),
            "job.toml: line 3: model.flavor is '17b', a flavor of llama4 that is not known; known "
            "are 17bx16e, 17bx128e; or give its shape: --model NAME or a config.json");
  EXPECT_EQ(refusal(small, {{"training.seq_len", "long"}}),
            "--set: training.seq_len is 'long'; write a whole number");
  EXPECT_EQ(refusal(small + "[parallelism]\npipeline_parallel_degree = 2\n"
                            "pipeline_parallel_schedule = 'DualPipeV'\n"),
            "job.toml: line 13: parallelism.pipeline_parallel_schedule is 'DualPipeV', which has "
            "no prices with torchtitan; write 1F1B, GPipe, Interleaved1F1B or LoopedBFS: --set "
            "parallelism.pipeline_parallel_schedule=1F1B");
  EXPECT_EQ(refusal(small, {{"model.converters", "mx,float8"}}),
            "--set: model.converters has products in float8 and in mxfp8; write one of them: --set "
            "model.converters=quantize.linear.mx");
  EXPECT_EQ(refusal_of([] { run_of(small, {}, std::nullopt); }),
            "job.toml: does not say how many sequences a step has: they are 4 for each replica, "
            "whose number it does not say; give --gpus N");
}

}  // namespace
}  // namespace orrery::torchtitan_run_test
