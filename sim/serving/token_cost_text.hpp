#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/serving/token_cost.hpp"

namespace orrery {

/// "$0.53 .. 1.47 a million output tokens, 0.58 .. 1.45 J an output token" and the end of the line;
/// nothing of what is not known.
std::string token_cost_text(const TokenCost& cost);
/// "usd_per_million_output_tokens" and "joules_per_output_token", each "low" and "high" or null.
nlohmann::ordered_json token_cost_json(const TokenCost& cost);

}  // namespace orrery
