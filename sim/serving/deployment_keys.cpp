#include "sim/core/choice.hpp"
#include "sim/core/flag_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {
namespace {

// Far above any deployment, far below overflow: products of all of these fit in 64 bits.
constexpr std::int64_t most_ranks = 1 << 10;
constexpr std::int64_t most_tokens = 1 << 30;
constexpr Bytes most_host_memory{1e15};

using Asked = DeploymentRequest;

template <auto member, std::int64_t most>
void ask_number(Asked& request, const JsonValue& json) {
  using Value = typename std::remove_reference_t<decltype(request.*member)>::value_type;
  request.*member = static_cast<Value>(json.integer(1, most));
}

template <auto member>
void ask_weights(Asked& request, const JsonValue& json) {
  request.*member = choice<WeightFormat>(json, weight_format_names());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

Bytes host_memory(const JsonValue& json) {
  if (!json.is_string()) json.fail("has no unit", "write it like 64GB, or none");
  if (json.text() == "none") return {};
  const Bytes size = json.bytes();
  if (size > most_host_memory) json.fail("is more than 1 PB", "write the memory of one host");
  return size;
}

std::vector<DeploymentKey> all_keys() {
  const std::string weights = joined(weight_format_names());
  return {
      {"tp", "N", "tensor-parallel ranks of attention (default: all GPUs of a replica)",
       ask_number<&Asked::tp, most_ranks>},
      {"pp", "N", "pipeline stages (default 1)", ask_number<&Asked::pp, most_ranks>},
      {"dp", "N", "copies of attention that share the experts (default 1)",
       ask_number<&Asked::dp, most_ranks>},
      {"ep", "N", "ranks that share the experts (default 1, with dp tp x dp)",
       ask_number<&Asked::ep, most_ranks * most_ranks>},
      {"moe_tp", "N", "ranks that share each expert (default tp x dp / ep)",
       ask_number<&Asked::moe_tp, most_ranks * most_ranks>},
      {"replicas", "N", "copies of all of it (default: as many as the GPUs hold)",
       ask_number<&Asked::replicas, 1 << 20>},
      {"weights", weights, "format of the weights (default bf16)", ask_weights<&Asked::weights>},
      {"experts", weights, "format of the experts' weights (default as weights)",
       ask_weights<&Asked::experts>},
      {"kv", joined(kv_format_names()), "format of the KV cache (default bf16)",
       [](Asked& request, const JsonValue& json) {
         request.kv = choice<KvFormat>(json, kv_format_names());
       }},
      {"budget", "N", "tokens of an iteration (default: the engine's)",
       ask_number<&Asked::budget, most_tokens>},
      {"max_seqs", "N", "requests of an iteration (default: the engine's)",
       ask_number<&Asked::max_seqs, most_tokens>},
      {"kv_share", "X", "share of the memory, as the engine counts it (default: the engine's)",
       [](Asked& request, const JsonValue& json) { request.kv_share = json.number(0.01, 1.0); }},
      {"block", "N", "tokens of a KV block (default: the engine's)",
       ask_number<&Asked::block, most_tokens>},
      {"chunked", "true|false", "prompts are prefilled in parts (default: as the engine does)",
       [](Asked& request, const JsonValue& json) { request.chunked = json.boolean(); }},
      {"mixed", "true|false",
       "decodes go on beside prompts, sglang's --enable-mixed-chunk (default: as the engine does)",
       [](Asked& request, const JsonValue& json) { request.mixed = json.boolean(); }},
      {"host_kv", "SIZE",
       "host memory of each GPU that keeps keys and values of prompts: 64GB (default none)",
       [](Asked& request, const JsonValue& json) { request.host_kv = host_memory(json); }},
      {"speculate", "METHOD:N@RATE",
       "N drafted tokens a step, of which this share is accepted: mtp:2@0.7 (docs/SPECULATION.md)",
       [](Asked& request, const JsonValue& json) {
         request.speculate.reset();
         if (json.text() != "none")
           request.speculate = parse_speculation(json.text(), json.place());
       }}};
}

const DeploymentKey& key_named(const std::string& name, const Place& at) {
  std::vector<std::string> known;
  for (const DeploymentKey& key : deployment_keys()) {
    if (key.name == name) return key;
    known.push_back(key.name);
  }
  fail_input(at, "'" + shown_text(name) + "' is no key of a deployment", suggestion(name, known));
}

}  // namespace

const std::vector<DeploymentKey>& deployment_keys() {
  static const std::vector<DeploymentKey> keys = all_keys();
  return keys;
}

void set_deployment_flag(DeploymentRequest& request, const std::string& key,
                         const std::string& text) {
  key_named(key, {"", "--" + key}).ask(request, value_of_flag(key, text));
}

void read_deployment(DeploymentRequest& request, const JsonValue& json) {
  for (const std::string& key : json.keys())
    key_named(key, json.place() / key).ask(request, json.at(key));
}

}  // namespace orrery
