#include "calibration/host/case.hpp"

#include <algorithm>
#include <cassert>

namespace orrery::calibration {
namespace {

constexpr std::int64_t large = std::int64_t{1} << 24;  // Any one side of a matrix.

const CaseKind& kind_named(const std::string& name) {
  const auto found = std::find_if(case_kinds().begin(), case_kinds().end(),
                                  [&](const CaseKind& kind) { return kind.name == name; });
  assert(found != case_kinds().end());
  return *found;
}

void check(const Case& what, const JsonPlace& json) {
  const bool has_heads = what.kind == "attention" || what.kind == "training_step";
  if (has_heads && what.size("heads") % what.size("kv_heads") != 0)
    json.at("kv_heads").fail("does not divide the heads", "each kv head serves as many heads");
  if (what.kind == "training_step" && what.size("hidden") % what.size("heads") != 0)
    json.at("heads").fail("does not divide hidden", "each head has as many channels");
  if (what.kind == "grouped_gemm" && what.size("tokens") < what.size("experts"))
    json.at("tokens").fail("are fewer than the experts", "give each expert one at least");
}

}  // namespace

const std::vector<CaseKind>& case_kinds() {
  const CaseKind::Choice pass{"pass", {"forward", "dgrad", "wgrad"}};
  const CaseKind::Size m{"m", 1, large}, n{"n", 1, large}, k{"k", 1, large};
  const CaseKind::Size bytes{"bytes", 4, std::int64_t{1} << 40};
  const CaseKind::Size ranks{"ranks", 2, 1 << 20};
  const CaseKind::Choice collective{
      "collective", {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"}};
  static const std::vector<CaseKind> kinds{
      {"gemm",
       "one matrix product, C[m,n] = A[m,k] B[k,n]; wgrad adds to an fp32 C",
       {pass, {"dtype", {"bf16", "fp16", "tf32", "fp8"}}},
       {m, n, k}},
      {"grouped_gemm",
       "the products of all experts of a layer, whose tokens are even or skewed (1/rank)",
       {pass, {"dtype", {"bf16", "fp16"}}, {"tokens_by_expert", {"even", "skewed"}}},
       {{"tokens", 1, large}, {"experts", 1, 4096}, n, k}},
      {"attention",
       "causal attention of `batch` sequences; keys and values have kv_heads",
       {{"pass", {"forward", "backward"}}, {"dtype", {"bf16"}}},
       {{"batch", 1, 1 << 20},
        {"sequence", 1, large},
        {"heads", 1, 4096},
        {"kv_heads", 1, 4096},
        {"head_dim", 8, 512}}},
      {"memory",
       "a kernel that streams rows x width elements",
       {{"op",
         {"copy", "read", "triad", "rms_norm", "rms_norm_backward", "swiglu", "swiglu_backward",
          "rope", "cross_entropy", "permute", "adam"}}},
       {{"rows", 1, large}, {"width", 8, large}}},
      {"launch",
       "what starting work costs",
       {{"op", {"kernel", "chain", "graph", "event_wait"}}},
       {}},
      {"transfer",
       "a copy by the copy engines, host memory pinned",
       {{"direction", {"host_to_device", "device_to_host", "device_to_device"}}},
       {bytes}},
      {"overlap",
       "a bf16 forward product beside a copy, or beside `busy` blocked multiprocessors",
       {{"beside", {"copy", "busy_multiprocessors"}}},
       {m, n, k, {"busy", 0, 1024}}},
      {"sustained",
       "a forward product without pause from a cool GPU on: its first 20 ms against its last 5 s",
       {{"dtype", {"bf16", "fp8"}, "bf16"}},
       {m, n, k, {"seconds", 2, 600}}},
      {"training_step",
       "forward, backward and Adam of a small decoder, each kernel launched by itself or in graphs",
       {{"launch", {"eager", "graph"}}},
       {{"layers", 1, 1000},
        {"hidden", 64, 1 << 16},
        {"ffn", 64, 1 << 20},
        {"heads", 1, 1024},
        {"kv_heads", 1, 1024},
        {"vocab", 64, 1 << 20},
        {"sequence", 64, 1 << 20},
        {"batch", 1, 1 << 16}}},
      {"collective",
       "one NCCL collective of `ranks` GPUs; bytes as nccl-tests counts them",
       {collective},
       {ranks, bytes}},
      {"collective_overlap",
       "a NCCL collective beside a bf16 forward product on each GPU",
       {collective},
       {ranks, bytes, m, n, k}},
  };
  return kinds;
}

std::vector<std::string> case_kind_names() {
  std::vector<std::string> names;
  for (const CaseKind& kind : case_kinds()) names.push_back(kind.name);
  return names;
}

std::string Case::id() const {
  const CaseKind& table = kind_named(kind);
  std::string id = kind;
  for (const auto& choice : table.choices) id += " " + choices.at(choice.name);
  for (const auto& size : table.sizes)
    id += " " + size.name + "=" + std::to_string(sizes.at(size.name));
  return id;
}

Case make_case(const std::string& kind, const std::vector<std::string>& choices,
               const std::vector<std::int64_t>& sizes, double weight) {
  const CaseKind& table = kind_named(kind);
  assert(choices.size() == table.choices.size() && sizes.size() == table.sizes.size());
  Case made;
  made.kind = kind;
  made.weight = weight;
  for (std::size_t i = 0; i < choices.size(); ++i) made.choices[table.choices[i].name] = choices[i];
  for (std::size_t i = 0; i < sizes.size(); ++i) made.sizes[table.sizes[i].name] = sizes[i];
  return made;
}

std::vector<std::string> case_keys(const JsonPlace& kind) {
  const CaseKind& table = case_kinds()[kind.choice(case_kind_names())];
  std::vector<std::string> keys{"kind"};
  for (const auto& choice : table.choices) keys.push_back(choice.name);
  for (const auto& size : table.sizes) keys.push_back(size.name);
  return keys;
}

Case read_case(const JsonPlace& json) {
  const CaseKind& table = case_kinds()[json.at("kind").choice(case_kind_names())];
  Case read;
  read.kind = table.name;
  for (const auto& choice : table.choices)
    read.choices[choice.name] = choice.before.empty() || json.has(choice.name)
                                    ? choice.values[json.at(choice.name).choice(choice.values)]
                                    : choice.before;
  for (const auto& size : table.sizes)
    read.sizes[size.name] = json.at(size.name).integer(size.least, size.most);
  check(read, json);
  return read;
}

void write_case(Json::Object& json, const Case& what) {
  const CaseKind& table = kind_named(what.kind);
  json.emplace_back("kind", what.kind);
  for (const auto& choice : table.choices) json.emplace_back(choice.name, what.choice(choice.name));
  for (const auto& size : table.sizes) json.emplace_back(size.name, what.size(size.name));
}

}  // namespace orrery::calibration
