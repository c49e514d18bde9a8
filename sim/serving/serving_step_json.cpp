#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/serving/served_layers.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Seconds, to whole nanoseconds like all times of JSON.
double seconds(Seconds time) { return static_cast<double>(std::llround(time.si() * 1e9)) / 1e9; }

Json iteration_json(const Iteration& iteration) {
  Json chunks = Json::array();
  for (const PrefillChunk& chunk : iteration.chunks)
    chunks.push_back({{"tokens", chunk.tokens}, {"cached", chunk.cached}});
  return {{"decodes", iteration.decodes},
          {"context_tokens", iteration.context},
          {"prompts", std::move(chunks)},
          {"head_rows", iteration.heads}};
}

Json step_json(const ServingStep& step) {
  const IterationPrice& price = step.price;
  Json parts = Json::array();
  for (const IterationPart& part : price.parts)
    parts.push_back({{"op", part.op},
                     {"kernels", part.count},
                     {"s", seconds(part.time)},
                     {"bytes", whole(part.bytes)},
                     {"flop", part.flop.si()},
                     {"basis", name(part.tag)}});
  return {{"iteration", iteration_json(step.iteration)},
          {"step_s", seconds(price.step)},
          {"gpu_s", seconds(price.gpu)},
          {"host_s", seconds(price.host)},
          {"gap_s", seconds(price.gap)},
          {"bound", name(price.bound)},
          {"parts", std::move(parts)},
          {"measured_gpu", step.measured_gpu},
          {"tables", step.tables}};
}

std::string range_text(Range range, int decimals) {
  const std::string low = fixed(range.low, decimals), high = fixed(range.high, decimals);
  return low == high ? low : low + " .. " + high;
}

Json range_json(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

}  // namespace

std::string token_cost_text(const TokenCost& cost) {
  std::string text;
  if (cost.usd_per_million.known())
    text += "$" + range_text(cost.usd_per_million, 2) + " a million output tokens";
  if (cost.joules.known())
    text += (text.empty() ? "" : ", ") + range_text(cost.joules, 2) + " J an output token";
  return text.empty() ? text : text + "\n";
}

Json token_cost_json(const TokenCost& cost) {
  return {{"usd_per_million_output_tokens", range_json(cost.usd_per_million)},
          {"joules_per_output_token", range_json(cost.joules)}};
}

Json memory_json(const KvCapacity& kv, const Deployment& plan) {
  return {
      {"total_bytes", whole(kv.memory.total)},
      {"weights_bytes", whole(kv.memory.weights)},
      {"activations_bytes", whole(kv.memory.activations)},
      {"reserve_bytes", whole(kv.memory.reserve)},
      {"states_bytes", whole(kv.memory.states)},
      {"kv_bytes", whole(kv.memory.kv)},
      {"kv_bytes_per_token", kv.bytes_per_token},
      {"kv_cache_tokens", kv.tokens},
      {"longest_request_tokens",
       kv.groups.whole == 0 ? Json(nullptr) : Json(kv.longest(at_once(plan)))},
      {"block_tokens", kv.block},
      {"state_blocks_a_request", kv.groups.states},
      {"state_slots", kv.state_slots > 0 ? Json(kv.state_slots) : Json(nullptr)},
      {"window_pool_tokens", plan.window_ratio > 0.0 ? Json(kv.windows.tokens) : Json(nullptr)}};
}

Json deployment_json(const Deployment& plan, const Model& model) {
  return {
      {"tp", plan.tp},
      {"pp", plan.pp},
      {"dp", plan.dp},
      {"ep", plan.ep},
      {"moe_tp", plan.moe_tp},
      {"replicas", plan.replicas},
      {"eplb", plan.eplb},
      {"redundant_experts", plan.redundant_experts},
      {"two_batch", plan.two_batch},
      {"prefill_delay", plan.prefill_delay},
      {"receive_interval", plan.receive_interval},
      {"trtllm_gen", plan.trtllm_gen},
      {"weights", name(plan.weights)},
      {"attention", name(plan.attention)},
      {"experts", model.experts ? Json(name(plan.experts)) : Json(nullptr)},
      {"ends_16bit", plan.ends_16bit},
      {"kv", name(plan.kv)},
      {"states", has_states(model) ? Json(name(plan.states)) : Json(nullptr)},
      {"window_ratio", plan.window_ratio > 0.0 ? Json(plan.window_ratio) : Json(nullptr)},
      {"budget", plan.budget},
      {"max_seqs", plan.max_seqs},
      {"max_length", plan.max_length > 0 ? Json(plan.max_length) : Json(nullptr)},
      {"kv_share", plan.kv_share},
      {"graph_sizes", plan.graph_sizes.empty() ? Json(nullptr) : Json(plan.graph_sizes)},
      {"block", plan.block},
      {"chunked", plan.chunked},
      {"mixed", plan.mixed},
      {"host_kv", plan.host_kv > Bytes{} ? Json(gigabytes_text(plan.host_kv)) : Json(nullptr)},
      {"kv_tiers", plan.kv_tiers.empty() ? Json(nullptr) : Json(kv_tiers_text(plan.kv_tiers))},
      {"kv_prefetch", plan.kv_tiers.empty() ? Json(nullptr) : Json(prefetch_text(plan))},
      {"kv_write", plan.has_kv_tiers() ? Json(name(plan.kv_write)) : Json(nullptr)},
      {"speculate", plan.speculation ? Json(speculation_text(*plan.speculation)) : Json(nullptr)}};
}

Json serving_head_json(const ServingSetup& setup, const KvCapacity& kv) {
  return {{"schema", "orrery.serving/1"},
          {"model", setup.model.name},
          {"system", setup.system.name},
          {"gpus", setup.deployment.gpus()},
          {"engine", {{"name", setup.engine.name}, {"title", setup.engine.title}}},
          {"deployment", deployment_json(setup.deployment, setup.model)},
          {"memory", memory_json(kv, setup.deployment)}};
}

std::string serving_step_json(const ServingStep& step, const TokenCost& cost) {
  Json json = serving_head_json(step.setup, step.kv);
  json["step"] = step_json(step);
  if (step.tokens_per_s > 0.0) {
    json["step"]["output_tokens_per_s"] = step.tokens_per_s;
    json["cost"] = token_cost_json(cost);
  }
  return json.dump(2) + "\n";
}

}  // namespace orrery
