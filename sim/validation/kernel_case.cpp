#include "sim/validation/kernel_case.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 32;
constexpr std::int64_t most_experts = 1 << 16;  // Experts of one GPU: each is a product of its own.
constexpr double longest_us = 1e9, shortest_us = 0.01;

std::string by(std::initializer_list<std::int64_t> sizes) { return joined(sizes, " x "); }

KernelCase gemm_case(const std::string& gpu, Dtype dtype, std::int64_t m, std::int64_t n,
                     std::int64_t k, Seconds time) {
  KernelCase one;
  one.kind = "gemm";
  one.group = gpu + " gemm " + name(dtype);
  one.id = one.group + " " + by({m, n, k});
  one.gpu = gpu;
  one.dtype = dtype;
  one.kernel = GemmProduct{m, n, k};
  one.measured = time;
  return one;
}

KernelCase attention_case(const std::string& gpu, const AttentionRow& row, bool backward) {
  KernelCase one;
  one.kind = backward ? "attention backward" : "attention";
  one.group = gpu + " attention" + (backward ? " backward" : "") + ", heads of " +
              std::to_string(row.head_dim);
  one.id = one.group + ", batch " + std::to_string(row.batch) + " of " +
           std::to_string(row.sequence) + ", " + std::to_string(row.heads) + " heads, " +
           std::to_string(row.kv_heads) + " for keys";
  one.gpu = gpu;
  one.kernel = KernelCase::Attention{row, backward};
  one.measured = row.time;
  return one;
}

KernelCase grouped_case(const std::string& gpu, GemmPass pass, std::int64_t experts,
                        std::int64_t tokens, std::int64_t out, std::int64_t in, double accumulate,
                        Seconds time) {
  KernelCase one;
  one.kind = "experts";
  one.group = gpu + " experts " + name(pass);
  one.id = one.group + " " + std::to_string(experts) + " of " + by({tokens, out, in});
  one.gpu = gpu;
  one.clock = KernelCase::Clock::training;
  one.pass = pass;
  one.kernel =
      KernelCase::Grouped{{pass, out, in, pass == GemmPass::wgrad ? accumulate : 0.0},
                          std::vector<std::int64_t>(static_cast<std::size_t>(experts), tokens)};
  one.measured = time;
  return one;
}

// Bytes with which an element of a main gradient is read and written back.
double accumulate_bytes(const std::string& main_gradient) {
  return main_gradient == "fp32" ? 8.0 : 4.0;
}

std::int64_t whole_size(double value, const Place& place) {
  if (!(value >= 1.0 && value <= static_cast<double>(largest_size)) || value != std::floor(value))
    fail_input(place, "a size must be a whole number from 1 to 2^32", "write what was measured");
  return static_cast<std::int64_t>(value);
}

Seconds kernel_time(double us, const Place& place) {
  if (!(us >= shortest_us && us <= longest_us))
    fail_input(place, "a kernel takes from 0.01 to 1e9 us", "write a time in microseconds");
  return microseconds(us);
}

// A table of aiconfigurator's export: rows under named columns, of which some are not needed.
class ExportedTable {
 public:
  ExportedTable(const JsonValue& json, const std::vector<std::string>& needed) : json_{json} {
    std::vector<std::string> columns;
    for (const JsonValue& column : json.at("columns").elements()) columns.push_back(column.text());
    for (const std::string& one : needed) {
      const auto found = std::find(columns.begin(), columns.end(), one);
      if (found == columns.end())
        json.at("columns").fail("the column '" + one + "' is missing", "add it");
      place_.push_back(static_cast<std::size_t>(found - columns.begin()));
    }
    width_ = columns.size();
    numbers_ = json.at("rows").number_table(width_);
  }

  std::size_t rows() const { return numbers_.size() / width_; }
  std::int64_t size(std::size_t row, std::size_t column) const {
    return whole_size(number(row, column), at(row, column));
  }
  Seconds time(std::size_t row, std::size_t column) const {
    return kernel_time(number(row, column), at(row, column));
  }

