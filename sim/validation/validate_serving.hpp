#pragma once

#include "sim/validation/validate.hpp"

namespace orrery {

/// Predicts what was measured of engines. Static batches: "prefill_time_ms" of the whole batch's
/// prompts, and "decode_step_ms" halfway through the output. Of a deployment alone:
/// "kv_cache_tokens".
void compare_serving(const JsonValue& json, ValidationReport& report);

}  // namespace orrery
