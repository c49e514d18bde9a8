#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/explorer/json_line.hpp"
#include "sim/explorer/warm_inputs.hpp"

namespace orrery {

/// Sends a part of a reply. `status`: of HTTP, the same in all parts of a reply.
using SendPart = std::function<void(int status, std::string_view bytes)>;
inline constexpr int http_ok = 200;

/// Refuses a state without model, system or GPUs, and prices of nothing (bad_input).
void require_inputs(const ExploredState& state);

/// What `orrery estimate` does of the same words. Errors: as it.
Estimate estimate_of(const ExploredState& state, WarmInputs& inputs);

}  // namespace orrery
