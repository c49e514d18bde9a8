#pragma once

#include "sim/validation/serving_case.hpp"

namespace orrery {

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
