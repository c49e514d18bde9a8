#include "sim/measurements/serving_table.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

using Columns = std::vector<std::string>;

const std::map<std::string, Columns>& columns_by_op() {
  static const std::map<std::string, Columns> all{
      {"gemm", {"n", "k", "m"}},
      {"decode_attention", {"batch", "heads", "kv_heads", "head_dim", "window", "context"}},
      {"prefill_attention", {"batch", "heads", "kv_heads", "head_dim", "seq"}},
      {"latent_decode", {"batch", "heads", "context"}},
      {"latent_prefill", {"batch", "heads", "seq"}},
      {"latent_pre", {"heads", "tokens"}},
      {"latent_post", {"heads", "tokens"}},
      {"experts", {"hidden", "inter", "topk", "experts", "moe_tp", "moe_ep", "tokens"}},
      {"dispatched_prompts", {"hidden", "inter", "topk", "experts", "moe_tp", "moe_ep", "tokens"}},
      {"dispatched_experts", {"hidden", "inter", "topk", "experts", "moe_tp", "moe_ep", "tokens"}},
      {"delta_rule", {"heads", "batch", "seq"}},
      {"channel_delta_rule", {"heads", "batch", "seq"}},
      {"state_space", {"heads", "batch", "seq"}},
      {"delta_rule_step", {"heads", "batch"}},
      {"channel_delta_rule_step", {"heads", "batch"}},
      {"convolution", {"channels", "batch", "seq"}},
      {"convolution_step", {"channels", "batch"}},
      {"sparse_decode", {"hidden", "q_rank", "index_heads", "heads", "batch", "context"}},
      {"sparse_decode_shared", {"hidden", "q_rank", "index_heads", "heads", "batch", "context"}},
      {"sparse_prefill", {"hidden", "q_rank", "index_heads", "heads", "batch", "new", "context"}},
      {"sparse_prefill_shared",
       {"hidden", "q_rank", "index_heads", "heads", "batch", "new", "context"}},
      {"csa_decode", {"hidden", "q_rank", "index_heads", "heads", "batch", "context"}},
      {"csa_prefill", {"hidden", "q_rank", "index_heads", "heads", "batch", "new", "context"}},
      {"hca_decode", {"hidden", "q_rank", "index_heads", "heads", "batch", "context"}},
      {"hca_prefill", {"hidden", "q_rank", "index_heads", "heads", "batch", "new", "context"}},
      {"msa_decode", {"hidden", "q_rank", "index_heads", "heads", "batch", "context"}},
      {"msa_prefill", {"hidden", "q_rank", "index_heads", "heads", "batch", "new", "context"}},
      {"streams_pre", {"hidden", "tokens"}},
      {"streams_post", {"hidden", "tokens"}},
      {"all_reduce", {"gpus", "elements"}}};
  return all;
}

fs::path folder_of(const std::string& gpu) {
  return fs::path{data_folder()} / "calibration/data/serving" / gpu;
}

// A GPU's name may come from a user's file: a '/' must not lead outside of the data folder.
bool is_plain(const std::string& name) { return !name.empty() && name.find('/') == name.npos; }

void check_columns(const JsonValue& json, const Columns& columns) {
  Columns given;
  for (const JsonValue& column : json.at("columns").elements()) given.push_back(column.text());
  given.push_back(json.at("along").text());
  if (given == columns) return;
  std::string words;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i)
    words += (i > 0 ? ", \"" : "\"") + columns[i] + "\"";
  json.at("columns").fail(
      "with 'along' they are not those of '" + json.at("op").text() + "'",
      "write \"columns\": [" + words + "], \"along\": \"" + columns.back() + "\"");
}

