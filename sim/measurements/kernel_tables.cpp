#include "sim/measurements/kernel_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

TrainingAttentionRow read_row(const JsonValue& json, AttentionLibrary library) {
  const std::vector<JsonValue> cells = json.elements();
  if (cells.size() != 10) json.fail("a row has not ten cells", "write one for each column");
  const auto size = [&](std::size_t i) { return cells[i].integer(1, 1 << 30); };
  TrainingAttentionRow row;
  row.format = read_format(cells[0], FormatUse::products);
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
  // A GPU's name may come from a user's file: a '/' must not lead outside of the data folder.
  if (gpu.empty() || gpu.find('/') != gpu.npos) return std::nullopt;
  const fs::path path =
      fs::path{data_folder()} / "calibration/data/training_attention" / (gpu + ".json");
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return std::nullopt;
  return parse_training_attention(JsonValue::read_file(path.string()));
}

namespace {

namespace fs = std::filesystem;

constexpr const char* folder = "calibration/data/kernels";

// {"value", "measured", "source"}: a number that a table does not contain, and its basis.
struct Factor {
  double value = 0.0;
  bool measured = false;
  std::string source;
};

Factor read_factor(const JsonValue& json, double minimum, double maximum) {
  if (!json.is_object())
    json.fail("names no source",
              "write {\"value\": ..., \"measured\": true or false, \"source\": \"...\"}");
  json.allow_only({"value", "measured", "source"});
  return {json.at("value").number(minimum, maximum), json.at("measured").boolean(),
          required_text(json, "source")};
}

template <std::size_t sizes>
struct Row {
  std::array<std::int64_t, sizes> size{};
  Seconds time;
};

// Rows with named columns in any order; the last of `names` is the time.
template <std::size_t sizes>
std::vector<Row<sizes>> read_rows(const JsonValue& table,
                                  const std::array<std::string, sizes + 1>& names) {
  const std::vector<std::string> known{names.begin(), names.end()};
  const JsonValue columns = table.at("columns");
  std::array<std::size_t, sizes + 1> place{};
  place.fill(names.size());
  std::size_t position = 0;
  for (const JsonValue& column : columns.elements()) {
    const auto found = std::find(names.begin(), names.end(), column.text());
    if (found == names.end())
      column.fail("the column '" + column.text() + "' is unknown",
                  suggestion(column.text(), known));
    place[static_cast<std::size_t>(found - names.begin())] = position++;
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (place[i] >= position) columns.fail("the column '" + names[i] + "' is missing", "add it");
  if (position != names.size()) columns.fail("names a column twice", "keep one of them");

  const JsonValue lines = table.at("rows");
  const std::size_t width = names.size();
  const std::vector<double> numbers = lines.number_table(width);
  std::vector<Row<sizes>> rows(numbers.size() / width);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* line = &numbers[r * width];
    for (std::size_t i = 0; i < sizes; ++i) {
      const double size = line[place[i]];
      if (!(size >= 1.0 && size <= row_bounds::largest_size) || size != std::floor(size))
        fail_input(lines.place() / r / place[i], "a size must be a whole number from 1 to 2^32",
                   "write what was measured");
      rows[r].size[i] = static_cast<std::int64_t>(size);
    }
    const double us = line[place[sizes]];
    if (!(us >= row_bounds::shortest_us && us <= row_bounds::longest_us))
      fail_input(lines.place() / r / place[sizes], "a kernel takes from 0.01 to 1e9 us",
                 "write a time in microseconds");
    rows[r].time = microseconds(us);
  }

  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].size < rows[b].size; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (rows[order[i - 1]].size == rows[order[i]].size)
      fail_input(lines.place() / order[i],
                 "repeats the sizes of row " + std::to_string(order[i - 1]),
                 "keep one of them, or their median");
  return rows;
}

MeasuredGpu read_reference(const JsonValue& json, const std::string& gpu) {
  using M = MeasuredGpu;
  static const std::vector<Field<M>> fields = [] {
    std::vector<Field<M>> all{source_of<M>()};
    for (const PeakKey& peak : peak_keys) {
      if (is_wide(peak.format)) continue;  // Tables have no wide products.
      const Field<M> read = field<M, FlopPerSecond>(std::string{peak.key}, peak.peak,
                                                    quantity(&JsonValue::flop_rate));
      all.push_back(peak.in_all ? read : optional(read));
    }
    all.push_back(field("memory_bandwidth", &M::memory_bandwidth, quantity(&JsonValue::bandwidth)));
    all.push_back(field("multiprocessors", &M::multiprocessors, whole(1, 10000)));
    return all;
  }();
  MeasuredGpu measured;
  measured.name = gpu;
  read_fields(json, fields, measured);
  return measured;
}

