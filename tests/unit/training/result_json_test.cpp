#include "sim/training/result_json.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/core/json_value.hpp"
#include "sim/plan/plan_keys.hpp"
#include "tests/support/key_samples.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::result_json_test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> list;
  for (const auto& [key, value] : json.items()) list.push_back(key);
  return list;
}

using Keys = std::vector<std::string>;

TEST(ResultJson, HasItsKeysInTheirOrder) {
  const Json json = Json::parse(result_json(estimate(two_stages()).result));
  EXPECT_EQ(keys(json), (Keys{"schema",
                              "orrery_version",
                              "model",
                              "system",
                              "gpu",
                              "software",
                              "gpus",
                              "plan",
                              "verdict",
                              "step_time_s",
                              "step_time_range",
                              "lower_bound_s",
                              "tokens_per_s",
                              "tokens_per_s_per_gpu",
                              "model_tflops_per_gpu",
                              "model_tflops_per_gpu_full_attn",
                              "mfu",
                              "mfu_full_attn",
                              "memory",
                              "critical_path_s",
                              "breakdown_s",
                              "breakdown_stage",
                              "stages",
                              "provenance",
                              "links",
                              "tasks",
                              "ranks_simulated",
                              "simulator",
                              "simulation_wall_s",
                              "warnings",
                              "inputs"}));
  // The model of this test was not read from anything.
  EXPECT_EQ(keys(json["inputs"]), (Keys{"systems", "software"}));
  EXPECT_EQ(json["schema"], "orrery.result/1");
  EXPECT_EQ(keys(json["plan"]), (Keys{"tp",
                                      "pp",
                                      "vpp",
                                      "dp",
                                      "cp",
                                      "ep",
                                      "etp",
                                      "routing",
                                      "moe_dispatcher",
                                      "shared_expert_overlap",
                                      "ep_overlap",
                                      "delay_wgrad",
                                      "mbs",
                                      "gbs",
                                      "seq",
                                      "documents",
                                      "schedule",
                                      "local_batch",
                                      "layers",
                                      "recompute",
                                      "offload_layers",
                                      "offload_modules",
                                      "chunked_loss",
                                      "zero",
                                      "dp_replicate",
                                      "offload_optimizer",
                                      "offload_weights",
                                      "reshard",
                                      "sp",
                                      "dtype",
                                      "main_params",
                                      "exp_avg",
                                      "exp_avg_sq",
                                      "fp8_params",
                                      "fp8_activation_inputs",
                                      "bf16_start_layers",
                                      "bf16_end_layers",
                                      "finetune",
                                      "lora_rank",
                                      "lora_targets",
                                      "lora_dropout",
                                      "train_tables",
                                      "base_format",
                                      "attention",
                                      "fp8_attention",
                                      "cp_comm",
                                      "tp_overlap",
                                      "dp_overlap",
                                      "cuda_graphs",
                                      "nccl_algo",
                                      "nccl_proto",
                                      "wait_for_others",
                                      "software",
                                      "software_stands_in"}));
  EXPECT_EQ(keys(json["memory"]),
            (Keys{"stages", "peak_bytes", "capacity_bytes", "host_bytes_per_node", "fits"}));
  EXPECT_EQ(keys(json["memory"]["stages"][0]),
            (Keys{"stage", "weights_bytes", "gradients_bytes", "optimizer_bytes",
                  "activations_bytes", "other_bytes", "peak_bytes"}));
  EXPECT_EQ(keys(json["breakdown_s"]),
            (Keys{"compute", "tp_exposed", "pp_bubble", "pp_exposed", "ep_exposed", "cp_exposed",
                  "dp_exposed", "optimizer", "imbalance", "other", "waiting_for_others"}));
  ASSERT_FALSE(json["stages"].empty());
  EXPECT_EQ(keys(json["stages"][0]),
            (Keys{"stage", "layers", "busy_s", "on_critical_path_s", "breakdown_s", "compute_s"}));
  EXPECT_EQ(keys(json["stages"][0]["breakdown_s"]), keys(json["breakdown_s"]));
  EXPECT_EQ(keys(json["stages"][0]["compute_s"]),
            (Keys{"matrix_products", "expert_products", "attention", "memory_bound", "host",
                  "slowed_down"}));
  EXPECT_EQ(keys(json["step_time_range"]), (Keys{"coverage", "low_s", "high_s", "training_error",
                                                 "own_error", "published", "parts"}));
  ASSERT_FALSE(json["step_time_range"]["parts"].empty());
  EXPECT_EQ(keys(json["step_time_range"]["parts"][0]), (Keys{"kind", "basis", "time_s", "error"}));
  EXPECT_EQ(keys(json["provenance"]), (Keys{"measured", "interpolated", "default"}));
  ASSERT_FALSE(json["links"].empty());
  EXPECT_EQ(keys(json["links"][0]),
            (Keys{"class", "busiest", "busy_fraction", "bytes", "by_user", "expert"}));
  EXPECT_EQ(keys(json["links"][0]["by_user"]),
            (Keys{"tensor", "context", "expert", "pipeline", "data"}));
  EXPECT_EQ(keys(json["links"][0]["expert"]), (Keys{"dispatch", "combine", "tensor"}));
}

