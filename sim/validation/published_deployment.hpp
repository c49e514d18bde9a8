#pragma once

#include <optional>

#include "sim/validation/serving_case.hpp"

namespace orrery {

/// What a benchmark lets an engine do at once where nobody says it.
struct BenchLimits {
  std::int64_t budget = 0, max_seqs = 0;  ///< As of Deployment.
};

/// Those of trtllm-bench for prompts of `input` tokens and answers of `output`: what it takes for
/// the cache's requests, 4,096 at most, in rough steps (tensorrt_llm/bench/build/tuning.py,
/// calc_engine_setting and finetune_setting; benchmark/utils/general.py, get_settings). Its
/// estimate of the memory is rough itself, and part of what the benchmark did: it counts two nvfp4
/// weights as one of half a byte (pull request 13498), keys and values of latent attention for each
/// head (pull request 16707), and knows no copies of attention. None for formats that it does not
/// tune.
std::optional<BenchLimits> trtllm_bench_limits(const ServingCase& one, std::int64_t input,
                                               std::int64_t output);

/// A collected case with what the first rule of workloads/publications/serving.json that holds of
/// it says of its deployment where the case says nothing: keys of `orrery serve` ("deployment"),
/// and tokens of an iteration as a benchmark sets them ("budget": the prompt's, those of as many
/// decodes as there are clients, and "beyond" them, in whole blocks, "at_most"; or
/// "limits_of": as trtllm-bench does (bench_limits.hpp)). Of pools it says
/// what counts whatever the case says ("corrected").
///
/// `entry`: the case in its collector's words.
/// Errors (bad_input): of the rules' file.
ServingCase as_published(ServingCase one, const JsonValue& entry);

}  // namespace orrery