// The error must be that of the table's `rows` rows, or with `some` of some of them.
std::optional<LeftOutError> read_left_out(const JsonValue& table, std::size_t rows,
                                          bool some = false) {
  const auto json = table.find("left_out");
  if (!json) return std::nullopt;
  using E = LeftOutError;
  static const std::vector<Field<E>> fields{
      field("count", &E::rows, whole(1, 1 << 30)), field("median_error", &E::median, real(0, 1e6)),
      field("p90_error", &E::p90, real(0, 1e6)), field("bias", &E::bias, real(-1, 1e6))};
  const LeftOutError error = object(fields).read(*json);
  if (error.rows != static_cast<std::int64_t>(rows) &&
      !(some && error.rows < static_cast<std::int64_t>(rows)))
    json->at("count").fail(
        "is " + std::to_string(error.rows) + ", but there are " + std::to_string(rows),
        "fit the table again");
  if (error.median > error.p90)
    json->fail("the median is above the 90th percentile", "fit the table again");
  return error;
}

GemmBase read_gemm_base(const JsonValue& json, Dtype dtype) {
  using B = GemmBase;
  const auto time = quantity(&JsonValue::duration);
  const auto efficiency = real(0.01, 2), share = real(0, 1);
  std::vector<Field<B>> fields{source_of<B>(),
                               field("overhead", &B::overhead, time),
                               field("compute_efficiency", &B::compute_efficiency, efficiency),
                               field("tile_overhead", &B::tile_overhead, time),
                               field("memory_efficiency", &B::memory_efficiency, efficiency),
                               field("hard", &B::hard, share),
                               field("throttle", &B::throttle, share)};
  if (is_narrow(dtype) && (json.has("cast_overhead") || json.has("cast_efficiency"))) {
    fields.push_back(field("cast_overhead", &B::cast_overhead, time));
    fields.push_back(field("cast_efficiency", &B::cast_efficiency, efficiency));
  }
  return object(fields).read(json);
}

GemmTable read_gemm_table(const JsonValue& json, const MeasuredGpu& measured) {
  json.allow_only({"dtype", "source", "corrected", "base", "left_out", "columns", "rows"});
  GemmTable table;
  const JsonValue dtype = json.at("dtype");
  table.dtype = read_format(dtype, FormatUse::products);
  if (is_wide(table.dtype))
    dtype.fail("products in " + name(table.dtype) + " are priced by the peak alone",
               "leave the table out");
  for (const PeakKey& peak : peak_keys)
    if (peak.peak == facts(table.dtype).peak && measured.*peak.peak == FlopPerSecond{})
      dtype.fail("an " + name(table.dtype) + " table needs the " +
                     std::string{peak.key.substr(peak.key.find('_') + 1)} + " peak of its GPU",
                 "add /reference/" + std::string{peak.key});
  table.source = required_text(json, "source");
  table.measured_on = measured;
  table.base = read_gemm_base(json.at("base"), table.dtype);
  for (const auto& row : read_rows<3>(json, {"m", "n", "k", "time_us"}))
    table.rows.push_back({row.size[0], row.size[1], row.size[2], row.time});
  // Most of its rows are scaled from another machine, not measured on this GPU.
  const auto corrected = json.find("corrected");
  if (corrected && corrected->boolean()) table.measured_on.name += ", corrected";
  table.left_out = read_left_out(json, table.rows.size(), table.measured_on.name != measured.name);
  return table;
}

AttentionBase read_attention_base(const JsonValue& json) {
  using B = AttentionBase;
  static const std::vector<Field<B>> fields{
      field("head_dim", &B::head_dim, whole(1, 4096)),
      source_of<B>(),
      field("overhead", &B::overhead, quantity(&JsonValue::duration)),
      field("efficiency", &B::efficiency, real(0.01, 2)),
      field("diagonal", &B::diagonal, real(0, 1e5)),
      field("query_traffic", &B::query_traffic, real(0, 100)),
      field("key_traffic", &B::key_traffic, real(0, 100)),
      field("hard", &B::hard, real(0, 1)),
      field("lone", &B::isolated, real(0, 100))};
  AttentionBase base;
  read_fields(json, fields, base, {"left_out"});
  return base;
}

AttentionTable read_attention_table(const JsonValue& json, const MeasuredGpu& measured) {
  json.allow_only({"source", "measures", "bases", "columns", "rows"});
  AttentionTable table;
  table.source = required_text(json, "source");
  table.measured_on = measured;
  if (const auto measures = json.find("measures"))
    table.measures = choice<AttentionTable::Measures>(*measures, {"serving step", "kernel"});
  for (const auto& [size, time] :
       read_rows<5>(json, {"batch", "sequence", "heads", "kv_heads", "head_dim", "time_us"}))
    table.rows.push_back({size[0], size[1], size[2], size[3], size[4], time});
  for (const JsonValue& json_base : json.at("bases").elements()) {
    AttentionBase base = read_attention_base(json_base);
    const auto own = std::count_if(table.rows.begin(), table.rows.end(),
                                   [&](const auto& row) { return row.head_dim == base.head_dim; });
    base.left_out = read_left_out(json_base, static_cast<std::size_t>(own));
    table.bases.push_back(base);
  }
  std::sort(table.bases.begin(), table.bases.end(),
            [](const auto& a, const auto& b) { return a.head_dim < b.head_dim; });
  if (table.bases.empty()) json.at("bases").fail("is empty", "add one object a head dimension");
  return table;
}

