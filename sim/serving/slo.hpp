#pragma once

#include <string>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// What a request must keep to (a service-level objective), and which share of requests must do so.
struct Slo {
  static constexpr Seconds any{1e18};

  Seconds ttft = any;  ///< To its first token.
  Seconds tpot = any;  ///< Between its tokens, on average.
  Seconds e2e = any;   ///< To its last token.
  double share = 0.99;

  bool met(Seconds ttft_of, Seconds tpot_of, Seconds e2e_of) const {
    return ttft_of <= ttft && tpot_of <= tpot && e2e_of <= e2e;
  }
};

/// "ttft=2000,tpot=40@p90": milliseconds, and the share of requests that must meet all of them
/// (99 % where it is not said). Errors (bad_input): another key, a time that is not positive, a
/// share that is no percentage.
Slo parse_slo(const std::string& text, const Place& at);

}  // namespace orrery