// Layers of a mixer or a feed-forward part alone have its name.
TEST(ResultJson, SaysWhatLayersOfEachKindTake) {
  PlanRequest request = plan_request(1, 1, 1, 8, 8192, "megatron-core");
  request.ep = 8;
  const Scenario scenario = scenario_of(read_model("nemotron-3-nano-30b-a3b", test_place),
                                        read_system("dgx-h200", test_place), request, 8);
  const Json json = Json::parse(result_json(estimate(scenario).result));
  ASSERT_EQ(json["layer_kinds"].size(), 3u);
  std::map<std::string, int> layers;
  for (const Json& one : json["layer_kinds"]) {
    EXPECT_EQ(keys(one), (Keys{"kind", "mixer", "feed_forward", "layers", "runs", "layers_of_stage",
                               "forward_s", "backward_s", "kept_bytes_of_one", "parameters_of_one",
                               "active_parameters_of_one", "rank_parameters_of_one",
                               "sequence_bytes_of_one"}));
    EXPECT_EQ(keys(one["sequence_bytes_of_one"]), (Keys{"per_token", "window", "states"}));
    EXPECT_EQ(one["mixer"].is_null(), one["kind"] == "moe");
    EXPECT_EQ(one["feed_forward"].is_null(), one["kind"] != "moe");
    int in_runs = 0;
    for (const Json& run : one["runs"]) in_runs += run[1].get<int>() - run[0].get<int>() + 1;
    EXPECT_EQ(in_runs, one["layers"]);
    layers[one["kind"]] = one["layers"];
    EXPECT_GT(one["backward_s"], one["forward_s"]);
    EXPECT_GT(one["kept_bytes_of_one"], 1e6);
  }
  EXPECT_EQ(layers, (std::map<std::string, int>{{"mamba2", 23}, {"moe", 23}, {"full", 6}}));
}

// "even" is as even as layers go: ten on four stages, of which the ends have the fewer.
TEST(ResultJson, SaysTheLayersOfEachStage) {
  PlanRequest request = plan_request(1, 4, 1, 4, 128, "megatron-core");
  const Json json =
      Json::parse(result_json(estimate(scenario_of(small_gpt(10, 256, 8, 1024),
                                                   read_system("dgx-h100", test_place), request, 4))
                                  .result));
  EXPECT_EQ(json["plan"]["layers"], "even");
  std::vector<int> layers;
  for (const Json& stage : json["stages"]) {
    ASSERT_EQ(stage["layers"].size(), 1u);
    layers.push_back(stage["layers"][0]);
  }
  EXPECT_EQ(layers, (std::vector{2, 3, 3, 2}));
}