// Sizes start at `least`, which is 0 for a window, where it means none.
std::int64_t size_of(double value, double least, const Place& place) {
  if (!(value >= least && value <= row_bounds::largest_size) || value != std::floor(value))
    fail_input(place, "a size must be a whole number from 1 to 2^32", "write what was measured");
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::vector<std::string> serving_table_columns(const std::string& op) {
  const auto found = columns_by_op().find(op);
  return found == columns_by_op().end() ? Columns{} : found->second;
}

ServingTable parse_serving_table(const JsonValue& json) {
  require_schema(json, "orrery.serving_kernels/1");
  json.allow_only({"schema", "gpu", "op", "weights", "kv", "engine", "version", "source",
                   "launches", "columns", "along", "at", "rows"});
  ServingTable table;
  table.gpu = required_text(json, "gpu");
  table.op = required_text(json, "op");
  if (const auto format = json.find("weights")) table.weights = format->text();
  if (const auto format = json.find("kv")) table.kv = format->text();
  table.engine = required_text(json, "engine");
  table.version = required_text(json, "version");
  table.source = required_text(json, "source");
  Seconds launches;
  if (const auto given = json.find("launches")) launches = given->sourced().duration();
  const Columns columns = serving_table_columns(table.op);
  if (columns.empty()) {
    Columns known;
    for (const auto& [op, unused] : columns_by_op()) known.push_back(op);
    choice<std::size_t>(json.at("op"), known);
  }
  check_columns(json, columns);
  table.width = columns.size();
  std::vector<std::int64_t> at;
  for (const JsonValue& size : json.at("at").elements())
    at.push_back(size.integer(1, std::int64_t{1} << 32));
  const JsonValue lines = json.at("rows");
  const std::size_t keys = columns.size() - 1;
  const std::size_t line_width = keys + at.size();
  const std::vector<double> numbers = lines.number_table(line_width);
  const std::size_t line_count = line_width == 0 ? 0 : numbers.size() / line_width;
  for (std::size_t line = 0; line < line_count; ++line) {
    const double* cells = &numbers[line * line_width];
    for (std::size_t j = 0; j < at.size(); ++j) {
      const double us = cells[keys + j];
      if (us == 0.0) continue;  // Not measured.
      const Place place = lines.place() / line / (keys + j);
      if (!(us >= row_bounds::shortest_us && us <= row_bounds::longest_us))
        fail_input(place, "a kernel takes from 0.01 to 1e9 us, or 0 where none was measured",
                   "write a time in microseconds");
      for (std::size_t key = 0; key < keys; ++key)
        table.sizes.push_back(
            size_of(cells[key], columns[key] == "window" ? 0.0 : 1.0, lines.place() / line / key));
      table.sizes.push_back(at[j]);
      if (!(launches < microseconds(us)))
        fail_input(place, "is no longer than the table's launches alone",
                   "write a longer time, or fewer launches");
      table.times.push_back(microseconds(us) - launches);
    }
  }
  if (table.times.empty()) lines.fail("holds no time", "write what was measured");
  return table;
}

std::optional<ServingTable> read_serving_table(const std::string& gpu, const std::string& name) {
  if (!is_plain(gpu) || !is_plain(name)) return std::nullopt;
  const fs::path path = folder_of(gpu) / (name + ".json");
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return std::nullopt;
  return parse_serving_table(JsonValue::read_file(path.string()));
}

bool has_serving_tables(const std::string& gpu) {
  std::error_code code;
  return is_plain(gpu) && fs::is_directory(folder_of(gpu), code);
}

namespace {

// The proxy for `key`, a GPU or a table of one; "" if there is none.
std::string proxy(const std::string& key) {
  const fs::path path = fs::path{data_folder()} / "calibration/data/serving_stand_ins.json";
  std::error_code code;
  if (key == "schema" || !fs::is_regular_file(path, code)) return "";
  const JsonValue json = JsonValue::read_file(path.string());
  require_schema(json, "orrery.serving_stand_ins/1");
  const auto found = json.find(key);
  const std::string other = found ? found->sourced().text() : "";
  return has_serving_tables(other) ? other : "";
}

}  // namespace

std::string gpu_of_serving_tables(const std::string& gpu) {
  return has_serving_tables(gpu) ? gpu : proxy(gpu);
}

std::string gpu_of_larger_groups(const std::string& gpu, const std::string& name) {
  return proxy(gpu + "/" + name + "/larger");
}

std::string gpu_of_serving_table(const std::string& gpu, const std::string& name) {
  std::error_code code;
  const bool own = is_plain(gpu) && is_plain(name) &&
                   fs::is_regular_file(folder_of(gpu) / (name + ".json"), code);
  return own ? gpu : proxy(gpu + "/" + name);
}

}  // namespace orrery
