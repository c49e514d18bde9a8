#include "sim/measurements/calibration.hpp"

#include <algorithm>
#include <memory>

#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

Calibration::Source read_source(const JsonValue& json) {
  json.allow_only({"file", "machine", "started"});
  const auto text = [&](const char* key) { return json.has(key) ? json.at(key).text() : ""; };
  return {json.at("file").text(), text("machine"), text("started")};
}

bool has_dtype(const KernelTables& tables, Dtype dtype) {
  return std::any_of(tables.gemm.begin(), tables.gemm.end(),
                     [&](const GemmTable& table) { return table.dtype == dtype; });
}

void require_fitting(const MeasuredCurve& curve, const System& system, const Place& at) {
  const std::string group = std::to_string(curve.ranks) + " ranks on " +
                            std::to_string(curve.nodes) + (curve.nodes == 1 ? " node" : " nodes");
  if (curve.ranks % curve.nodes != 0)
    fail_input(at, "its curve '" + shown_text(curve.id) + "' is of " + group + ", unevenly spread",
               "leave that log out of the fit");
  if (curve.ranks / curve.nodes > system.gpus_per_node)
    fail_input(at,
               "its curve '" + shown_text(curve.id) + "' is of " + group + ", but nodes of '" +
                   system.name + "' have " + std::to_string(system.gpus_per_node) + " GPUs",
               "use it with the system that was measured");
}

}  // namespace

Calibration parse_calibration(const JsonValue& json, const std::string& file) {
  require_schema(json, "orrery.calibration/1");
  json.allow_only({"schema", "gpu", "sources", "kernels", "collectives"});
  Calibration calibration;
  calibration.file = file;
  calibration.gpu = required_text(json, "gpu");
  for (const JsonValue& source : json.at("sources").elements())
    calibration.sources.push_back(read_source(source));
  if (const auto kernels = json.find("kernels")) {
    calibration.kernels = parse_kernel_tables(*kernels);
    if (calibration.kernels->gpu != calibration.gpu)
      kernels->at("gpu").fail("is '" + shown_text(calibration.kernels->gpu) +
                                  "', but the file is of '" + shown_text(calibration.gpu) + "'",
                              "one file holds one GPU");
  }
  if (const auto collectives = json.find("collectives"))
    calibration.curves = parse_collective_curves(*collectives);
  if (!calibration.kernels && calibration.curves.empty())
    json.fail("holds no measurements", "add kernels or collectives: orrery calibrate fit");
  calibration.document = json;
  return calibration;
}

void calibrate(System& system, const std::string& path, const Place& at) {
  calibrate(system, JsonValue::read_file(path), path, at);
}

void calibrate(System& system, const JsonValue& json, const std::string& path, const Place& at) {
  auto calibration = std::make_shared<Calibration>(parse_calibration(json, path));
  if (calibration->gpu != system.gpu.name)
    fail_input(at,
               path + " was measured on '" + shown_text(calibration->gpu) + "', but '" +
                   system.name + "' has '" + system.gpu.name + "'",
               "name a system of that GPU, or measure this one");
  for (const MeasuredCurve& curve : calibration->curves) require_fitting(curve, system, at);
  system.calibration = std::move(calibration);
}

std::optional<KernelTables> kernel_tables_of(const System& system) {
  std::optional<KernelTables> shipped = read_kernel_tables(system.gpu.name);
  if (!system.calibration || !system.calibration->kernels) return shipped;
  KernelTables own = *system.calibration->kernels;
  if (!shipped) return own;
  for (GemmTable& table : shipped->gemm)
    if (!has_dtype(own, table.dtype)) own.gemm.push_back(std::move(table));
  if (!own.attention) {
    own.attention = std::move(shipped->attention);
    own.training_attention = std::move(shipped->training_attention);
  }
  return own;
}

}  // namespace orrery
