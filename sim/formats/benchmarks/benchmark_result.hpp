#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// What a load generator measured of a server, in one run.
struct BenchmarkResult {
  std::string tool;     ///< "vLLM bench serve", "SGLang bench_serving", "AIPerf", ...
  std::string arrival;  ///< "closed", "poisson", "gamma", "constant" or "burst".
  std::int64_t concurrency = 0;
  double rate = 0.0;            ///< Requests a second; 0: none is said.
  double cv = 1.0;              ///< Of "gamma".
  std::int64_t requests = 0;    ///< That were answered.
  double isl = 0.0, osl = 0.0;  ///< Mean tokens of prompts and answers.
  /// Their least, where lengths scatter: uniform lengths of the same mean and deviation.
  std::optional<double> isl_low, osl_low;
  std::map<std::string, double> measured;  ///< As tests/validation/inference: "ttft_ms", ...
  /// What it says of the server, if it does: in the words of a case.
  std::optional<std::string> model, system, engine, weights, experts;
  std::map<std::string, std::int64_t> degrees;  ///< "tp", "ep", "dp".
  std::vector<std::string> notes;
};

/// Reads the result of vLLM's or SGLang's benchmark, of AIPerf or GenAI-Perf, of a stage of
/// inference-perf, or of InferenceX (one result or a list), told apart by their keys.
/// Errors (bad_input): none of these; no answered request; a figure that is none.
std::vector<BenchmarkResult> read_benchmark_results(const std::string& text,
                                                    const std::string& file);

/// Cases for `orrery validate` and `orrery serve --runs`: the results, on what `deployment`
/// (orrery.deployment/1) and `system` say was measured; what a result says of its server stands in
/// where they are absent. Errors (bad_input): neither says model, system, engine or GPUs.
std::string benchmark_cases(const std::vector<BenchmarkResult>& results, const std::string& file,
                            const std::optional<JsonValue>& deployment, const std::string& system);

}  // namespace orrery
