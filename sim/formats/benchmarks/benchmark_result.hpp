#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// One run of a load generator against a server.
struct BenchmarkResult {
  std::string tool;     ///< "vLLM bench serve", "SGLang bench_serving", "AIPerf", ...
  std::string arrival;  ///< One of "closed", "poisson", "gamma", "constant" and "burst".
  std::int64_t concurrency = 0;
  double rate = 0.0;            ///< Requests a second; 0: not given.
  double cv = 1.0;              ///< Coefficient of variation of "gamma".
  std::int64_t requests = 0;    ///< Number of answered requests.
  double isl = 0.0, osl = 0.0;  ///< Mean tokens of prompts and outputs.
  /// Least lengths, if they scatter: uniform lengths of the same mean and deviation.
  std::optional<double> isl_low, osl_low;
  std::map<std::string, double> measured;  ///< Keys of tests/validation/inference: "ttft_ms", ...
  /// The server as far as the result describes it, in a case's terms.
  std::optional<std::string> model, system, engine, weights, experts;
  std::map<std::string, std::int64_t> degrees;  ///< "tp", "ep", "dp".
  std::vector<std::string> notes;
};

/// Reads the result of vLLM's or SGLang's benchmark, of AIPerf or GenAI-Perf, genai-bench,
/// trtllm-bench, a stage of inference-perf, or InferenceX (one result or a list), distinguished by
/// their keys, and what the first two and trtllm-bench print. Errors (bad_input): another format;
/// no answered request; a metric that is not a number.
std::vector<BenchmarkResult> read_benchmark_results(const std::string& text,
                                                    const std::string& file);

/// Cases for `orrery validate` and `orrery serve --runs`: the results, with the server given by
/// `deployment` (orrery.deployment/1) and `system`, or by the result itself where these are absent.
/// Errors (bad_input): model, system, engine or GPUs are given nowhere.
std::string benchmark_cases(const std::vector<BenchmarkResult>& results, const std::string& file,
                            const std::optional<JsonValue>& deployment, const std::string& system);

/// Reads the summaries that `vllm bench serve`, `sglang.bench_serving` and `trtllm-bench` print,
/// and returns each as the JSON that the program would write to a file, in the order of the text.
/// The arrival is taken from the lines or the command above a block, where the block does not say
/// it. Empty: the text has no such block. Errors (bad_input): a block without a concurrency or a
/// rate whose requests cannot have come all at once.
std::vector<JsonValue> printed_results(const std::string& text, const std::string& file);

}  // namespace orrery
