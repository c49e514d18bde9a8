#pragma once

#include "sim/cluster/economics.hpp"

namespace orrery {

/// What a token of an answer costs while GPUs make so many a second. Unknown where a price is.
struct TokenCost {
  Range usd_per_million;  ///< Rent of the GPUs.
  Range joules;           ///< Of the servers and the site around them.
};
inline TokenCost token_cost(double tokens_per_s, double gpus, const Economics& economics) {
  if (!(tokens_per_s > 0.0)) return {};
  const double gpu_seconds = gpus / tokens_per_s;
  return {economics.rent_usd_per_gpu_hour * (gpu_seconds / 3600.0 * 1e6),
          economics.server_watts_per_gpu * economics.pue * gpu_seconds};
}

}  // namespace orrery
