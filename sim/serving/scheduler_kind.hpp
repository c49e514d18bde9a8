#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Whose scheduler decides what the next iteration computes (docs/REPLAY.md).
enum class SchedulerKind { vllm, sglang, trtllm, static_batch };
const std::vector<std::string>& scheduler_names();  ///< "vllm", "sglang", "trtllm", "static"

}  // namespace orrery
