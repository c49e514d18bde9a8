#pragma once

#include <optional>

#include "sim/validation/serving_case.hpp"

namespace orrery {

/// Limits that a benchmark gives an engine by default.
struct BenchLimits {
  std::int64_t budget = 0, max_seqs = 0;  ///< Fields of Deployment.
};

/// The limits of trtllm-bench for prompts of `input` tokens and answers of `output`: enough for the
/// requests that fit into the cache, 4,096 at most, in rough steps
/// (tensorrt_llm/bench/build/tuning.py, calc_engine_setting and finetune_setting;
/// benchmark/utils/general.py, get_settings). Its estimate of the memory is rough itself, and part
/// of what the benchmark did: it counts two nvfp4 weights as one of half a byte (pull request
/// 13498), keys and values of latent attention for each head (pull request 16707), and ignores
/// attention data parallelism. nullopt for formats that it does not tune.
std::optional<BenchLimits> trtllm_bench_limits(const ServingCase& one, std::int64_t input,
                                               std::int64_t output);

/// Fills the unset parts of a collected case's deployment from the first matching rule of
/// workloads/publications/serving.json: keys of `orrery serve` ("deployment"), and tokens of an
/// iteration as a benchmark sets them ("budget": the prompt's, those of as many decodes as there
/// are clients, and "beyond" them, in whole blocks, "at_most"; or "limits_of": as trtllm-bench
/// does). Entries of pools override the case's ("corrected").
///
/// `entry`: the case in its collector's words. Errors (bad_input): those of the rules' file.
ServingCase as_published(ServingCase one, const JsonValue& entry);

}  // namespace orrery
