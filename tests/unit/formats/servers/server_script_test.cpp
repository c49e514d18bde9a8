#include <gtest/gtest.h>

#include "sim/formats/servers/server_flags.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery::server_script_test {
namespace {

const Place here{"", ""};

// All that a deployment says, as text.
std::string words_of(const Deployment& plan, bool with_experts) {
  std::string text;
  const auto add = [&](const auto&... parts) { ((text += std::string{parts} + " "), ...); };
  for (const int degree : {plan.tp, plan.pp, plan.dp, plan.ep, plan.moe_tp, plan.replicas})
    add(std::to_string(degree));
  add(name(plan.weights), name(plan.attention), with_experts ? name(plan.experts) : "",
      name(plan.kv));
  for (const std::int64_t size : {plan.ends_16bit, plan.budget, plan.max_seqs, plan.block})
    add(std::to_string(size));
  add(std::to_string(plan.kv_share), plan.chunked ? "chunked" : "whole", plan.mixed ? "mixed" : "");
  add(std::to_string(std::llround(plan.host_kv.si())));
  if (plan.speculation) add(speculation_text(*plan.speculation));
  return text;
}

struct Ground {
  Model model;
  System system;
  ServingEngine engine;
};

std::string rates_of(const Deployment& plan) {
  if (!plan.speculation) return "0.5";
  const std::string text = speculation_text(*plan.speculation);
  return text.substr(text.rfind('@') + 1);
}

// Exports, imports and completes it again.
std::string there_and_back(const Ground& ground, const Deployment& plan, bool prefix_cache,
                           bool& kept_prefix_cache) {
  ScriptedPool pool{ServerRole::all, plan, {}};
  for (int i = 0; i < plan.replicas; ++i)
    pool.first_gpus.push_back(static_cast<int>(i * plan.replica_gpus()));
  const ServerScript script =
      server_script(ground.model, ground.system, ground.engine, {pool}, prefix_cache, here);
  const ImportedRun run =
      import_servers({{script.text, "run.sh"}},
                     {"run", std::nullopt, std::nullopt, {{"accepted", rates_of(plan)}}, {}});
  const JsonValue file = JsonValue::parse(run.json, "run.json");
  EXPECT_EQ(file.at("model").text(), ground.model.name);
  EXPECT_EQ(file.at("engine").text(), ground.engine.name);
  kept_prefix_cache = !file.has("prefix_cache");
  DeploymentRequest request;
  for (const auto& [key, value] : deployment_options_of(file))
    if (key != "model" && key != "checkpoint" && key != "engine" && key != "gpus" &&
        key != "prefix-cache")
      set_deployment_flag(request, key, value);
  const auto gpus = static_cast<int>(file.at("gpus").integer(1, 1 << 20));
  return words_of(make_deployment(ground.model, ground.system, ground.engine, request, gpus, here),
                  ground.model.experts.has_value());
}

struct Trips {
  int made = 0, kept = 0;  ///< All, and those that commands can say.
};

void go(const Ground& ground, const DeploymentRequest& request, int gpus, bool prefix_cache,
        Trips& trips) {
  std::optional<Deployment> plan;
  try {
    plan = make_deployment(ground.model, ground.system, ground.engine, request, gpus, here);
  } catch (const Error&) {
    return;  // It does not divide, or the engine or the GPU lacks a format.
  }
  ++trips.made;
  ScriptedPool pool{ServerRole::all, *plan, {0}};
  const ServerScript script =
      server_script(ground.model, ground.system, ground.engine, {pool}, prefix_cache, here);
  for (const std::string& what : script.left_out)
    if (what.starts_with("no flag has") || what.starts_with("no flag cuts") ||
        what.starts_with("no setting"))
      return;
  ++trips.kept;
  bool kept = false;
  EXPECT_EQ(there_and_back(ground, *plan, prefix_cache, kept),
            words_of(*plan, ground.model.experts.has_value()))
      << script.text;
  EXPECT_EQ(kept, prefix_cache);
}

// import(export(d)) == d for all cuts of up to 16 GPUs, all formats, and each other key.
TEST(ServerScript, IsReadAgainAsTheSameDeployment) {
  Trips trips;
  for (const char* engine : {"vllm", "sglang", "trtllm"})
    for (const char* model : {"llama3.1-70b", "deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b"}) {
      const Ground ground{read_model(model, here), read_system("dgx-b200", here),
                          read_serving_engine(engine, here)};
      for (const int tp : {1, 2, 8})
        for (const int pp : {1, 2})
          for (const int dp : {1, 2, 8})
            for (const int ep : {1, 2, 8})
              for (const int replicas : {1, 2}) {
                DeploymentRequest request;
                request.tp = tp;
                request.pp = pp;
                if (dp > 1) request.dp = dp;
                if (ep > 1) request.ep = ep;
                request.replicas = replicas;
                go(ground, request, tp * pp * dp * replicas, true, trips);
              }
      for (const std::string& weights : format_names(FormatUse::weights))
        for (const std::string& kv : format_names(FormatUse::kv_cache))
          for (const std::string experts : {"", "mxfp4", "bf16"}) {
            DeploymentRequest request;
            set_deployment_flag(request, "weights", weights);
            set_deployment_flag(request, "kv", kv);
            if (!experts.empty()) set_deployment_flag(request, "experts", experts);
            go(ground, request, 8, true, trips);
          }
      for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
               {"budget", "4096"},
               {"max_seqs", "96"},
               {"kv_share", "0.75"},
               {"block", "64"},
               {"chunked", "true"},
               {"chunked", "false"},
               {"mixed", "true"},
               {"host_kv", "64GB"},
               {"prefill_delay", "12"},
               {"receive_interval", "30"},
               {"speculate", "mtp:2@0.8/0.5"},
               {"speculate", "eagle3:3@0.5"},
               {"speculate", "draft:llama3.2-1b:4@0.6"},
               {"speculate", "ngram:2@0.3"}})
        for (const int dp : {1, 8})
          for (const bool prefix_cache : {false, true}) {
            DeploymentRequest request;
            set_deployment_flag(request, key, value);
            if (dp > 1) request.dp = dp, request.tp = 1;
            go(ground, request, 8, prefix_cache, trips);
          }
    }
  // Most can be said: what cannot is experts in a format of their own, and degrees that an engine
  // does not have.
  EXPECT_GT(trips.kept, 900);
  EXPECT_GT(trips.kept, trips.made / 2);
}

