#include "calibration/host/work_list.hpp"

#include <algorithm>
#include <set>

#include "calibration/host/step_model.hpp"

namespace orrery::calibration {
namespace {

constexpr const char* work_list_schema = "orrery.calibration-shapes/1";

using Sizes = std::vector<std::int64_t>;

// (n, k) of forward products: qkv, proj, fc1, fc2 of Llama 3 8B and 70B, and squares.
const std::vector<std::pair<std::int64_t, std::int64_t>>& layers() {
  static const std::vector<std::pair<std::int64_t, std::int64_t>> pairs{
      {6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {10240, 8192}, {8192, 8192},
      {57344, 8192}, {8192, 28672}, {1024, 1024},  {2048, 2048},  {128256, 4096}};
  return pairs;
}

void add_gemms(std::vector<Case>& cases) {
  for (const std::int64_t m : {1024, 2048, 4096, 8192})
    for (const auto& [n, k] : layers()) {
      cases.push_back(make_case("gemm", {"forward", "bf16"}, {m, n, k}, 2.0));
      if (m != 4096) continue;
      cases.push_back(make_case("gemm", {"dgrad", "bf16"}, {m, k, n}, 2.0));
      cases.push_back(make_case("gemm", {"wgrad", "bf16"}, {n, k, m}, 2.0));
      for (const char* dtype : {"fp8", "fp16", "tf32"})
        cases.push_back(make_case("gemm", {"forward", dtype}, {m, n, k}));
      cases.push_back(make_case("gemm", {"dgrad", "fp8"}, {m, k, n}));
      cases.push_back(make_case("gemm", {"wgrad", "fp8"}, {n, k, m}));
    }
  // Sizes on, just under and just over the borders of tiles of 64, 128 and 256 rows.
  for (const std::int64_t border : {64, 128, 256, 512, 4096})
    for (const std::int64_t m : {border - 8, border, border + 8})
      for (const auto& [n, k] : {std::pair{4096, 4096}, std::pair{8192, 8192}})
        if (m != 4096) cases.push_back(make_case("gemm", {"forward", "bf16"}, {m, n, k}));
  // The last wave is nearly empty if there are a few more tiles than multiprocessors.
  for (std::int64_t n = 1024; n <= 8192; n += 512)
    cases.push_back(make_case("gemm", {"forward", "bf16"}, {2048, n, 4096}));
  for (const std::int64_t k : {512, 1024, 2048, 16384, 32768})
    cases.push_back(make_case("gemm", {"forward", "bf16"}, {4096, 4096, k}));
}

void add_grouped(std::vector<Case>& cases) {
  for (const char* pass : {"forward", "dgrad", "wgrad"})
    for (const char* tokens_by : {"even", "skewed"})
      for (const std::int64_t tokens : {4096, 16384})
        for (const Sizes& shape : {Sizes{8, 28672, 4096}, Sizes{64, 4096, 2048}})
          cases.push_back(make_case("grouped_gemm", {pass, "bf16", tokens_by},
                                    {tokens, shape[0], shape[1], shape[2]}));
}

void add_attention(std::vector<Case>& cases) {
  for (const char* pass : {"forward", "backward"}) {
    for (const std::int64_t sequence : {1024, 2048, 4096, 8192, 16384})
      for (const Sizes& heads : {Sizes{32, 8}, Sizes{8, 1}})
        cases.push_back(
            make_case("attention", {pass, "bf16"}, {1, sequence, heads[0], heads[1], 128}, 2.0));
    for (const std::int64_t sequence : {2048, 8192})
      cases.push_back(make_case("attention", {pass, "bf16"}, {1, sequence, 16, 16, 64}));
    cases.push_back(make_case("attention", {pass, "bf16"}, {4, 2048, 32, 8, 128}));
  }
}

void add_memory(std::vector<Case>& cases) {
  for (const char* op : {"copy", "read", "triad"})
    for (const std::int64_t rows : {64, 512, 4096, 32768})  // 1 MB to 0.5 GB of bf16.
      cases.push_back(make_case("memory", {op}, {rows, 8192}, 2.0));
  for (const char* op :
       {"rms_norm", "rms_norm_backward", "swiglu", "swiglu_backward", "rope", "permute"})
    for (const Sizes& shape : {Sizes{4096, 4096}, Sizes{8192, 8192}, Sizes{4096, 14336}})
      cases.push_back(make_case("memory", {op}, shape));
  for (const Sizes& shape : {Sizes{4096, 32000}, Sizes{4096, 128256}})
    cases.push_back(make_case("memory", {"cross_entropy"}, shape));
  for (const std::int64_t rows : {4096, 32768})
    cases.push_back(make_case("memory", {"adam"}, {rows, 8192}));
}

void add_machine(std::vector<Case>& cases) {
  for (const char* op : {"kernel", "chain", "graph", "event_wait"})
    cases.push_back(make_case("launch", {op}, {}, 6.0));
  for (const char* direction : {"host_to_device", "device_to_host", "device_to_device"})
    for (const std::int64_t bytes : {1 << 12, 1 << 20, 1 << 26, 1 << 28})
      cases.push_back(make_case("transfer", {direction}, {bytes}));
  for (const std::int64_t m : {4096, 8192}) {
    cases.push_back(make_case("overlap", {"copy"}, {m, 8192, 8192, 0}));
    for (const std::int64_t busy : {1, 2, 4, 8, 16, 20, 24, 32})
      cases.push_back(make_case("overlap", {"busy_multiprocessors"}, {m, 8192, 8192, busy}));
  }
  // First of all: what a budget cuts off is not this. The other shapes differ in how much of their
  // time they spend with all multiprocessors busy, and in their depth.
  for (const char* dtype : {"bf16", "fp8"})
    cases.push_back(make_case("sustained", {dtype}, {8192, 8192, 8192, 20}, 5.0));
  for (const Sizes& shape :
       {Sizes{4096, 4096, 4096, 10}, Sizes{8192, 28672, 4096, 10}, Sizes{4096, 8192, 28672, 10}})
    for (const char* dtype : {"bf16", "fp8"})
      cases.push_back(make_case("sustained", {dtype}, shape, 1.5));
}

// Layers of Llama 3 8B, which fill any GPU, and ones so small that the host is what takes time.
void add_steps(std::vector<Case>& cases) {
  StepModel small;
  small.layers = 8, small.hidden = 1024, small.ffn = 4096, small.heads = 16, small.kv_heads = 4;
  small.sequence = 1024;
  StepModel middle;
  middle.layers = 4, middle.hidden = 2048, middle.ffn = 8192, middle.heads = 16;
  for (const StepModel& model : {StepModel{}, middle, small})
    for (const char* launch : {"eager", "graph"}) cases.push_back(step_case(model, launch));
}

// Half, and all of them: the sizes of nccl-tests' usual sweep, a factor of four apart.
void add_collectives(std::vector<Case>& cases, int gpus) {
  std::set<std::int64_t> ranks{2, gpus};
  if (gpus >= 8) ranks.insert(gpus / 2);
  for (const std::int64_t count : ranks) {
    for (const char* collective :
         {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"})
      for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 32; bytes *= 4)
        cases.push_back(make_case("collective", {collective}, {count, bytes}));
    for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"})
      cases.push_back(
          make_case("collective_overlap", {collective}, {count, 1 << 28, 4096, 8192, 8192}));
  }
}

// A fixed hash of the case's words (FNV-1a, 64 bits).
std::uint64_t shuffled(const std::string& id) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::vector<Case> parse_work_list(const std::string& text, const std::string& file) {
  const Json document = Json::parse(text, file);
  const JsonPlace root{document, {file, ""}};
  if (root.at("schema").text() != work_list_schema)
    root.at("schema").fail("is not a work list", std::string{"write \""} + work_list_schema + "\"");
  root.allow_only({"schema", "source", "cases"});
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (const JsonPlace& json : root.at("cases").elements()) {
    std::vector<std::string> keys = case_keys(json.at("kind"));
    keys.push_back("weight");
    json.allow_only(keys);
    Case one = read_case(json);
    if (json.has("weight")) one.weight = json.at("weight").number(0.0, 1e12);
    if (!ids.insert(one.id()).second) json.fail("is listed twice", "keep one of them");
    cases.push_back(one);
  }
  if (cases.empty()) root.at("cases").fail("is empty", "list what to measure");
  return cases;
}

std::string work_list_json(const std::vector<Case>& cases) {
  std::string out = std::string{"{\"schema\": \""} + work_list_schema + "\", \"cases\": [";
  for (const Case& one : cases) {
    Json::Object json;
    write_case(json, one);
    if (one.weight != 1.0) json.emplace_back("weight", one.weight);
    out += (&one == &cases.front() ? "\n " : ",\n ") + Json{json}.text();
  }
  return out + "\n]}\n";
}

std::vector<Case> default_work_list(int gpus) {
  std::vector<Case> cases;
  add_machine(cases);
  add_gemms(cases);
  add_grouped(cases);
  add_attention(cases);
  add_memory(cases);
  add_steps(cases);
  if (gpus > 1) add_collectives(cases, gpus);
  // Some shapes belong to two of the sweeps.
  std::set<std::string> ids;
  std::erase_if(cases, [&](const Case& one) { return !ids.insert(one.id()).second; });
  return cases;
}

std::vector<Case> of_kinds(std::vector<Case> cases, const std::vector<std::string>& kinds) {
  if (!kinds.empty())
    std::erase_if(cases, [&](const Case& one) {
      return std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end();
    });
  return cases;
}

std::vector<Case> in_running_order(std::vector<Case> cases) {
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return shuffled(a.id()) < shuffled(b.id());
  });
  return cases;
}

}  // namespace orrery::calibration
