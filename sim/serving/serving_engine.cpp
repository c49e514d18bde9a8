#include "sim/serving/serving_engine.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {
namespace {

// Far above any engine, far below overflow.
constexpr std::int64_t most = 1 << 30;

Seconds duration(const JsonValue& json, const char* key) {
  return json.at(key).sourced().duration();
}

std::int64_t amount(const JsonValue& json, const char* key, std::int64_t least = 1) {
  return json.at(key).sourced().integer(least, most);
}

IterationHost read_host(const JsonValue& json) {
  json.allow_only({"hidden", "hidden_with_copies", "base", "per_layer", "per_request", "gap",
                   "gap_per_request", "eager_layer", "largest_graph"});
  IterationHost host;
  host.hidden = host.hidden_with_copies = json.at("hidden").sourced().boolean();
  if (const auto copies = json.find("hidden_with_copies"))
    host.hidden_with_copies = copies->sourced().boolean();
  host.base = duration(json, "base");
  host.per_layer = duration(json, "per_layer");
  host.per_request = duration(json, "per_request");
  host.gap = duration(json, "gap");
  host.gap_per_request = duration(json, "gap_per_request");
  host.eager_layer = duration(json, "eager_layer");
  host.largest_graph = amount(json, "largest_graph", 0);
  return host;
}

SmallKernels read_small(const JsonValue& json) {
  json.allow_only(
      {"count", "each", "fused", "quantises_apart", "router", "sampling", "sampling_per_request"});
  SmallKernels small;
  small.count = json.at("count").sourced().number(0, 1000);
  small.each = duration(json, "each");
  small.fused = json.at("fused").sourced().boolean();
  for (const JsonValue& format : json.at("quantises_apart").sourced().elements())
    small.quantises_apart.push_back(read_format(format, FormatUse::weights));
  small.router = duration(json, "router");
  small.sampling = duration(json, "sampling");
  small.sampling_per_request = duration(json, "sampling_per_request");
  return small;
}

MemoryRule read_memory(const JsonValue& json) {
  json.allow_only({"share_of_rest", "share", "reserve", "reserve_parallel", "logit_bytes"});
  MemoryRule memory;
  memory.share_of_rest = json.at("share_of_rest").sourced().boolean();
  memory.share = json.at("share").sourced().number(0.01, 1.0);
  memory.reserve = json.at("reserve").sourced().bytes();
  memory.reserve_parallel = json.at("reserve_parallel").sourced().bytes();
  if (const auto bytes = json.find("logit_bytes"))
    memory.logit_bytes = bytes->sourced().number(0, 1000);
  return memory;
}

EngineDefaults read_defaults(const JsonValue& json) {
  json.allow_only(
      {"budget", "max_seqs", "small_gpu_budget", "small_gpu_max_seqs", "block", "chunked"});
  EngineDefaults defaults;
  defaults.budget = amount(json, "budget");
  defaults.max_seqs = amount(json, "max_seqs");
  defaults.small_gpu_budget =
      json.has("small_gpu_budget") ? amount(json, "small_gpu_budget") : defaults.budget;
  defaults.small_gpu_max_seqs =
      json.has("small_gpu_max_seqs") ? amount(json, "small_gpu_max_seqs") : defaults.max_seqs;
  defaults.block = amount(json, "block");
  defaults.chunked = json.at("chunked").sourced().boolean();
  return defaults;
}

EnginePipeline read_pipeline(const JsonValue& json) {
  json.allow_only({"limits_a_batch", "planning_per_request"});
  EnginePipeline pipeline;
  pipeline.limits_a_batch = json.at("limits_a_batch").sourced().boolean();
  pipeline.planning_per_request = duration(json, "planning_per_request");
  return pipeline;
}

EnginePools read_pools(const JsonValue& json) {
  json.allow_only({"sending", "decode_makes_first_token", "decode_keeps_prefixes", "handover"});
  EnginePools pools;
  pools.sending = choice<KvSending>(json.at("sending").sourced(), kv_sending_names());
  pools.decode_makes_first_token = json.at("decode_makes_first_token").sourced().boolean();
  pools.decode_keeps_prefixes = json.at("decode_keeps_prefixes").sourced().boolean();
  pools.handover = duration(json, "handover");
  return pools;
}

EngineHostKv read_host_kv(const JsonValue& json, const SchedulerKind& scheduler) {
  if (!scheduler.continuous)
    json.fail("is of an engine with static batches, which has no prefixes to keep", "leave it out");
  json.allow_only({"loading", "copies_at_once"});
  EngineHostKv host;
  host.loading = choice<HostKvLoading>(json.at("loading").sourced(), host_kv_loading_names());
  host.copies_at_once = json.at("copies_at_once").sourced().boolean();
  return host;
}

std::vector<std::string> words(const JsonValue& json, const std::vector<std::string>& known) {
  std::vector<std::string> said;
  const JsonValue value = json.sourced();
  for (const JsonValue& word : value.elements()) {
    if (!known.empty()) choice<std::size_t>(word, known);
    said.push_back(word.text());
  }
  if (said.empty()) value.fail("is empty", "name one");
  return said;
}

}  // namespace

