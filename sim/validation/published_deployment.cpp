#include "sim/validation/published_deployment.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

constexpr double most_bench_requests = 4096.0, most_bench_tokens = 32768.0;
constexpr double usual_share = 0.9;  // --kv_cache_free_gpu_mem_fraction.

double in_steps_of(double step, double value) { return step * std::ceil(value / step); }

// Bytes of a number in a checkpoint, as it takes them: without scales.
double bytes_of(Dtype format) { return facts(format).bits / 8.0; }

// Numbers in a checkpoint: below 8 bits several weights are one, and each block has a scale.
double numbers(const Model& model, Dtype format) {
  const ParameterCount all = count_parameters(model);
  const auto whole = static_cast<double>(all.embedding + all.head + all.final_norm);
  const double layers = static_cast<double>(all.total) - whole;
  const NumberFormat& of = facts(format);
  return whole + layers * (of.bits < 8.0 ? of.bits / 8.0 + 1.0 / of.scales.elements : 1.0);
}

}  // namespace

std::optional<BenchLimits> trtllm_bench_limits(const ServingCase& one, std::int64_t input,
                                               std::int64_t output) {
  const DeploymentRequest& plan = one.deployment;
  const Model& model = one.model;
  const Dtype weights = plan.weights.value_or(Dtype::bf16);
  const Dtype format = model.experts ? plan.experts.value_or(weights) : weights;
  if (facts(format).weight_only) return std::nullopt;
  const int tp = plan.tp.value_or(1) * plan.dp.value_or(1), pp = plan.pp.value_or(1);
  const auto heads = static_cast<double>(std::max<std::int64_t>(tp, model.kv_heads));
  const auto width =
      static_cast<double>(model.latent ? model.hidden / model.heads : model.head_dim);
  const double a_token =
      2.0 * model.layers * heads * width * bytes_of(plan.kv.value_or(Dtype::bf16));
  const double memory = read_system(one.system, one.place / "system").gpu.memory.si();
  const double left = memory * tp * pp - numbers(model, format) * bytes_of(format);
  const auto in = static_cast<double>(input), out = static_cast<double>(output);
  const double cached =
      std::max(1.0, plan.kv_share.value_or(usual_share) * left / (a_token * (in + out)));
  const double requests = std::min(cached, most_bench_requests) / pp;
  const double tokens = std::min(requests * (1.0 + in / out), most_bench_tokens);

  const double most = requests < 256    ? std::max(64.0, in_steps_of(32, requests))
                      : requests < 1024 ? in_steps_of(128, requests)
                                        : in_steps_of(256, requests);
  const double budget = tokens < 4096   ? std::max(2048.0, in_steps_of(256, tokens))
                        : tokens < 8192 ? in_steps_of(512, tokens)
                                        : in_steps_of(1024, tokens);
  // Prompts are not cut, so that the longest one must fit.
  return BenchLimits{std::llround(std::max(budget, in + most)), std::llround(most)};
}

