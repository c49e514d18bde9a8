#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// What `vllm bench serve`, `sglang.bench_serving` and `trtllm-bench` print at their end, as the
/// JSON that they would write to a file: one for each block of the text, in its order. The arrival
/// is taken from the lines or the command above a block, where the block does not say it. Empty:
/// the text has no such block. Errors (bad_input): a block without a concurrency or a rate whose
/// requests cannot have come all at once.
std::vector<JsonValue> printed_results(const std::string& text, const std::string& file);

}  // namespace orrery
