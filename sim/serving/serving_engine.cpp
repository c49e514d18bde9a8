#include "sim/serving/serving_engine.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {
namespace {

// A limit far above any engine, far below overflow.
constexpr std::int64_t most = 1 << 30;

const auto duration = quantity(&JsonValue::duration);

std::vector<Field<IterationHost>> host_keys() {
  using H = IterationHost;
  return {figure("hidden", &H::hidden, truth()),
          optional(figure("hidden_with_copies", &H::hidden_with_copies, truth())),
          figure("base", &H::base, duration),
          figure("per_layer", &H::per_layer, duration),
          figure("per_request", &H::per_request, duration),
          figure("gap", &H::gap, duration),
          figure("gap_per_request", &H::gap_per_request, duration),
          figure("eager_layer", &H::eager_layer, duration),
          optional(figure("eager_states", &H::eager_states, duration)),
          optional(figure("eager_state_space", &H::eager_state_space, duration)),
          figure("largest_graph", &H::largest_graph, whole(0, most))};
}

std::vector<Field<SmallKernels>> small_keys() {
  using S = SmallKernels;
  return {figure("count", &S::count, real(0, 1000)),
          figure("each", &S::each, duration),
          figure("fused", &S::fused, truth()),
          figure("quantises_apart", &S::quantises_apart, list_of(format_of(FormatUse::weights))),
          figure("router", &S::router, duration),
          optional(figure("states", &S::states, duration)),
          figure("sampling", &S::sampling, duration),
          figure("sampling_per_request", &S::sampling_per_request, duration)};
}

std::vector<Field<MemoryRule>> memory_keys() {
  using M = MemoryRule;
  return {figure("share_of_rest", &M::share_of_rest, truth()),
          figure("share", &M::share, real(0.01, 1.0)),
          figure("reserve", &M::reserve, quantity(&JsonValue::bytes)),
          figure("reserve_parallel", &M::reserve_parallel, quantity(&JsonValue::bytes)),
          optional(figure("logit_bytes", &M::logit_bytes, real(0, 1000))),
          optional(figure("holds_max_length", &M::holds_max_length, truth())),
          optional(figure("frees_windows", &M::frees_windows, truth())),
          optional(figure("window_ratio", &M::window_ratio, real(0.001, 1.0)))};
}

std::vector<Field<EngineDefaults>> default_keys() {
  using D = EngineDefaults;
  const auto amount = whole(1, most);
  Notation<BudgetOfMemory> of_memory;
  of_memory.read = [=](const JsonValue& v) {
    v.allow_only({"below", "budget"});
    return BudgetOfMemory{v.at("below").bytes(), amount.read(v.at("budget"))};
  };
  return {figure("budget", &D::budget, amount),
          optional(figure("budget_by_memory", &D::budget_by_memory, list_of(of_memory))),
          optional(figure("copies_share_budget", &D::copies_share_budget, truth())),
          figure("max_seqs", &D::max_seqs, amount),
          optional(figure("compressed_max_seqs", &D::compressed_max_seqs, amount)),
          optional(figure("small_gpu_budget", &D::small_gpu_budget, amount)),
          optional(figure("small_gpu_max_seqs", &D::small_gpu_max_seqs, amount)),
          figure("block", &D::block, amount),
          figure("chunked", &D::chunked, truth())};
}

std::vector<Field<EnginePipeline>> pipeline_keys() {
  using P = EnginePipeline;
  return {figure("limits_a_batch", &P::limits_a_batch, truth()),
          figure("planning_per_request", &P::planning_per_request, duration)};
}

std::vector<Field<EnginePools>> pool_keys() {
  using P = EnginePools;
  return {figure("sending", &P::sending, one_of<KvSending>()),
          figure("decode_makes_first_token", &P::decode_makes_first_token, truth()),
          figure("decode_keeps_prefixes", &P::decode_keeps_prefixes, truth()),
          optional(figure("decode_keeps_preempted", &P::decode_keeps_preempted, truth())),
          figure("handover", &P::handover, duration),
          optional(figure("network_latency", &P::network_latency, duration)),
          optional(figure("network_share", &P::network_share, real(0.01, 1.0)))};
}

std::vector<Field<EngineHostKv>> host_kv_keys() {
  using K = EngineHostKv;
  return {figure("loading", &K::loading, one_of<HostKvLoading>()),
          figure("writing", &K::writing, one_of<KvWriting>()),
          optional(figure("fetches_at_arrival", &K::fetches_at_arrival, truth())),
          optional(figure("prefetch", &K::prefetch, one_of<KvPrefetch>())),
          optional(figure("prefetch_limit", &K::prefetch_limit, duration)),
          optional(figure("prefetch_limit_per_token", &K::prefetch_limit_per_token, duration))};
}

std::vector<Field<EngineStates>> state_keys() {
  using S = EngineStates;
  return {figure("format", &S::format, format_of(FormatUse::states)),
          optional(figure("of_checkpoint", &S::of_checkpoint, truth())),
          figure("in_pages", &S::in_pages, truth()),
          optional(figure("ratio", &S::ratio, real(0.0, 1000.0))),
          optional(figure("with_prefixes", &S::with_prefixes, whole(1, 16)))};
}

std::vector<Field<ServingEngine>> drafting_keys() {
  using E = ServingEngine;
  return {figure("methods", &E::drafts, some_of(enum_words<DraftMethod>)),
          figure("each", &E::draft_host, duration)};
}

// Entries of an object by their names.
template <class T>
Notation<std::map<std::string, T>> by_name(const Notation<T>& entry) {
  return {Form::word, "", {}, [read = entry.read](const JsonValue& json) {
            std::map<std::string, T> all;
            for (const std::string& key : json.keys()) all[key] = read(json.at(key).sourced());
            return all;
          }};
}

std::vector<Field<ServingEngine>> engine_keys() {
  using E = ServingEngine;
  const auto formats = some_of(format_names(FormatUse::weights)), names = some_of({});
  return {
      field("name", &E::name, some_text("name")),
      field("title", &E::title, some_text("title")),
      source_of<E>(),
      figure("scheduler", &E::scheduler,
             made_of(one_of<std::size_t>(scheduler_names()),
                     [](std::size_t i) { return schedulers()[i]; })),
      {"host",
       [](E& engine, const JsonValue& v) {
         read_fields(v, host_keys(), engine.host);
         if (!v.has("hidden_with_copies")) engine.host.hidden_with_copies = engine.host.hidden;
       }},
      field("small_kernels", &E::small, object(small_keys())),
      field("memory", &E::memory, object(memory_keys())),
      {"defaults",
       [](E& engine, const JsonValue& v) {
         EngineDefaults& usual = engine.defaults;
         read_fields(v, default_keys(), usual);
         if (!v.has("small_gpu_budget")) usual.small_gpu_budget = usual.budget;
         if (!v.has("small_gpu_max_seqs")) usual.small_gpu_max_seqs = usual.max_seqs;
       }},
      optional(field("pipeline", &E::pipeline, object(pipeline_keys()))),
      optional(field("pools", &E::pools, object(pool_keys()))),
      optional(Field<E>{"host_kv",
                        [](E& engine, const JsonValue& v) {
                          if (!engine.scheduler->continuous)
                            v.fail(
                                "is of an engine with static batches, which has no prefixes to "
                                "keep",
                                "leave it out");
                          engine.host_kv = object(host_kv_keys()).read(v);
                        }}),
      optional(field("states", &E::states, object(state_keys()))),
      optional(
          Field<E>{"speculation",
                   [](E& engine, const JsonValue& v) { read_fields(v, drafting_keys(), engine); }}),
      figure("gpu_slowdown", &E::gpu_slowdown, real(0.1, 10)),
      figure("client", &E::client, duration),
      figure("kernels", &E::kernels, names),
      optional(field("kernels_of", &E::kernels_of, by_name(names))),
      optional(field("weight_only_rate", &E::weight_only_rate,
                     by_name(quantity(&JsonValue::flop_rate)))),
      optional(figure("trtllm_gen", &E::trtllm_gen, list_of(format_of(FormatUse::weights)))),
      optional(figure("experts_over_all", &E::experts_over_all, truth())),
      optional(figure("attention_over_all", &E::attention_over_all, truth())),
      optional(figure("cuts_whole_blocks", &E::cuts_whole_blocks, truth())),
      optional(figure("dispatches_quantised", &E::dispatches_quantised, truth())),
      optional(figure("all_reduce", &E::all_reduce, any_text())),
      optional(figure("kv_of_checkpoint", &E::takes_kv_of_checkpoint, truth())),
      optional(field("all_reduce_on", &E::all_reduce_on, by_name(any_text()))),
      figure("weights", &E::weights, formats),
      figure("experts", &E::experts, formats),
      figure("kv", &E::kv, some_of(format_names(FormatUse::kv_cache))),
  };
}

}  // namespace

ServingEngine parse_serving_engine(const JsonValue& json) {
  require_schema(json, "orrery.engine/1");
  ServingEngine engine;
  read_fields(json, engine_keys(), engine, {"schema"});
  engine.document = json;
  return engine;
}

ServingEngine read_serving_engine(const std::string& word, const Place& at) {
  return parse_serving_engine(JsonValue::read_file(find_in_catalog("workloads/engines", word, at)));
}

}  // namespace orrery