namespace {

constexpr std::int64_t most_engine_tokens = 1 << 30;

std::string named(const JsonValue& object, const char* key) {
  const auto found = object.find(key);
  return found && found->is_string() ? found->text() : std::string{};
}

std::optional<JsonValue> rule_of(const ServingCase& one, const JsonValue& entry) {
  const JsonValue table =
      JsonValue::read_file(find_in_catalog("workloads/publications", "serving", {}));
  require_schema(table, "orrery.serving_publications/1");
  const JsonValue deployment = entry.at("deployment");
  for (const JsonValue& rule : table.at("rules").elements()) {
    rule.allow_only({"title_contains", "engine", "version_starts", "model_contains",
                     "system_contains", "weights", "decode_tp", "deployment", "budget", "limits_of",
                     "corrected", "source"});
    const auto holds = [&](const char* key, auto test) {
      const auto wanted = rule.find(key);
      return !wanted || test(wanted->text());
    };
    const std::string title = named(entry.at("source"), "title");
    const std::string version = named(deployment, "engine_version");
    if (holds("title_contains",
              [&](const std::string& part) { return title.find(part) != std::string::npos; }) &&
        holds("engine",
              [&](const std::string& name) { return name == named(deployment, "engine"); }) &&
        holds("version_starts",
              [&](const std::string& part) { return version.starts_with(part); }) &&
        holds("model_contains",
              [&](const std::string& part) {
                return named(entry.at("model"), "name").find(part) != std::string::npos;
              }) &&
        holds("system_contains",
              [&](const std::string& part) {
                return named(entry, "system").find(part) != std::string::npos;
              }) &&
        (!rule.has("decode_tp") ||
         (one.pools &&
          one.pools->decode.tp == rule.at("decode_tp").integer(1, most_engine_tokens))) &&
        holds("weights", [&](const std::string& format) {
          return format == named(deployment, "weight_dtype");
        }))
      return rule;
  }
  return std::nullopt;
}

// The token budget of an iteration by a rule, if prompt length and concurrency are known.
std::optional<std::int64_t> budget_of(const JsonValue& rule, const JsonValue& workload) {
  const auto budget = rule.find("budget");
  if (!budget || !workload.has("concurrency") || !workload.has("isl")) return std::nullopt;
  budget->allow_only({"beyond", "block", "at_most"});
  const auto whole = [&](const JsonValue& object, const char* key) {
    return object.at(key).integer(1, most_engine_tokens);
  };
  const std::int64_t tokens =
      whole(workload, "isl") + whole(workload, "concurrency") + whole(*budget, "beyond");
  const std::int64_t block = budget->has("block") ? whole(*budget, "block") : 1;
  const std::int64_t most = budget->has("at_most") ? whole(*budget, "at_most") : most_engine_tokens;
  return std::min(most, (tokens + block - 1) / block * block);
}

// The limits that the row's benchmark sets.
std::optional<BenchLimits> limits_of(const JsonValue& rule, const ServingCase& one) {
  const JsonValue& workload = *one.workload;
  if (!rule.has("limits_of") || !workload.has("isl") || !workload.has("osl")) return std::nullopt;
  choice<std::size_t>(rule.at("limits_of"), {"trtllm-bench"});
  return trtllm_bench_limits(one, workload.at("isl").integer(1, most_engine_tokens),
                             workload.at("osl").integer(1, most_engine_tokens));
}

}  // namespace

ServingCase as_published(ServingCase one, const JsonValue& entry) {
  if (!one.workload || !entry.has("source")) return one;
  const auto rule = rule_of(one, entry);
  if (!rule) return one;
  const auto corrected = rule->find("corrected");
  const bool of_pools = corrected && (corrected->has("prefill") || corrected->has("decode"));
  if (corrected && !of_pools && !one.pools) read_deployment(one.deployment, *corrected);
  if (one.pools) {
    if (of_pools) {
      corrected->allow_only({"prefill", "decode"});
      read_deployment(one.pools->prefill, corrected->at("prefill"));
      read_deployment(one.pools->decode, corrected->at("decode"));
    }
    return one;
  }
  DeploymentRequest completed;
  if (const auto keys = rule->find("deployment")) read_deployment(completed, *keys);
  completed.budget = budget_of(*rule, *one.workload);
  if (const auto limits = limits_of(*rule, one)) {
    completed.budget = limits->budget;
    completed.max_seqs = limits->max_seqs;
  }
  const auto complete = [&](auto member) {
    if (!(one.deployment.*member)) one.deployment.*member = completed.*member;
  };
  complete(&DeploymentRequest::kv);
  complete(&DeploymentRequest::kv_share);
  complete(&DeploymentRequest::budget);
  complete(&DeploymentRequest::max_seqs);
  complete(&DeploymentRequest::graph_sizes);
  complete(&DeploymentRequest::block);
  complete(&DeploymentRequest::chunked);
  complete(&DeploymentRequest::mixed);
  return one;
}

}  // namespace orrery