// Figures that follow from the scenario alone. Stage 0 of the small model holds the embedding and
// two layers of 12 h^2 weights and two norms:
//     1024 x 1024 + 2 (12 x 1024^2 + 2 x 1024) = 26,218,496 parameters of 2 bytes.
TEST(ResultJson, AgreesWithTheScenario) {
  const Result result = estimate(two_stages()).result;
  const Json json = Json::parse(result_json(result));
  EXPECT_EQ(json["model"], "small-gpt");
  EXPECT_EQ(json["system"], "two-gpus");
  EXPECT_EQ(json["gpus"], 2);
  EXPECT_EQ(json["memory"]["stages"].size(), 2u);
  EXPECT_EQ(json["memory"]["stages"][0]["weights_bytes"], 2 * 26'218'496);
  EXPECT_EQ(json["memory"]["capacity_bytes"], 80'000'000'000);  // The test GPU's 80 GB.
  EXPECT_EQ(json["memory"]["fits"], true);
  const double step = json["step_time_s"];
  EXPECT_NEAR(json["tokens_per_s"], 4 * 512 / step, 1e-6 * 4 * 512 / step);  // gbs x seq
  EXPECT_NEAR(json["tokens_per_s_per_gpu"], 2 * 512 / step, 1e-6 * 2 * 512 / step);
  // The test GPU's peak is 100 TFLOP/s.
  EXPECT_NEAR(json["mfu"], json["model_tflops_per_gpu"].get<double>() / 100.0, 1e-9);
  // 6 flop a token and weight of the matrices, 12 h^2 a layer and 1024 h of the head; and for each
  // layer and sequence 3 x 4 s^2 h of attention, or half of it.
  const double weights = 6.0 * 2048 * (48.0 * 1024 * 1024 + 1024.0 * 1024);
  const double causal = 4 * 4 * 6.0 * 512 * 512 * 1024;
  EXPECT_NEAR(json["model_tflops_per_gpu"], (weights + causal) / 2 / step / 1e12, 1e-6);
  EXPECT_NEAR(json["model_tflops_per_gpu_full_attn"], (weights + 2 * causal) / 2 / step / 1e12,
              1e-6);
  EXPECT_LE(json["lower_bound_s"].get<double>(), step * (1 + 1e-9));
}

double sum(const Json& object) {
  double total = 0.0;
  for (const auto& [key, value] : object.items()) total += value.get<double>();
  return total;
}

// Ten times rounded to nanoseconds, and three shares to nine digits.
TEST(ResultJson, PartsAddUp) {
  for (const Scenario& scenario : {two_stages(), interleaved_replicas()}) {
    const Json json = Json::parse(result_json(estimate(scenario).result));
    const double step = json["step_time_s"];
    EXPECT_NEAR(sum(json["breakdown_s"]), step, 10 * 0.5e-9);
    EXPECT_NEAR(sum(json["critical_path_s"]), step,
                static_cast<double>(json["critical_path_s"].size()) * 0.5e-9);
    double on_path = 0.0;
    for (const Json& stage : json["stages"]) {
      EXPECT_NEAR(sum(stage["breakdown_s"]), step, 10 * 0.5e-9);
      EXPECT_NEAR(sum(stage["compute_s"]), stage["breakdown_s"]["compute"].get<double>(),
                  6 * 0.5e-9);
      on_path += stage["on_critical_path_s"].get<double>();
    }
    EXPECT_NEAR(on_path, step, static_cast<double>(json["stages"].size()) * 0.5e-9);
    EXPECT_NEAR(sum(json["provenance"]), 1.0, 3 * 0.5e-9);
    double priced = 0.0;
    for (const Json& part : json["step_time_range"]["parts"])
      priced += part["time_s"].get<double>();
    EXPECT_NEAR(priced, step, 20e-9 + 1e-9 * step);
    std::int64_t most = 0;
    for (const Json& stage : json["memory"]["stages"]) {
      std::int64_t peak = 0;
      for (const char* part : {"weights", "gradients", "optimizer", "activations", "other"})
        peak += stage[std::string{part} + "_bytes"].get<std::int64_t>();
      EXPECT_NEAR(stage["peak_bytes"].get<double>(), static_cast<double>(peak), 3.0);  // Rounding.
      most = std::max(most, stage["peak_bytes"].get<std::int64_t>());
    }
    EXPECT_EQ(json["memory"]["peak_bytes"], most);
  }
}

Plan read_back(const Scenario& scenario) {
  const std::string text = Json::parse(result_json(estimate(scenario).result))["plan"].dump();
  PlanRequest again;
  read_plan(again, JsonValue::parse(text, "plan.json"));
  return scenario_of(scenario.model, scenario.system, again, scenario.plan.gpus()).plan;
}

// Flag -> request -> plan -> request -> plan, and plan -> JSON -> request -> plan: every word of a
// key, of all keys, so that one that is lost on the way shows.
TEST(ResultJson, EveryKeyOfAPlanCanBeGivenBack) {
  for (const KeySample& sample : key_samples()) {
    SCOPED_TRACE("--" + sample.key + " " + sample.word);
    const Scenario scenario = sample.scenario(sample.with);
    EXPECT_EQ(plan_key(sample.key).text(scenario.plan), sample.word);
    EXPECT_TRUE(sample.scenario(plan_again(scenario.plan)).plan == scenario.plan);
    EXPECT_TRUE(read_back(scenario) == scenario.plan);
  }
}

// Several keys away from their defaults at once.
TEST(ResultJson, PlanCanBeGivenBack) {
  PlanRequest request = plan_request(2, 2, 2, 16, 256, "megatron-2021");
  request.vpp = 2;
  request.zero = 1;
  request.sp = true;
  request.recompute = Recompute::selective;
  request.dtype = Dtype::bf16;
  request.fused_attention = true;
  request.tp_overlap = false;
  request.dp_overlap = true;
  const System system = read_system("four-by-four", test_place);
  const Model model = small_gpt(4, 1024, 8, 1024);
  for (const Scenario& scenario :
       {scenario_of(model, system, request, 8), two_stages(), interleaved_replicas()})
    EXPECT_TRUE(read_back(scenario) == scenario.plan);
}

TEST(ResultJson, IsTheSameTwiceWithoutWhatConcernsTheRun) {
  const std::string first = result_json(estimate(two_stages()).result, {.about_this_run = false});
  EXPECT_EQ(first, result_json(estimate(two_stages()).result, {.about_this_run = false}));
  EXPECT_FALSE(Json::parse(first).contains("simulation_wall_s"));
  EXPECT_FALSE(Json::parse(first).contains("orrery_version"));
}

TEST(ResultJson, ShowsNamesThatAreNoUtf8) {
  Result result = estimate(two_stages()).result;
  result.scenario.model.name = "bad\xff\"name";
  result.warnings = {"take care"};
  const Json json = Json::parse(result_json(result));
  EXPECT_EQ(json["model"], "bad\xef\xbf\xbd\"name");  // U+FFFD
  EXPECT_EQ(json["warnings"], Json::array({"take care"}));
}

}  // namespace
}  // namespace orrery::result_json_test
