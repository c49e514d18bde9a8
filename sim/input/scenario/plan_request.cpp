#include "sim/input/scenario/plan_request.hpp"

#include "sim/base/core/nearest.hpp"
#include "sim/base/text/choice.hpp"
#include "sim/input/schedule/schedule_file.hpp"

namespace orrery {
namespace {

// Far above any cluster, far below overflow: products of several of these fit in 64 bits.
constexpr std::int64_t largest_degree = 1 << 20;
constexpr std::int64_t largest_batch = 1 << 30;

// In the order of Dtype. fp32 is left out: weights and activations are counted with 2 bytes.
const std::vector<std::string>& training_formats() {
  static const std::vector<std::string> names{"fp16", "bf16", "fp8", "mxfp8"};
  return names;
}

int degree(const JsonValue& value) { return static_cast<int>(value.integer(1, largest_degree)); }

// `text` as a JSON string.
std::string quoted(const std::string& text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20)
      json += std::string{"\\u00"} + hex[byte / 16] + hex[byte % 16];
    else
      json += (c == '"' || c == '\\' ? "\\" : "") + std::string{c};
  }
  return json + "\"";
}

using Setter = void (*)(PlanRequest&, const JsonValue&);

struct Entry {
  PlanKey key;
  Setter set;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{"tp", "N", "tensor-parallel ranks"},
       [](PlanRequest& p, const JsonValue& v) { p.tp = degree(v); }},
      {{"pp", "N", "pipeline stages"},
       [](PlanRequest& p, const JsonValue& v) { p.pp = degree(v); }},
      {{"vpp", "N",
        "virtual stages (chunks) a rank, for the interleaved schedule (then default 2)"},
       [](PlanRequest& p, const JsonValue& v) { p.vpp = degree(v); }},
      {{"dp", "N", "data-parallel replicas; derived from --gpus when left out"},
       [](PlanRequest& p, const JsonValue& v) { p.dp = degree(v); }},
      {{"cp", "N", "context-parallel ranks, which share each sequence"},
       [](PlanRequest& p, const JsonValue& v) { p.cp = degree(v); }},
      {{"ep", "N", "expert-parallel ranks"},
       [](PlanRequest& p, const JsonValue& v) { p.ep = degree(v); }},
      {{"etp", "N", "tensor-parallel ranks of the experts"},
       [](PlanRequest& p, const JsonValue& v) { p.etp = degree(v); }},
      {{"mbs", "N", "sequences in a micro-batch (default: the software's, mostly 1)"},
       [](PlanRequest& p, const JsonValue& v) { p.mbs = v.integer(1, largest_batch); }},
      {{"gbs", "N", "sequences in a step, over all replicas"},
       [](PlanRequest& p, const JsonValue& v) { p.gbs = v.integer(1, largest_batch); }},
      {{"seq", "N", "tokens in a sequence (default: the model's)"},
       [](PlanRequest& p, const JsonValue& v) { p.seq = v.integer(1, largest_batch); }},
      {{"schedule", "gpipe|1f1b|interleaved|zb-h1|zb-h2|zb-1p|zb-2p|dualpipe|FILE",
        "order of the passes on each stage; or a file, as `orrery schedule` prints it"},
       [](PlanRequest& p, const JsonValue& v) {
         p.schedule = &schedule_of_word(v.text(), v.place());
       }},
      {{"recompute", "none|selective[:PARTS]|full",
        "activations computed again in the backward pass; PARTS as core_attn+mlp"},
       [](PlanRequest& p, const JsonValue& v) { p.recompute = read_recompute(v); }},
      {{"zero", "0|1|2|3",
        "sharded over replicas: 1 optimizer state, 2 gradients, 3 weights (FSDP)"},
       [](PlanRequest& p, const JsonValue& v) { p.zero = static_cast<int>(v.integer(0, 3)); }},
      {{"reshard", "true|false", "zero 3: weights are gathered again for the backward pass"},
       [](PlanRequest& p, const JsonValue& v) { p.reshard = v.boolean(); }},
      {{"sp", "true|false", "sequence parallelism (default: the software's)"},
       [](PlanRequest& p, const JsonValue& v) { p.sp = v.boolean(); }},
      {{"dtype", "fp16|bf16|fp8|mxfp8", "format of the matrix multiplications"},
       [](PlanRequest& p, const JsonValue& v) { p.dtype = choice<Dtype>(v, training_formats()); }},
      {{"attention", "flash|unfused", "fused kernel, or the score matrix in memory"},
       [](PlanRequest& p, const JsonValue& v) {
         p.fused_attention = choice<int>(v, {"unfused", "flash"}) == 1;
       }},
      {{"cp_comm", "p2p|all_gather|a2a", "how context-parallel ranks meet others' keys and values"},
       [](PlanRequest& p, const JsonValue& v) {
         p.cp_comm = choice<ContextExchange>(v, context_exchange_names());
       }},
      {{"routing", "NAME", "how tokens choose experts: uniform, zipf:1, hot:0.9, ... or a file"},
       [](PlanRequest& p, const JsonValue& v) { p.routing = v.text(); }},
      {{"moe_dispatcher", "alltoall|allgather|hierarchical|deepep|deepep_low_latency|hybridep",
        "how tokens reach their experts (default alltoall)"},
       [](PlanRequest& p, const JsonValue& v) {
         p.moe_dispatcher = choice<ExpertDispatcher>(v, expert_dispatcher_names());
       }},
      {{"shared_expert_overlap", "true|false", "shared experts beside dispatch and combine"},
       [](PlanRequest& p, const JsonValue& v) { p.shared_expert_overlap = v.boolean(); }},
      {{"ep_overlap", "true|false",
        "a micro-batch's dispatch and combine beside the kernels of another"},
       [](PlanRequest& p, const JsonValue& v) { p.ep_overlap = v.boolean(); }},
      {{"delay_wgrad", "true|false", "with ep_overlap: weight gradients wait for idle time"},
       [](PlanRequest& p, const JsonValue& v) { p.delay_wgrad = v.boolean(); }},
      {{"tp_overlap", "true|false", "tensor-parallel traffic beside GEMMs"},
       [](PlanRequest& p, const JsonValue& v) { p.tp_overlap = v.boolean(); }},
      {{"dp_overlap", "true|false", "gradient reduction beside the backward pass"},
       [](PlanRequest& p, const JsonValue& v) { p.dp_overlap = v.boolean(); }},
      {{"software", "NAME", "training framework and era; `orrery list software`"},
       [](PlanRequest& p, const JsonValue& v) { p.software = v.text(); }},
  };
  return all;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.key.name);
  return names;
}

}  // namespace