 private:
  double number(std::size_t row, std::size_t column) const {
    return numbers_[row * width_ + place_[column]];
  }
  Place at(std::size_t row, std::size_t column) const {
    return json_.at("rows").place() / row / place_[column];
  }

  JsonValue json_;
  std::size_t width_ = 0;
  std::vector<std::size_t> place_;
  std::vector<double> numbers_;
};

// "bfloat16" is bf16.
Dtype dtype_like(const JsonValue& written) {
  static const std::map<std::string, Dtype> others{
      {"bfloat16", Dtype::bf16}, {"float16", Dtype::fp16}, {"fp8_e4m3", Dtype::fp8}};
  const auto found = others.find(written.text());
  return found != others.end() ? found->second : read_format(written, FormatUse::products);
}

bool is_exported_table(const JsonValue& json) {
  const auto kind = json.is_object() ? json.find("kind") : std::nullopt;
  return kind && (kind->text() == "gemm_table" || kind->text() == "attention_fwd_table");
}

void read_exported_table(const JsonValue& json, KernelCases& all) {
  const std::string gpu = gpu_like(json.at("gpu"));
  const Dtype dtype = dtype_like(json.at("dtype"));
  if (json.at("kind").text() == "gemm_table") {
    const ExportedTable table{json, {"m", "n", "k", "time_us"}};
    for (std::size_t i = 0; i < table.rows(); ++i)
      all.cases.push_back(gemm_case(gpu, dtype, table.size(i, 0), table.size(i, 1),
                                    table.size(i, 2), table.time(i, 3)));
    return;
  }
  if (is_narrow(dtype) || is_wide(dtype))
    json.at("dtype").fail("attention was measured in 16 bits alone", "leave the table out");
  const ExportedTable table{json, {"batch", "seq", "heads", "kv_heads", "head_dim", "time_us"}};
  for (std::size_t i = 0; i < table.rows(); ++i)
    all.cases.push_back(attention_case(gpu,
                                       {table.size(i, 0), table.size(i, 1), table.size(i, 2),
                                        table.size(i, 3), table.size(i, 4), table.time(i, 5)},
                                       false));
}

// SimuMax's operators. An efficiency is of the peak next to it, so that the time is the operations
// over achieved_tflops; backward attention has 2.5 times the forward pass's, and both count all
// scores.
void read_operator(const JsonValue& json, KernelCases& all) {
  const std::string gpu = gpu_like(json.at("gpu"));
  const JsonValue shape = json.at("shape");
  const auto size = [&](const char* key) { return shape.at(key).integer(1, largest_size); };
  const double rate = json.at("achieved_tflops").number(1e-3, 1e5) * 1e12;
  const auto time = [&](double flop) { return kernel_time(flop / rate * 1e6, json.place()); };
  const std::string op = json.at("op").text();
  KernelCase one;
  if (op == "matmul") {
    const std::int64_t m = size("m"), n = size("n"), k = size("k");
    // Row-major x W^T, dy W and dy^T x.
    static const std::map<std::string, GemmPass> layouts{
        {"TN", GemmPass::forward}, {"NN", GemmPass::dgrad}, {"NT", GemmPass::wgrad}};
    const auto pass = layouts.find(shape.at("layout").text());
    if (pass == layouts.end())
      shape.at("layout").fail("is no layout of a training product", "write TN, NN or NT");
    one = gemm_case(
        gpu, Dtype::bf16, m, n, k,
        time(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)));
    one.clock = KernelCase::Clock::training;
    one.kind = "gemm of training";
    one.pass = pass->second;
    one.group += " " + name(one.pass);
    if (const auto out = shape.find("out_dtype"); out && one.pass == GemmPass::wgrad)
      one.group += " into " + out->text();
    one.id = one.group + " " + by({m, n, k});
  } else if (op == "group_matmul") {
    static const std::map<std::string, GemmPass> stages{{"fwd", GemmPass::forward},
                                                        {"bwd_grad_act", GemmPass::dgrad},
                                                        {"bwd_grad_w", GemmPass::wgrad}};
    const auto pass = stages.find(shape.at("stage").text());
    if (pass == stages.end())
      shape.at("stage").fail("is no pass", "write fwd, bwd_grad_act or bwd_grad_w");
    const std::string main_gradient = shape.at("main_grad_dtype").text();
    const std::int64_t experts = shape.at("ng").integer(1, most_experts), tokens = size("M"),
                       out = size("N"), in = size("K");
    one = grouped_case(gpu, pass->second, experts, tokens, out, in, accumulate_bytes(main_gradient),
                       time(2.0 * static_cast<double>(experts) * static_cast<double>(tokens) *
                            static_cast<double>(out) * static_cast<double>(in)));
    one.id += ", gradients in " + main_gradient;
  } else if (op == "sdp_fwd" || op == "sdp_bwd") {
    const bool backward = op == "sdp_bwd";
    AttentionRow row{size("batch"),       size("seq_len"),     size("head_num"),
                     size("kv_head_num"), size("qk_head_dim"), {}};
    if (size("v_head_dim") != row.head_dim)
      shape.at("v_head_dim").fail("differs from that of queries", "leave the case out");
    row.time = time((backward ? 10.0 : 4.0) * static_cast<double>(row.batch * row.heads) *
                    static_cast<double>(row.sequence) * static_cast<double>(row.sequence) *
                    static_cast<double>(row.head_dim));
    one = attention_case(gpu, row, backward);
    one.kind += " of training";
    one.clock = KernelCase::Clock::training;
  } else {
    json.at("op").fail("'" + shown_text(op) + "' is no operator that is predicted",
                       "leave the case out");
  }
  all.cases.push_back(std::move(one));
}