const std::vector<std::string>& kv_sending_names() {
  static const std::vector<std::string> names{"whole", "chunks", "layers"};
  return names;
}

const std::vector<std::string>& host_kv_loading_names() {
  static const std::vector<std::string> names{"apart", "layers", "before"};
  return names;
}

ServingEngine parse_serving_engine(const JsonValue& json) {
  require_schema(json, "orrery.engine/1");
  json.allow_only({"schema",
                   "name",
                   "title",
                   "source",
                   "scheduler",
                   "host",
                   "small_kernels",
                   "memory",
                   "defaults",
                   "pipeline",
                   "pools",
                   "host_kv",
                   "speculation",
                   "gpu_slowdown",
                   "client",
                   "kernels",
                   "kernels_of",
                   "dispatches_quantised",
                   "all_reduce",
                   "all_reduce_on",
                   "weights",
                   "experts",
                   "kv"});
  ServingEngine engine;
  engine.name = required_text(json, "name");
  engine.title = required_text(json, "title");
  required_text(json, "source");
  engine.scheduler =
      schedulers()[choice<std::size_t>(json.at("scheduler").sourced(), scheduler_names())];
  engine.host = read_host(json.at("host"));
  engine.small = read_small(json.at("small_kernels"));
  engine.memory = read_memory(json.at("memory"));
  engine.defaults = read_defaults(json.at("defaults"));
  if (const auto pipeline = json.find("pipeline")) engine.pipeline = read_pipeline(*pipeline);
  if (const auto pools = json.find("pools")) engine.pools = read_pools(*pools);
  if (const auto host = json.find("host_kv"))
    engine.host_kv = read_host_kv(*host, *engine.scheduler);
  if (const auto drafting = json.find("speculation")) {
    drafting->allow_only({"methods", "each"});
    engine.drafts = words(drafting->at("methods"), draft_method_names());
    engine.draft_host = duration(*drafting, "each");
  }
  engine.gpu_slowdown = json.at("gpu_slowdown").sourced().number(0.1, 10);
  engine.client = duration(json, "client");
  engine.kernels = words(json.at("kernels"), {});
  if (const auto others = json.find("kernels_of"))
    for (const std::string& op : others->keys()) engine.kernels_of[op] = words(others->at(op), {});
  if (const auto quantised = json.find("dispatches_quantised"))
    engine.dispatches_quantised = quantised->sourced().boolean();
  if (const auto table = json.find("all_reduce")) engine.all_reduce = table->sourced().text();
  if (const auto others = json.find("all_reduce_on"))
    for (const std::string& gpu : others->keys())
      engine.all_reduce_on[gpu] = others->at(gpu).sourced().text();
  engine.weights = words(json.at("weights"), format_names(FormatUse::weights));
  engine.experts = words(json.at("experts"), format_names(FormatUse::weights));
  engine.kv = words(json.at("kv"), format_names(FormatUse::kv_cache));
  engine.document = json;
  return engine;
}

ServingEngine read_serving_engine(const std::string& word, const Place& at) {
  return parse_serving_engine(JsonValue::read_file(find_in_catalog("workloads/engines", word, at)));
}

}  // namespace orrery
