#include <cassert>
#include <charconv>
#include <string_view>

#include "sim/cluster/figures.hpp"
#include "sim/cluster/system.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/own_figures.hpp"

namespace orrery {
namespace {

const std::vector<std::string>& architecture_names() {
  static const std::vector<std::string> names{"volta", "ampere", "ada", "hopper", "blackwell"};
  return names;
}

// Power is no quantity of the simulation (nothing is computed from it yet), so it has no type.
double watts(const JsonValue& json) {
  // A whole NVL72 rack takes about 120 kW: no single GPU comes near it.
  constexpr double most = 100e3;
  const std::string text = json.text();
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit{rest, text.data() + text.size()};
  if (error != std::errc{} || !(value > 0.0 && value <= most) || (unit != " W" && unit != "W"))
    json.fail("'" + text.substr(0, 60) + "' is not a power", "write it like \"400 W\"");
  return value;
}

constexpr double usual_share_of_pcie = 0.8;

}  // namespace

const std::string& name(Architecture architecture) {
  return architecture_names()[static_cast<std::size_t>(architecture)];
}

MaybeRefused Gpu::lacks(Dtype dtype) const {
  const auto missing = [&](const std::string& remedy) {
    return infeasible("dtype", "the GPU '" + name + "' has no " + orrery::name(dtype) + " units",
                      remedy);
  };
  const bool is_volta = architecture == Architecture::volta;
  // Tensor cores multiply bf16 from Ampere on (NVIDIA A100 whitepaper, 2020).
  if (dtype == Dtype::bf16 && is_volta) return missing("use fp16");
  const bool has_fp8 = peak_fp8 != FlopPerSecond{};
  if (dtype == Dtype::fp8 && !has_fp8) return missing(is_volta ? "use fp16" : "use bf16 or fp16");
  // Tensor cores scale blocks of 32 from Blackwell on (NVIDIA Blackwell architecture brief).
  if (dtype == Dtype::mxfp8 && architecture < Architecture::blackwell)
    return missing(has_fp8 ? "use fp8" : "use bf16 or fp16");
  if (dtype == Dtype::nvfp4 && peak_fp4 == FlopPerSecond{})
    return missing(has_fp8 ? "use fp8" : "use bf16 or fp16");
  if (dtype == Dtype::tf32 && peak_tf32 == FlopPerSecond{})
    return missing("use fp32, or add peak_tf32 to its file");
  return {};
}

FlopPerSecond Gpu::peak(Dtype dtype, const Place& at) const {
  if (const auto no = lacks(dtype)) fail_infeasible(at, no->problem, no->remedy);
  if (dtype == Dtype::nvfp4) return peak_fp4;
  if (is_narrow(dtype)) return peak_fp8;
  return dtype == Dtype::fp32 ? peak_fp32 : dtype == Dtype::tf32 ? peak_tf32 : peak_16bit;
}

Gpu parse_gpu(const JsonValue& written) {
  require_schema(written, "orrery.gpu/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  ObjectReader reader{
      json,
      {"schema", "name", "title", "architecture", "peak_16bit", "peak_fp8", "peak_fp4", "peak_tf32",
       "peak_fp32", "memory_bandwidth", "memory", "multiprocessors", "nvlink_bandwidth",
       "pcie_bandwidth", "host_bandwidth", "power"}};
  Gpu gpu;
  const auto rate = [](FlopPerSecond& into) {
    return [&into](const JsonValue& value) { into = value.sourced().flop_rate(); };
  };
  const auto bandwidth = [](BytesPerSecond& into) {
    return [&into](const JsonValue& value) { into = value.sourced().bandwidth(); };
  };
  reader.required("name", [&](const JsonValue&) { gpu.name = required_text(json, "name"); });
  reader.required("title", [&](const JsonValue&) { gpu.title = required_text(json, "title"); });
  reader.required("architecture", [&](const JsonValue& word) {
    gpu.architecture = choice<Architecture>(word, architecture_names());
  });
  reader.required("peak_16bit", rate(gpu.peak_16bit));
  reader.optional("peak_fp8", rate(gpu.peak_fp8));
  reader.optional("peak_fp4", rate(gpu.peak_fp4));
  reader.optional("peak_tf32", rate(gpu.peak_tf32));
  reader.required("peak_fp32", rate(gpu.peak_fp32));
  reader.required("memory_bandwidth", bandwidth(gpu.memory_bandwidth));
  reader.required("memory", [&](const JsonValue& value) {
    const JsonValue memory = value.sourced();
    gpu.memory = memory.bytes();
    if (gpu.memory == Bytes{}) memory.fail("a GPU without memory", "write it like \"80 GiB\"");
  });
  // Ten times what any GPU has; a larger number counts cores, not multiprocessors.
  reader.required("multiprocessors", [&](const JsonValue& value) {
    gpu.multiprocessors = static_cast<int>(value.sourced().integer(1, 2000));
  });
  reader.optional("nvlink_bandwidth", bandwidth(gpu.nvlink));
  reader.required("pcie_bandwidth", bandwidth(gpu.pcie));
  gpu.host = usual_share_of_pcie * gpu.pcie;
  reader.optional("host_bandwidth", bandwidth(gpu.host));
  reader.required("power", [&](const JsonValue& value) { gpu.watts = watts(value.sourced()); });
  reader.raise();
  gpu.document = json;
  return gpu;
}

Gpu read_gpu(const std::string& word, const Place& at) {
  return parse_gpu(JsonValue::read_file(find_in_catalog("topologies/gpus", word, at)));
}

}  // namespace orrery
