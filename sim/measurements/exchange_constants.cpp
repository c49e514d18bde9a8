#include "sim/measurements/exchange_constants.hpp"

#include <functional>
#include <set>

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"

namespace orrery {
namespace {

// Overwrites only the constants in `json`.
void parse(const JsonValue& json, ExchangeConstants& constants) {
  using C = ExchangeConstants;
  const auto time = made_of(real(0.0, 1e6), microseconds);
  const auto rate = made_of(real(1e-3, 1e12), [](double gb) { return BytesPerSecond{1e9 * gb}; });
  static const std::vector<Field<C>> fields{
      optional(field("base_us", &C::base, time)),
      optional(field("expert_us", &C::expert, time)),
      optional(field("token_us_per_kb", &C::token, time)),
      optional(field("network_base_us", &C::network_base, time)),
      optional(field("network_hop_us", &C::network_hop, time)),
      optional(field("scale_up_efficiency", &C::scale_up_efficiency, real(1e-3, 2.0))),
      optional(field("copy_gb_per_s", &C::copy_rate, rate)),
      optional(field("copy_us", &C::copy, time)),
      optional(field("token_gb_per_s", &C::token_rate, rate))};
  read_fields(json, fields, constants);
}

std::optional<ExchangeTable> without(const JsonValue& fit) {
  const auto json = fit.find("without");
  if (!json) return {};
  json->allow_only({"nodes", "hidden", "top_k", "experts"});
  const auto number = [&](const char* key) { return json->at(key).integer(1, 1 << 20); };
  return ExchangeTable{static_cast<int>(number("nodes")), number("hidden"), number("top_k"),
                       number("experts")};
}

JsonValue read_fits(const std::string& name) {
  const JsonValue json = JsonValue::read_file(find_in_catalog("calibration/data", name, {}));
  require_schema(json, "orrery.expert-exchange/1");
  return json;
}

// The fit of one step on this GPU to all tables, or to all but those of `left_out`.
std::optional<JsonValue> find_fit(const JsonValue& json, const std::string& kernel,
                                  const std::string& gpu, const std::string& step,
                                  const std::optional<ExchangeTable>& left_out) {
  for (const JsonValue& fit : json.at("fits").elements()) {
    if (fit.at("dispatcher").text() != kernel || fit.at("gpu").text() != gpu ||
        fit.at("step").text() != step)
      continue;
    fit.allow_only({"dispatcher", "gpu", "step", "without", "local", "remote"});
    if (without(fit) == left_out) return fit;
  }
  return {};
}

// The kernels of DeepEP differ between domains: low latency sends as it does inside, the other one
// forwards, and its copies have separate costs.
ExchangeConstants between_domains(const std::string& kernel, ExchangeConstants constants,
                                  const JsonValue& remote) {
  if (kernel != "deepep_low_latency") {
    constants.copy = Seconds{};
    constants.token_rate.reset();
  }
  parse(remote, constants);
  return constants;
}

// The first `measured` one of `gpu`, its proxy, that one's proxy, ..., or the default.
std::string measured_gpu(const JsonValue& json, std::string gpu,
                         const std::function<bool(const std::string&)>& measured) {
  const std::string fallback = json.at("default").sourced().text();
  std::set<std::string> tried;
  while (!measured(gpu)) {
    if (!tried.insert(gpu).second)
      json.at("fits").fail("has no fit of '" + gpu + "'", "add one, or another stand-in");
    const auto proxy = json.at("stand_ins").find(gpu);
    gpu = proxy ? proxy->sourced().text() : fallback;
  }
  return gpu;
}

ExchangeKernel read_kernel(const JsonValue& json, const std::optional<JsonValue>& partial,
                           const std::string& kernel, const std::string& gpu,
                           const std::optional<ExchangeTable>& left_out) {
  const auto fit_of = [&](const std::string& of, const char* step) {
    const auto rest = partial ? find_fit(*partial, kernel, of, step, left_out) : std::nullopt;
    return rest ? rest : find_fit(json, kernel, of, step, {});
  };

  const auto has = [&](const std::string& of, const char* place) {
    const auto fit = fit_of(of, "dispatch");
    return fit && fit->has(place);
  };

  ExchangeKernel found;
  found.measured = has(gpu, "local");
  found.measured_remote = has(gpu, "remote");
  const std::string local = measured_gpu(json, gpu, [&](auto& of) { return has(of, "local"); });
  const std::string remote = measured_gpu(json, gpu, [&](auto& of) { return has(of, "remote"); });
  const auto step = [&](const char* name) {
    const auto inside = fit_of(local, name);
    const auto outside = fit_of(remote, name);
    if (!inside || !outside) json.at("fits").fail("lacks a " + std::string{name}, "add it");
    ExchangeKernel::Step constants;
    parse(inside->at("local"), constants.local);
    constants.remote = between_domains(kernel, constants.local, outside->at("remote"));
    return constants;
  };
  found.dispatch = step("dispatch");
  found.combine = step("combine");
  return found;
}

}  // namespace

ExchangeKernels read_exchange_kernels(const std::string& gpu,
                                      const std::optional<ExchangeTable>& left_out) {
  const JsonValue json = read_fits("expert_exchange");
  json.allow_only({"schema", "source", "stand_ins", "default", "fits"});
  std::optional<JsonValue> partial;
  if (left_out) partial = read_fits("expert_exchange_left_out");
  const auto read = [&](const char* kernel) {
    return read_kernel(json, partial, kernel, gpu, left_out);
  };
  return {read("deepep"), read("deepep_low_latency"), read("hybridep")};
}

}  // namespace orrery