// The checkpoint keeps its name, and its length comes back where it is not the model's own.
TEST(ServerScript, ACommandComesBackAsItself) {
  for (const char* command :
       {"vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 8 "
        "--max-model-len 20000",
        "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 8 "
        "--quantization fp8",
        "vllm serve moonshotai/Kimi-K2-Thinking --tensor-parallel-size 8",
        "vllm serve moonshotai/Kimi-K2-Thinking --tensor-parallel-size 8 --max-model-len 131072",
        "vllm serve meta-llama/Llama-3.1-405B-Instruct-FP8 --tensor-parallel-size 8",
        "vllm serve nvidia/Llama-3.1-8B-Instruct-FP8 --tensor-parallel-size 8",
        "vllm serve nvidia/Llama-3.1-8B-Instruct-FP8 --tensor-parallel-size 8 "
        "--kv-cache-dtype bfloat16",
        "vllm serve unsloth/Qwen3-8B-bnb-4bit --tensor-parallel-size 8",
        "vllm serve Qwen/Qwen3-32B-FP8 --tensor-parallel-size 8 --max-num-seqs 96",
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8 "
        "--kv-cache-dtype fp8_e4m3 --swa-full-tokens-ratio 0.075"}) {
    const ImportedRun run = import_servers({{std::string{command} + "\n", "run.sh"}},
                                           {"run", std::nullopt, std::nullopt, {}, {}});
    const JsonValue file = JsonValue::parse(run.json, "run.json");
    const Ground ground{read_model(file.at("model").text(), here), read_system("dgx-b200", here),
                        read_serving_engine(file.at("engine").text(), here)};
    DeploymentRequest request;
    for (const auto& [key, value] : deployment_options_of(file))
      if (std::ranges::count(names_of(deployment_keys()), key) > 0)
        set_deployment_flag(request, key, value);
    const Deployment plan =
        make_deployment(ground.model, ground.system, ground.engine, request, 8, here);
    const ServerScript script =
        server_script(ground.model, ground.system, ground.engine, {{ServerRole::all, plan, {0}}},
                      true, here, file.at("checkpoint").text());
    std::string text = script.text;
    for (std::size_t at; (at = text.find(" \\\n    ")) != text.npos;) text.replace(at, 7, " ");
    EXPECT_EQ(text, std::string{command} + "\n");
    EXPECT_TRUE(script.left_out.empty()) << script.left_out.front();
  }
}

TEST(ServerScript, PoolsAreReadAgain) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    const Ground ground{read_model("llama3.1-70b", here), read_system("dgx-h200", here),
                        read_serving_engine(engine, here)};
    PoolsRequest request;
    parse_pool("tp=4,replicas=2,kv=fp8", request.prefill, here);
    parse_pool("tp=8,max_seqs=128,kv=fp8", request.decode, here);
    const PoolsPlan plan =
        make_pools(ground.model, ground.system, ground.engine, request, here, here);
    const ServerScript script =
        server_script(ground.model, ground.system, ground.engine,
                      {{ServerRole::prefill, plan.prefill, plan.prefill_gpus},
                       {ServerRole::decode, plan.decode, plan.decode_gpus}},
                      true, here);
    const ImportedRun run =
        import_servers({{script.text, "run.sh"}}, {"run", std::nullopt, std::nullopt, {}, {}});
    PoolsRequest again;
    for (const auto& [key, value] : deployment_options_of(JsonValue::parse(run.json, "run.json"))) {
      if (key == "prefill") parse_pool(value, again.prefill, here);
      if (key == "decode") parse_pool(value, again.decode, here);
    }
    const PoolsPlan same =
        make_pools(ground.model, ground.system, ground.engine, again, here, here);
    EXPECT_EQ(words_of(same.prefill, false), words_of(plan.prefill, false)) << script.text;
    EXPECT_EQ(words_of(same.decode, false), words_of(plan.decode, false)) << script.text;
  }
}

TEST(ServerScript, StaticBatchesHaveNoServer) {
  const Ground ground{read_model("llama3.1-8b", here), read_system("dgx-h100", here),
                      read_serving_engine("huggingface-2023", here)};
  const Deployment plan = make_deployment(ground.model, ground.system, ground.engine, {}, 1, here);
  EXPECT_THROW(server_script(ground.model, ground.system, ground.engine,
                             {{ServerRole::all, plan, {0}}}, true, here),
               Error);
}

}  // namespace
}  // namespace orrery::server_script_test
