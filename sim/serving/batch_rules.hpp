#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/serving/host_kv.hpp"
#include "sim/serving/scheduler_kind.hpp"

namespace orrery {

/// What a scheduler (schedulers.hpp) keeps to. The defaults of engines are in their files.
struct BatchRules {
  SchedulerKind scheduler = SchedulerKind::vllm;
  std::int64_t budget = 8192;         ///< Tokens of an iteration at most.
  std::int64_t most_requests = 1024;  ///< In a batch.
  bool chunked = true;                ///< A prompt may be computed in parts.
  bool mixed = false;                 ///< sglang: decodes go on beside prompts.
  /// An iteration is planned while the one before it runs, so that who comes meanwhile is in the
  /// one after it: vLLM's asynchronous scheduling, the overlapped schedulers of SGLang and
  /// TensorRT-LLM.
  bool plans_ahead = false;
  /// Tokens of a request that a decode step works on, for which it needs blocks, and how many it
  /// brings on average: more than one with speculative decoding (StepProgress).
  int step_tokens = 1;
  double progress = 1.0;
  /// trtllm's GUARANTEED_NO_EVICT: a request is admitted where its longest answer fits. Without it,
  /// MAX_UTILIZATION, as vllm does.
  bool reserves_answers = true;
  /// sglang counts on this share of the tokens that are still to come, at first; with every decode
  /// step it counts on less (python/sglang/srt/environ.py: SGLANG_INIT_NEW_TOKEN_RATIO 0.7,
  /// SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR 0.14, SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS 600).
  double answer_share = 0.7;
  double least_answer_share = 0.098;
  std::int64_t answer_share_steps = 600;
  /// It never counts on more of one request (schedule_policy.py: CLIP_MAX_NEW_TOKENS).
  std::int64_t most_answer = 4096;
  /// When tokens come back from the host's memory, and how long the link to it takes for one.
  HostKvLoading loading = HostKvLoading::before;
  Seconds load_token;
  int load_layers = 1;  ///< Of HostKvLoading::layers.
};

}  // namespace orrery
