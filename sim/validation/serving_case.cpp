#include "sim/validation/serving_case.hpp"

#include <charconv>

#include "sim/core/value_list.hpp"
#include "sim/model/model_name.hpp"
#include "sim/validation/published_deployment.hpp"

namespace orrery {
namespace {

constexpr int most_serving_gpus = 1 << 20;
constexpr double most_measured = 1e15;

// Collections name peers' figures "e2e_mean" and "ttft_p90", in the milliseconds of "e2e_ms".
std::string quantity_of(const std::string& stated) {
  if (stated.ends_with("_mean")) return stated.substr(0, stated.size() - 5) + "_ms";
  for (const char* percentile : {"_p50", "_p90", "_p95", "_p99"})
    if (stated.ends_with(percentile)) return stated + "_ms";
  return stated;
}

// Reads {"simulator": {"quantity": predicted}}.
void read_peers(const JsonValue& json, ServingCase& one) {
  for (const std::string& peer : json.keys()) {
    const JsonValue stated = json.at(peer);
    for (const std::string& quantity : stated.keys())
      if (const JsonValue value = stated.at(quantity); value.is_number())
        one.peers[peer][quantity_of(quantity)] = value.number(-most_measured, most_measured);
  }
}

// A pool: "prefill": {"tp": 1, "attention_dp": 4, "workers": 2, "batch": 1}. The batch is the
// observed one of a worker, which follows from the load.
DeploymentRequest read_pool(DeploymentRequest pool, const JsonValue& json) {
  json.allow_only({"tp", "pp", "attention_dp", "moe_tp", "ep", "workers", "batch"});
  const auto number = [&](const char* key, std::optional<int>& of) {
    if (json.has(key)) of = static_cast<int>(json.at(key).integer(1, most_serving_gpus));
  };
  number("tp", pool.tp);
  number("pp", pool.pp);
  number("attention_dp", pool.dp);
  number("workers", pool.replicas);
  // Cases of dense models have ep 1, which has no effect.
  number("moe_tp", pool.moe_tp);
  number("ep", pool.ep);
  return pool;
}

// "speculative": {"method": "eagle3", "draft_tokens": 3, "acceptance": 0.37}: accepted over drafted
// tokens, or a list by position.
Speculation read_speculation(const JsonValue& json) {
  json.allow_only({"method", "draft_tokens", "acceptance"});
  std::string rates;
  const JsonValue acceptance = json.at("acceptance");
  const auto add = [&](const JsonValue& rate) {
    rates += (rates.empty() ? "" : "/") + std::to_string(rate.number(0.0, 1.0));
  };
  if (acceptance.is_number())
    add(acceptance);
  else
    for (const JsonValue& rate : acceptance.elements()) add(rate);
  return parse_speculation(json.at("method").text() + ":" +
                               std::to_string(json.at("draft_tokens").integer(1, 16)) + "@" + rates,
                           json.place());
}

PoolsRequest read_pools(const DeploymentRequest& both, const JsonValue& json) {
  json.allow_only({"prefill", "decode"});
  PoolsRequest pools;
  pools.prefill = read_pool(both, json.at("prefill"));
  pools.decode = read_pool(both, json.at("decode"));
  return pools;
}

}  // namespace

bool is_serving_case(const JsonValue& entry) {
  return is_collected_case(entry) ||
         (entry.is_object() && entry.has("deployment") && entry.has("engine"));
}

void read_what_all_have(const JsonValue& entry, ServingCase& one) {
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.system = entry.at("system").text();
  one.gpus = static_cast<int>(entry.at("gpus").integer(1, most_serving_gpus));
  one.workload = entry.find("workload");
  if (const auto source = entry.find("source")) {
    const auto title = source->is_object() ? source->find("title") : source;
    one.publication = title ? title->text() : "";
  }
  const JsonValue measured = entry.at("measured");
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = measured.at(quantity).number(0.0, most_measured);
  if (const auto peers = entry.find("peers")) read_peers(*peers, one);
}

void read_serving_options(const JsonValue& serving, ServingCase& one) {
  one.serving = serving;
  if (serving.has("speculative"))
    one.deployment.speculate = read_speculation(serving.at("speculative"));
  if (serving.has("disaggregated"))
    one.pools = read_pools(one.deployment, serving.at("disaggregated"));
}

ServingCase read_serving_case(const JsonValue& entry) {
  if (is_collected_case(entry)) return read_collected_case(entry);
  entry.allow_only({"id", "source", "system", "gpus", "model", "engine", "deployment", "workload",
                    "serving", "measured", "peers", "notes"});
  ServingCase one;
  read_what_all_have(entry, one);
  const JsonValue model = entry.at("model");
  one.model = read_model(model.text(), model.place());
  one.engine = entry.at("engine").text();
  read_deployment(one.deployment, entry.at("deployment"));
  if (const auto serving = entry.find("serving")) read_serving_options(*serving, one);
  return one;
}

ServingSetup setup_of(const ServingCase& one) {
  return make_serving_setup(one.model, one.system, one.engine, one.deployment, one.gpus, one.place);
}

PricedPools pools_of(const ServingCase& one) {
  PricedPools pools =
      price_pools(one.model, one.system, one.engine, *one.pools, one.place, one.place, one.place);
  if (pools.plan.gpus() != one.gpus)
    fail_input(one.place / "gpus",
               "is not the " + std::to_string(pools.plan.gpus()) + " of its pools",
               "count those of all workers");
  return pools;
}

namespace {

// Theirs and ours. The format "dtype" is of all weights; the next ones win over it.
const WordPairs deployment_words = pairs_in(R"(
    tp pp ep attention_dp=dp moe_tp replicas max_batched_tokens=budget max_seqs dtype=weights
    quantization=weights weight_dtype=weights attention_dtype=attention moe_dtype=experts
    kv_dtype=kv gpu_memory_fraction=kv_share kv_memory_fraction=kv_share memory_fraction=kv_share
    chunked_prefill=chunked block_size=block states trtllm_gen prefill_delay receive_interval
    window_ratio)");

const WordPairs format_words = pairs_in(R"(
    float16=fp16 bfloat16=bf16 int4_wo=int4 int8_wo=int8 w4a16_mxfp4=mxfp4)");

// Keys that a ServingCase keeps verbatim, and keys without effect on a prediction: how requests
// were sent, flags that other keys repeat, data parallelism of one.
const std::vector<std::string> kept{"speculative", "disaggregated", "prefix_caching",
                                    "async_scheduling", "stream_interval"};
const std::vector<std::string> without_effect{"engine",      "engine_version", "flags",
                                              "cuda_graphs", "kv_offload",     "max_model_len",
                                              "dp",          "moe_backend"};

const WordPairs size_words = pairs_in(R"(
    layers hidden heads kv_heads ffn head_dim vocab gated=swiglu experts top_k moe_ffn
    dense_layers moe_every window window_every=global_every)");

const WordPairs latent_words = pairs_in(R"(
    q_lora=q_lora_rank kv_lora=kv_lora_rank nope=qk_head_dim rope=qk_pos_emb_head_dim
    v=v_head_dim)");

// Longer than every prompt: such cases state the served load, not a limit.
constexpr const char* any_sequence = "16777216";

JsonValue value_of(const std::string& json) { return JsonValue::parse(json, ""); }

void copy(const JsonValue& from, const WordPairs& words, JsonValue& to) {
  for (const auto& [theirs, ours] : words)
    if (const auto value = from.find(theirs)) to = to.with(ours, *value);
}

void refuse_layers(const JsonValue& model) {
  for (const char* key : {"linear_attention", "sparse_attention"})
    if (const auto found = model.find(key))
      found->fail("such layers are not modelled", "serve a model whose layers are alike");
}

Model model_of_shape(const JsonValue& stated) {
  refuse_layers(stated);
  stated.allow_only({"name", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab",
                     "experts", "top_k", "moe_ffn", "shared_experts", "dense_layers", "gated",
                     "moe_every", "window", "window_every", "mla", "hf"});
  JsonValue shape = value_of("{}")
                        .with("name", stated.at("name"))
                        .with("seq", value_of(any_sequence))
                        .with("positions", value_of("\"rotary\""))
                        .with("swiglu", value_of("true"));
  copy(stated, size_words, shape);
  if (const auto latent = stated.find("mla")) {
    JsonValue ranks = value_of("{}");
    copy(*latent, latent_words, ranks);
    shape = shape.with("mla", ranks);
  }
  constexpr std::int64_t widest = 1 << 24;
  if (const auto shared = stated.find("shared_experts")) {
    const std::int64_t width =
        shared->integer(0, 1 << 10) * stated.at("moe_ffn").integer(1, widest);
    shape = shape.with("shared_expert_ffn", value_of(std::to_string(width)));
  }
  return parse_model(shape);
}

Model model_of(const JsonValue& stated) {
  const std::string name = stated.at("name").text();
  if (const auto known = catalog_model(name)) return read_model(*known, stated.place());
  if (!stated.has("layers"))
    stated.at("name").fail("'" + shown_text(name) + "' is no model of the catalog",
                           "give its shape, or name one of orrery list models");
  return model_of_shape(stated);
}

// "0.15.1": 15.
int minor_release(const std::string& version) {
  if (!version.starts_with("0.")) return -1;
  int minor = -1;
  std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

// Releases before 0.5.9; runs whose version is not stated are of that year.
bool is_sglang_of_2025(const std::string& version) {
  if (version.empty()) return true;
  if (!version.starts_with("0.5.")) return false;
  int patch = 0;
  std::from_chars(version.data() + 4, version.data() + version.size(), patch);
  return patch < 9;
}

// The catalog's file for an engine of that time: Hugging Face's static batches of 2023, kernels and
// schedulers of 2024, vLLM before host work overlapped with the GPU's (asynchronous scheduling, by
// default since 0.14), and TensorRT-LLM before it fused the kernels between products.
std::string engine_of(const JsonValue& deployment) {
  const std::string engine = deployment.at("engine").text();
  const auto stated = deployment.find("engine_version");
  const std::string version = stated ? stated->text() : "";
  if (version.starts_with("2023")) return "huggingface-2023";
  if (version.starts_with("2024")) return engine + "-2024";
  constexpr int asynchronous_since = 14;
  const int minor = minor_release(version);
  if (engine == "vllm" && minor >= 0 && minor < asynchronous_since &&
      !deployment.has("async_scheduling"))
    return "vllm-2025";
  if (engine == "sglang" && is_sglang_of_2025(version)) return "sglang-2025";
  if (engine == "trtllm" && (version == "1.0" || version.starts_with("1.0.") || minor >= 0))
    return "trtllm-2025";
  return engine;
}

// Sets a key, translating their names of formats to ours.
void set_key(DeploymentRequest& request, const std::string& ours, const JsonValue& value) {
  if (value.is_string())
    for (const auto& [theirs, word] : format_words)
      if (value.text() == theirs) return set_deployment_flag(request, ours, word);
  for (const DeploymentKey& key : deployment_keys())
    if (key.name == ours) key.read(request, value);
}

DeploymentRequest deployment_of(const JsonValue& stated) {
  std::vector<std::string> known = without_effect;
  known.insert(known.end(), kept.begin(), kept.end());
  for (const auto& [theirs, ours] : deployment_words) known.push_back(theirs);
  stated.allow_only(known);
  DeploymentRequest request;
  for (const auto& [theirs, ours] : deployment_words) {
    const auto value = stated.find(theirs);
    if (value && !(value->is_string() && value->text() == "auto")) set_key(request, ours, *value);
  }
  return request;
}

}  // namespace

bool is_collected_case(const JsonValue& entry) {
  if (!entry.is_object()) return false;
  const auto deployment = entry.find("deployment");
  return deployment && deployment->is_object() && deployment->has("engine");
}

ServingCase read_collected_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "system", "gpus", "model", "deployment", "workload", "measured",
                    "peers", "notes"});
  const JsonValue stated = entry.at("deployment");
  ServingCase one;
  read_what_all_have(entry, one);
  one.model = model_of(entry.at("model"));
  one.engine = engine_of(stated);
  one.deployment = deployment_of(stated);
  // "dtype" is that of activations: it leaves the formats of a quantised checkpoint.
  if (stated.has("dtype") && !stated.has("quantization") && formats_of_files(one.model))
    one.deployment.weights.reset();
  // Collections write "fp8" for checkpoints with a scale for each block, too.
  if (published_formats(one.model).weights == Dtype::fp8_block)
    for (const auto format :
         {&DeploymentRequest::weights, &DeploymentRequest::attention, &DeploymentRequest::experts})
      if (one.deployment.*format == Dtype::fp8) one.deployment.*format = Dtype::fp8_block;
  // A format that only the name of the checkpoint gives.
  if (entry.at("model").at("name").text().ends_with("w8a8")) one.deployment.weights = Dtype::int8;
  JsonValue serving = value_of("{}");
  for (const std::string& key : kept)
    if (const auto value = stated.find(key)) serving = serving.with(key, *value);
  if (!serving.keys().empty()) read_serving_options(serving, one);
  return as_published(std::move(one), entry);
}

}  // namespace orrery
