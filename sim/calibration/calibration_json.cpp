#include "sim/calibration/calibration_json.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/core/dtype.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* fitted_by = "fitted to the rows below by orrery calibrate fit";
constexpr const char* of_the_published = "of the table that the rows correct";

std::string four_digits(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit);
  return text;
}

// The whole number of a figure is in its text: peaks and bandwidths are read back as they were.
std::string all_digits(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g %s", value, unit);
  return text;
}

double four_decimals(double value) { return std::round(value * 1e4) / 1e4 + 0.0; }

double nanoseconds_rounded(Seconds time) { return std::round(time.si() * 1e9) / 1e3; }

Json factor_json(const FittedFactor& factor) {
  return {{"value", four_decimals(factor.value)},
          {"measured", factor.measured},
          {"source", factor.source}};
}

void add_error(Json& json, const std::optional<LeftOutError>& error) {
  if (!error) return;
  json["left_out"] = {{"count", error->rows},
                      {"median_error", four_decimals(error->median)},
                      {"p90_error", four_decimals(error->p90)},
                      {"bias", four_decimals(error->bias)}};
}

// Rows are lists of numbers that a diff should show line by line: they are put in afterwards.
class Rows {
 public:
  void add(const std::string& line) { text_ += (text_.empty() ? "\n  [" : ",\n  [") + line + "]"; }
  std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

std::string number(double value) { return Json(value).dump(); }
std::string number(std::int64_t value) { return std::to_string(value); }

// {a, b} with `more` as further members.
std::string with(const Json& json, const std::string& more) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  return text + (json.empty() ? "" : ", ") + more + "}";
}

std::string gemm_json(const GemmTable& table, const std::string& gpu) {
  const GemmBase& base = table.base;
  const bool corrected = table.measured_on.name != gpu;
  Json json{{"dtype", name(table.dtype)}, {"source", table.source}};
  if (corrected) json["corrected"] = true;
  json.update({{"base",
                {{"source", corrected ? of_the_published : fitted_by},
                 {"overhead", four_digits(base.overhead.si() * 1e6, "us")},
                 {"compute_efficiency", base.compute_efficiency},
                 {"tile_overhead", four_digits(base.tile_overhead.si() * 1e6, "us")},
                 {"memory_efficiency", base.memory_efficiency},
                 {"hard", base.hard},
                 {"throttle", base.throttle}}}});
  add_error(json, table.left_out);
  Rows rows;
  for (const GemmRow& row : table.rows)
    rows.add(number(row.m) + "," + number(row.n) + "," + number(row.k) + "," +
             number(nanoseconds_rounded(row.time)));
  return with(json, R"("columns": ["m", "n", "k", "time_us"], "rows": )" + rows.text());
}

std::string attention_json(const AttentionTable& table) {
  Json json{
      {"source", table.source},
      {"measures", table.measures == AttentionTable::Measures::kernel ? "kernel" : "serving step"}};
  for (const AttentionBase& base : table.bases) {
    Json one{{"head_dim", base.head_dim},
             {"source", fitted_by},
             {"overhead", four_digits(base.overhead.si() * 1e6, "us")},
             {"efficiency", base.efficiency},
             {"diagonal", base.diagonal},
             {"query_traffic", base.query_traffic},
             {"key_traffic", base.key_traffic},
             {"hard", base.hard},
             {"lone", base.lone}};
    add_error(one, base.left_out);
    json["bases"].push_back(one);
  }
  Rows rows;
  for (const AttentionRow& row : table.rows)
    rows.add(number(row.batch) + "," + number(row.sequence) + "," + number(row.heads) + "," +
             number(row.kv_heads) + "," + number(row.head_dim) + "," +
             number(nanoseconds_rounded(row.time)));
  return with(json,
              R"("columns": ["batch", "sequence", "heads", "kv_heads", "head_dim", "time_us"], )"
              R"("rows": )" +
                  rows.text());
}

std::string kernels_json(const FittedKernels& kernels, const Gpu& gpu) {
  Json reference{{"source", "the catalog's figures of " + gpu.name +
                                "; they only set units: the constants absorb their errors"},
                 {"peak_16bit", all_digits(gpu.peak_16bit.si() * 1e-12, "TFLOP/s")}};
  if (gpu.peak_fp8.si() > 0.0)
    reference["peak_fp8"] = all_digits(gpu.peak_fp8.si() * 1e-12, "TFLOP/s");
  if (gpu.peak_fp4.si() > 0.0)
    reference["peak_fp4"] = all_digits(gpu.peak_fp4.si() * 1e-12, "TFLOP/s");
  reference["memory_bandwidth"] = all_digits(gpu.memory_bandwidth.si() * 1e-9, "GB/s");
  reference["multiprocessors"] = gpu.multiprocessors;
  Json json{{"schema", "orrery.kernels/1"},
            {"gpu", gpu.name},
            {"reference", reference},
            {"sustained", factor_json(kernels.sustained)},
            {"wgrad_efficiency", factor_json(kernels.wgrad_efficiency)},
            {"copy_efficiency", factor_json(kernels.copy_efficiency)},
            {"attention_backward", factor_json(kernels.attention_backward)}};
  if (kernels.grouped_efficiency.measured)
    json["grouped_efficiency"] = factor_json(kernels.grouped_efficiency);
  if (kernels.share_lost_beside.measured)
    json["share_lost_beside"] = factor_json(kernels.share_lost_beside);
  std::string tables;
  for (const GemmTable& table : kernels.tables.gemm)
    tables += (tables.empty() ? "\n " : ",\n ") + gemm_json(table, gpu.name);
  std::string more = "\n \"gemm\": [" + tables + "]";
  if (kernels.tables.attention)
    more += ",\n \"attention_forward\": " + attention_json(*kernels.tables.attention);
  return with(json, more);
}

}  // namespace

std::string calibration_json(const CalibrationFit& fit) {
  Json sources = Json::array();
  for (const Calibration::Source& source : fit.sources) {
    Json json{{"file", source.file}};
    if (!source.machine.empty()) json["machine"] = source.machine;
    if (!source.started.empty()) json["started"] = source.started;
    sources.push_back(json);
  }
  const Json head{{"schema", "orrery.calibration/1"}, {"gpu", fit.gpu.name}, {"sources", sources}};
  std::string more;
  if (fit.kernels) more = "\n\"kernels\": " + kernels_json(*fit.kernels, fit.gpu);
  if (!fit.curves.empty()) {
    std::string curves = curves_json(fit.curves);
    while (curves.ends_with('\n')) curves.pop_back();
    more += (more.empty() ? "\n" : ",\n") + std::string{"\"collectives\": "} + curves;
  }
  return with(head, more) + "\n";
}

}  // namespace orrery