const std::vector<std::string>& context_exchange_names() {
  static const std::vector<std::string> names{"p2p", "all_gather", "a2a"};
  return names;
}
const std::string& name(ContextExchange exchange) {
  return context_exchange_names()[static_cast<std::size_t>(exchange)];
}
const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = [] {
    std::vector<PlanKey> list;
    for (const Entry& entry : entries()) list.push_back(entry.key);
    return list;
  }();
  return keys;
}

void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value) {
  for (const Entry& entry : entries())
    if (entry.key.name == key) return entry.set(plan, value);
  value.fail("'" + shown_text(key) + "' is no key of a plan", suggestion(key, key_names()));
}

JsonValue value_of_text(const std::string& text, const std::string& place) {
  // Written as a JSON scalar with the quotes left out: numbers and true/false as they are.
  const bool bare = text == "true" || text == "false" ||
                    (!text.empty() && text.find_first_not_of("+-.0123456789eE") == text.npos);
  try {
    return JsonValue::parse(bare ? text : quoted(text), place);
  } catch (const Error&) {
    fail_input({place, ""},
               "'" + shown_text(text) + "' is " + (bare ? "no number" : "no UTF-8 text"),
               bare ? "write a whole number" : "write letters and digits");
  }
}

JsonValue value_of_flag(const std::string& key, const std::string& text) {
  return value_of_text(text, "--" + shown_text(key));
}

void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text) {
  set_plan_key(plan, key, value_of_flag(key, text));
}

void read_plan(PlanRequest& plan, const JsonValue& json) {
  json.allow_only(key_names());
  for (const std::string& key : json.keys())
    if (const auto value = json.find(key)) set_plan_key(plan, key, *value);
}

}  // namespace orrery