std::string path_of(const std::string& name) {
  return (fs::path{data_folder()} / folder / (name + ".json")).string();
}

// A GPU's name may come from a user's file: a '/' must not lead outside of the data folder.
bool has_table(const std::string& gpu) {
  std::error_code code;
  return !gpu.empty() && gpu.find('/') == gpu.npos && gpu != "stand_ins" &&
         fs::is_regular_file(path_of(gpu), code);
}

std::optional<JsonValue> proxy(const std::string& list, const std::string& gpu) {
  std::error_code code;
  if (!fs::is_regular_file(path_of("stand_ins"), code)) return std::nullopt;
  const JsonValue json = JsonValue::read_file(path_of("stand_ins"));
  json.allow_only({"schema", "tables", "attention", "training_attention"});
  require_schema(json, "orrery.kernel_stand_ins/1");
  for (const JsonValue& entry : json.at(list).elements()) {
    entry.allow_only({"gpu", "use", "reason", "sustained", "wgrad_efficiency"});
    if (entry.at("gpu").text() != gpu) continue;
    if (!has_table(entry.at("use").text()))
      entry.at("use").fail("'" + entry.at("use").text() + "' has no table",
                           "name a file in the same folder");
    return entry;
  }
  return std::nullopt;
}

}  // namespace

KernelTables parse_kernel_tables(const JsonValue& json) {
  require_schema(json, "orrery.kernels/1");
  json.allow_only({"schema", "gpu", "reference", "sustained", "wgrad_efficiency", "copy_efficiency",
                   "attention_backward", "grouped_efficiency", "share_lost_beside", "gemm",
                   "attention_forward"});
  KernelTables tables;
  tables.gpu = tables.used_for = json.at("gpu").text();
  const auto factor = [&](const std::string& key, double least, double most) {
    const Factor read = read_factor(json.at(key), least, most);
    tables.factor_sources[key] = {read.measured, read.source};
    return read.value;
  };
  tables.sustained = factor("sustained", 0.1, 2);
  tables.wgrad_efficiency = factor("wgrad_efficiency", 0.1, 2);
  tables.copy_efficiency = factor("copy_efficiency", 0.1, 1);
  tables.copy_measured = tables.factor_sources["copy_efficiency"].measured;
  tables.attention_backward = factor("attention_backward", 1, 10);
  if (json.has("grouped_efficiency"))
    tables.grouped_efficiency = factor("grouped_efficiency", 0.1, 2);
  if (json.has("share_lost_beside"))
    tables.overlap_loss_share = factor("share_lost_beside", 0.01, 5);
  const MeasuredGpu measured = read_reference(json.at("reference"), tables.gpu);
  for (const JsonValue& table : json.at("gemm").elements())
    tables.gemm.push_back(read_gemm_table(table, measured));
  if (const auto table = json.find("attention_forward"))
    tables.attention = read_attention_table(*table, measured);
  return tables;
}

std::string gpu_of_kernel_tables(const std::string& gpu) {
  if (has_table(gpu)) return gpu;
  const auto entry = proxy("tables", gpu);
  return entry ? entry->at("use").text() : "";
}

std::optional<KernelTables> read_kernel_tables(const std::string& gpu) {
  std::string measured = gpu;
  std::optional<JsonValue> entry;
  if (!has_table(gpu)) {
    entry = proxy("tables", gpu);
    if (!entry) return std::nullopt;
    measured = entry->at("use").text();
  }
  KernelTables tables = parse_kernel_tables(JsonValue::read_file(path_of(measured)));
  tables.used_for = gpu;
  if (entry && entry->has("sustained"))
    tables.sustained = read_factor(entry->at("sustained"), 0.1, 2).value;
  if (entry && entry->has("wgrad_efficiency"))
    tables.wgrad_efficiency = read_factor(entry->at("wgrad_efficiency"), 0.1, 2).value;
  if (entry) tables.copy_measured = false;
  if (!tables.attention)
    if (const auto other = proxy("attention", measured))
      tables.attention =
          parse_kernel_tables(JsonValue::read_file(path_of(other->at("use").text()))).attention;
  tables.training_attention = read_training_attention(gpu);
  if (!tables.training_attention)
    if (const auto other = proxy("training_attention", gpu))
      tables.training_attention = read_training_attention(other->at("use").text());
  return tables;
}

}  // namespace orrery
