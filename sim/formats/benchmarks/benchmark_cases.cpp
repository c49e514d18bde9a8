#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/formats/benchmarks/benchmark_result.hpp"
#include "sim/serving/deployment_file.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// What clients did; lengths of a mean that is no whole number stay so.
Json workload_of(const BenchmarkResult& result) {
  Json json = {{"isl", result.isl}, {"osl", result.osl}};
  if (result.isl_low) json["isl_low"] = *result.isl_low;
  if (result.osl_low) json["osl_low"] = *result.osl_low;
  json["arrival"] = result.arrival;
  if (result.concurrency > 0) json["concurrency"] = result.concurrency;
  if (result.rate > 0.0) json["rate"] = result.rate;
  if (result.arrival == "gamma") json["cv"] = result.cv;
  if (result.requests > 0) json["requests"] = result.requests;
  return json;
}

[[noreturn]] void fail_missing(const std::string& file, const std::string& what) {
  fail_input({file, ""}, "does not say " + what,
             "give --plan DEPLOYMENT, as orrery import server writes one, and --system");
}

// What was served, in a case's words.
Json served(const BenchmarkResult& result, const std::string& file,
            const std::optional<JsonValue>& deployment, const std::string& system) {
  Json one = Json::object();
  Json keys = Json::object();
  std::int64_t gpus = 0;
  bool prefix_cache = true;
  if (deployment) {
    deployment_options_of(*deployment);  // Its errors.
    if (deployment->has("prefill"))
      deployment->fail("has pools, of which results cannot be cases", "give one without pools");
    const Json all = Json::parse(deployment->compact());
    for (const char* word : {"model", "engine", "system"})
      if (all.contains(word)) one[word] = all[word];
    if (one.contains("model") && one["model"].is_object()) one["model"] = deployment->place().file;
    if (all.contains("gpus")) gpus = deployment->at("gpus").integer(1, 1 << 20);
    prefix_cache = all.value("prefix_cache", true);
    for (const DeploymentKey& key : deployment_keys())
      if (all.contains(key.name)) keys[key.name] = all[key.name];
  } else {
    if (result.model) one["model"] = *result.model;
    if (result.engine) one["engine"] = *result.engine;
    if (result.system) one["system"] = *result.system;
    const auto degree = [&](const char* name) {
      const auto found = result.degrees.find(name);
      return found == result.degrees.end() ? std::int64_t{1} : found->second;
    };
    if (result.degrees.contains("tp")) {
      // dp of attention is over the ranks of tp.
      gpus = degree("tp");
      keys["tp"] = degree("tp") / degree("dp");
      if (degree("dp") > 1) keys["dp"] = degree("dp");
      if (degree("ep") > 1) keys["ep"] = degree("ep");
    }
    if (result.weights) keys["weights"] = *result.weights;
    if (result.experts) keys["experts"] = *result.experts;
  }
  if (!system.empty()) one["system"] = system;
  for (const char* word : {"model", "engine", "system"})
    if (!one.contains(word)) fail_missing(file, std::string{"which "} + word + " was measured");
  if (gpus == 0) fail_missing(file, "how many GPUs served");
  return {{"system", one["system"]}, {"gpus", gpus},
          {"model", one["model"]},   {"engine", one["engine"]},
          {"deployment", keys},      {"serving", {{"prefix_caching", prefix_cache}}}};
}

// Throughput a GPU as that of all.
Json measured_of(const BenchmarkResult& result) {
  Json json = Json::object();
  for (const auto& [quantity, value] : result.measured) json[quantity] = value;
  return json;
}

}  // namespace

std::string benchmark_cases(const std::vector<BenchmarkResult>& results, const std::string& file,
                            const std::optional<JsonValue>& deployment, const std::string& system) {
  std::string stem = file.substr(file.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const BenchmarkResult& result = results[i];
    Json one = {{"id", results.size() > 1 ? stem + "-" + std::to_string(i + 1) : stem},
                {"source", {{"title", "result of " + result.tool}, {"locator", file}}}};
    one.update(served(result, file, deployment, system));
    one["workload"] = workload_of(result);
    one["measured"] = measured_of(result);
    std::string notes;
    for (const std::string& note : result.notes) notes += (notes.empty() ? "" : "; ") + note;
    if (!notes.empty()) one["notes"] = notes;
    text += (i > 0 ? ",\n " : " ") + one.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text;
}

}  // namespace orrery
