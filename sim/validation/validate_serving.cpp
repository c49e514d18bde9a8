#include <algorithm>

#include "sim/core/progress.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/validation/serving_case.hpp"
#include "sim/validation/serving_workload.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

using Predicted = std::map<std::string, double>;

constexpr std::int64_t most_tokens = 1 << 30;
constexpr std::int64_t largest_batch = 1 << 14;

// Kernel models by GPU and engine. Their tables take longer to read than most cases to replay.
class KnownKernels {
 public:
  std::shared_ptr<const ServingKernels> of(const ServingCase& one, const ServingSetup& setup) {
    auto& known = known_[{one.system, one.engine}];
    if (!known) known = std::make_shared<const ServingKernels>(setup.system.gpu, setup.engine);
    return known;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ServingKernels>> known_;
};

bool is_static(const ServingCase& one) {
  return one.workload && one.workload->has("arrival") &&
         one.workload->at("arrival").text() == "static";
}

// One batch to its end: all prompts together, then steps over a context that grows by one each.
Predicted static_batch(const ServingCase& one, const IterationPrices& prices) {
  const std::int64_t batch = one.workload->at("batch").integer(1, largest_batch);
  const std::int64_t input = one.workload->at("isl").integer(1, most_tokens);
  const std::int64_t output = one.workload->at("osl").integer(1, most_tokens);
  Iteration prefill;
  prefill.chunks.assign(static_cast<std::size_t>(batch), {input, 0});
  prefill.heads = batch;
  Iteration decode;
  decode.decodes = decode.heads = batch;
  decode.context = batch * (input + output / 2);
  return {{"prefill_time_ms", prices.price(prefill).step.si() * 1e3},
          {"decode_step_ms", prices.price(decode).step.si() * 1e3}};
}

bool measures_clients(const ServingCase& one) {
  return std::any_of(one.measured.begin(), one.measured.end(), [](const auto& measured) {
    return client_quantities().contains(measured.first);
  });
}

// Compares the clients' latencies request by request where these are known.
void compare_requests(const ServingCase& one, const ServingRun& run, ValidationReport& report) {
  for (const auto& [quantity, errors] : request_errors(*one.workload, run)) {
    Comparison comparison{one.id, quantity, errors.measured_ms, errors.predicted_ms, {}};
    comparison.over_points = {errors.count, errors.mean_abs, errors.mean};
    report.comparisons.push_back(std::move(comparison));
  }
}

void note_predicted(const ServingCase& one, const Predicted& predicted, ValidationReport& report) {
  for (const auto& [quantity, value] : predicted) {
    const auto measured = one.measured.find(quantity);
    if (measured == one.measured.end()) continue;
    Comparison comparison{one.id, quantity, measured->second, value, {}};
    if (const auto figure = serving_figure(quantity))
      comparison.serving_error = serving_error(*figure);
    comparison.publication = one.publication;
    for (const auto& [peer, predictions] : one.peers)
      if (const auto found = predictions.find(quantity); found != predictions.end())
        comparison.peer_errors[peer] = found->second / measured->second - 1.0;
    report.comparisons.push_back(std::move(comparison));
  }
}

void compare_pools(const ServingCase& one, ValidationReport& report) {
  const PricedPools pools = pools_of(one);
  if (!one.workload || !one.workload->has("arrival")) return;
  const ServingLoad load = load_of_case(*one.workload, &*one.serving);
  need_space(pools, longest_of(load.list), one.place, one.place);
  const ServingRun run = serve_pools(pools, load);
  compare_requests(one, run, report);
  note_predicted(one, quantities_of(run), report);
}

void compare(const ServingCase& one, KnownKernels& kernels, ValidationReport& report) {
  if (one.pools) return compare_pools(one, report);
  const ServingSetup setup = setup_of(one);
  const PricedServing priced{setup, kernels.of(one, setup)};
  Predicted predicted{{"kv_cache_tokens", static_cast<double>(priced.kv.tokens)}};
  if (is_static(one)) predicted.merge(static_batch(one, priced.prices));
  if (one.workload && one.workload->has("arrival") && measures_clients(one)) {
    const ServingRun run = serve_requests(
        priced, load_of_case(*one.workload, one.serving ? &*one.serving : nullptr), one.place);
    predicted.merge(quantities_of(run));
    compare_requests(one, run, report);
  }
  note_predicted(one, predicted, report);
}

}  // namespace

void compare_serving(const JsonValue& json, ValidationReport& report) {
  const std::vector<JsonValue> elements = json.elements();
  KnownKernels kernels;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, elements.size()});
    const std::string id = elements[i].at("id").text();
    try {
      const std::size_t before = report.comparisons.size();
      compare(read_serving_case(elements[i]), kernels, report);
      const auto workload = elements[i].find("workload");
      const bool is_silent = workload && workload->is_object() && !workload->has("arrival");
      if (report.comparisons.size() == before)
        report.refusals.push_back(
            {id, std::string{"nothing that was measured can be predicted"} +
                     (is_silent ? ": workload has no arrival (closed, poisson, burst, ...)" : "")});
    } catch (const Error& error) {
      report.refusals.push_back({id, error.what()});
    }
  }
}

}  // namespace orrery
