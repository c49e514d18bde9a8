#include "sim/measurements/training_attention.hpp"

#include <filesystem>

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

TrainingAttentionRow read_row(const JsonValue& json, AttentionLibrary library) {
  const std::vector<JsonValue> cells = json.elements();
  if (cells.size() != 10) json.fail("a row has not ten cells", "write one for each column");
  const auto size = [&](std::size_t i) { return cells[i].integer(1, 1 << 30); };
  TrainingAttentionRow row;
  row.format = choice<Dtype>(cells[0], dtype_names());
  row.batch = size(1);
  row.sequence = size(2);
  row.heads = size(3);
  row.kv_heads = size(4);
  row.key_dim = size(5);
  row.value_dim = size(6);
  row.window = cells[7].integer(0, 1 << 30);
  row.forward = microseconds(cells[8].number(1e-3, 1e12));
  row.backward = microseconds(cells[9].number(1e-3, 1e12));
  row.library = library;
  return row;
}

}  // namespace

const std::vector<std::string>& attention_library_names() {
  static const std::vector<std::string> names{"cudnn", "flash_attention_2"};
  return names;
}

TrainingAttention parse_training_attention(const JsonValue& json) {
  require_schema(json, "orrery.training_attention/1");
  json.allow_only(
      {"schema", "gpu", "source", "peak_16bit", "columns", "rows", "flash_attention_2"});
  TrainingAttention measured;
  measured.gpu = required_text(json, "gpu");
  measured.source = required_text(json, "source");
  measured.peak_16bit = json.at("peak_16bit").flop_rate();
  if (measured.peak_16bit == FlopPerSecond{})
    json.at("peak_16bit").fail("is zero", "write it like \"989 TFLOP/s\"");
  for (const JsonValue& row : json.at("rows").elements())
    measured.rows.push_back(read_row(row, AttentionLibrary::cudnn));
  if (const auto other = json.find("flash_attention_2")) {
    other->allow_only({"source", "rows"});
    required_text(*other, "source");
    for (const JsonValue& row : other->at("rows").elements())
      measured.rows.push_back(read_row(row, AttentionLibrary::flash_attention_2));
  }
  return measured;
}

std::optional<TrainingAttention> read_training_attention(const std::string& gpu) {
  // A GPU's name may come from a user's file: one with a '/' must not reach outside the shelf.
  if (gpu.empty() || gpu.find('/') != gpu.npos) return std::nullopt;
  const fs::path path =
      fs::path{data_folder()} / "calibration/data/training_attention" / (gpu + ".json");
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return std::nullopt;
  return parse_training_attention(JsonValue::read_file(path.string()));
}

}  // namespace orrery
