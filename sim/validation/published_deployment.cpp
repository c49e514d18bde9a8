#include "sim/validation/published_deployment.hpp"

#include <algorithm>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"
#include "sim/validation/bench_limits.hpp"

namespace orrery {
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
    rule.allow_only({"title_contains", "engine", "version_starts", "model_contains", "weights",
                     "decode_tp", "deployment", "budget", "limits_of", "corrected", "source"});
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

// What is sent at a time, and how long each prompt is at most.
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

// What the benchmark that made the row lets the engine do at once.
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
  if (one.pools) {
    if (const auto corrected = rule->find("corrected")) {
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
  complete(&DeploymentRequest::block);
  complete(&DeploymentRequest::chunked);
  complete(&DeploymentRequest::mixed);
  return one;
}

}  // namespace orrery
