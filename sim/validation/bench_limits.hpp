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

}  // namespace orrery