// The fastest of many products: "14336x15360x2048", named m, n, k.
void read_fastest_product(const JsonValue& json, KernelCases& all) {
  const JsonValue written = json.at("shape_mnk");
  char rest = 0;
  long long m = 0, n = 0, k = 0;
  if (std::sscanf(written.text().c_str(), "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3)
    written.fail("is no m, n and k", "write them like \"4096x4096x4096\"");
  for (const long long size : {m, n, k}) whole_size(static_cast<double>(size), written.place());
  const double flop =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double rate = json.at("achieved_tflops").number(1e-3, 1e5) * 1e12;
  KernelCase one = gemm_case(gpu_like(json.at("gpu")), dtype_like(json.at("dtype")), m, n, k,
                             kernel_time(flop / rate * 1e6, json.place()));
  one.kind = "fastest gemm";
  one.group += ", the fastest found";
  one.casts = false;  // torch._scaled_mm is given what is quantised already.
  all.cases.push_back(std::move(one));
}

// tests/validation/grouped_gemm.json: a table a GPU, whose rows begin with words.
void read_expert_products(const JsonValue& json, KernelCases& all) {
  json.allow_only({"gpu", "source", "columns", "rows"});
  required_text(json, "source");
  const std::string gpu = gpu_like(json.at("gpu"));
  for (const JsonValue& row : json.at("rows").elements()) {
    const auto cells = row.elements();
    if (cells.size() != 7) row.fail("has not seven cells", "write those of the columns");
    const auto pass = choice<GemmPass>(cells[0]);
    const auto size = [&](std::size_t i) { return cells[i].integer(1, largest_size); };
    KernelCase one = grouped_case(gpu, pass, cells[2].integer(1, most_experts), size(3), size(4),
                                  size(5), accumulate_bytes(cells[1].text()),
                                  microseconds(cells[6].number(shortest_us, longest_us)));
    one.id += ", gradients in " + cells[1].text();
    all.cases.push_back(std::move(one));
  }
}

bool is_expert_products(const JsonValue& json) {
  const auto columns = json.is_object() ? json.find("columns") : std::nullopt;
  if (!columns || !columns->is_array()) return false;
  const auto names = columns->elements();
  return names.size() == 7 && names[0].is_string() && names[0].text() == "pass" &&
         names[2].is_string() && names[2].text() == "experts";
}

bool is_single_kernel(const JsonValue& json) {
  return json.is_object() &&
         ((json.has("op") && json.has("shape")) ||
          (json.has("kind") && json.at("kind").is_string() && json.at("kind").text() == "mamf"));
}

bool is_own(const JsonValue& json) {
  return json.is_object() && json.has("schema") && json.at("schema").is_string() &&
         json.at("schema").text() == "orrery.kernels/1";
}

void read_own_tables(const JsonValue& json, KernelCases& all) {
  all.tables = parse_kernel_tables(json);
  for (const GemmTable& table : all.tables->gemm)
    for (const GemmRow& row : table.rows)
      all.cases.push_back(gemm_case(all.tables->gpu, table.dtype, row.m, row.n, row.k, row.time));
  if (all.tables->attention)
    for (const AttentionRow& row : all.tables->attention->rows)
      all.cases.push_back(attention_case(all.tables->gpu, row, false));
}

void read_entry(const JsonValue& entry, KernelCases& all) {
  if (is_exported_table(entry)) return read_exported_table(entry, all);
  if (is_expert_products(entry)) return read_expert_products(entry, all);
  if (entry.is_object() && entry.has("op") && entry.has("shape")) return read_operator(entry, all);
  if (entry.is_object() && entry.has("shape_mnk")) return read_fastest_product(entry, all);
  entry.fail("names no kernel with its sizes", "a case needs them to be compared");
}

std::string id_of(const JsonValue& entry, std::size_t place) {
  const auto id = entry.is_object() ? entry.find("id") : std::nullopt;
  return id && id->is_string() ? id->text() : "entry " + std::to_string(place);
}

// Letters and digits alone, without the maker, and without the generation of the socket.
std::string bare(const std::string& text) {
  std::string letters;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto drop = [&](const std::string& what, std::size_t from, std::size_t count) {
    if (const auto at = letters.find(what); at != letters.npos) letters.erase(at + from, count);
  };
  drop("nvidia", 0, 6);
  for (const char* socket : {"sxm2", "sxm4", "sxm5"}) drop(socket, 3, 1);
  return letters;
}

}  // namespace

double KernelCase::volume() const {
  const auto* product = std::get_if<GemmProduct>(&kernel);
  return product && clock == Clock::benchmark
             ? static_cast<double>(product->m) * static_cast<double>(product->n) *
                   static_cast<double>(product->k)
             : 0.0;
}

std::string gpu_like(const JsonValue& written) {
  const std::string wanted = bare(written.text());
  // "H100-SXM 80GB" goes on where the catalog's name ends, "A100 PCIe" ends before it does.
  std::string nearest;
  std::vector<std::string> longer;
  for (const std::string& gpu : list_catalog("topologies/gpus")) {
    const std::string known = bare(gpu);
    if (wanted.starts_with(known) && gpu.size() > nearest.size()) nearest = gpu;
    if (!wanted.empty() && known.starts_with(wanted)) longer.push_back(gpu);
  }
  if (!nearest.empty()) return nearest;
  if (longer.size() == 1) return longer.front();
  if (longer.size() > 1)
    written.fail("'" + shown_text(written.text()) + "' may be " + longer[0] + " or " + longer[1],
                 "write one of them");
  written.fail("no GPU of the catalog is like '" + shown_text(written.text()) + "'",
               "see orrery list gpus");
}

bool is_kernel_cases(const JsonValue& json) {
  if (is_own(json) || is_exported_table(json)) return true;
  if (!json.is_array()) return false;
  const auto entries = json.elements();
  return !entries.empty() &&
         (is_exported_table(entries.front()) || is_single_kernel(entries.front()) ||
          is_expert_products(entries.front()));
}

KernelCases read_kernel_cases(const JsonValue& json) {
  KernelCases all;
  if (is_own(json)) {
    read_own_tables(json, all);
  } else if (json.is_object()) {
    read_exported_table(json, all);
  } else {
    const auto entries = json.elements();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      try {
        read_entry(entries[i], all);
      } catch (const Error& error) {
        all.refused.push_back({id_of(entries[i], i), error.what()});
      }
    }
  }
  return all;
}

}  // namespace orrery
