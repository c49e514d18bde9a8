#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/cluster/economics.hpp"

namespace orrery {

/// The cost of an output token at the rate of all GPUs. Unknown if a price is.
struct TokenCost {
  Range usd_per_million;  ///< Rent of the GPUs.
  Range joules;           ///< Energy of the servers and the site.
};
inline TokenCost token_cost(double tokens_per_s, double gpus, const Economics& economics) {
  if (!(tokens_per_s > 0.0)) return {};
  const double gpu_seconds = gpus / tokens_per_s;
  return {economics.rent_usd_per_gpu_hour * (gpu_seconds / 3600.0 * 1e6),
          economics.server_watts_per_gpu * economics.pue * gpu_seconds};
}

/// Returns "$0.53 .. 1.47 a million output tokens, 0.58 .. 1.45 J an output token" and the end of
/// the line, without what is unknown.
std::string token_cost_text(const TokenCost& cost);
/// Keys "usd_per_million_output_tokens", "joules_per_output_token": "low" and "high", or null.
nlohmann::ordered_json token_cost_json(const TokenCost& cost);

}  // namespace orrery
