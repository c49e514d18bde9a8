#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// The longest prompt or answer that is read or drawn, in tokens: no model has such a context.
inline constexpr std::int64_t most_request_tokens = 1 << 24;

/// What a client asks of a model that is served: some tokens go in, some come out.
struct Request {
  Seconds arrival;  ///< When it is sent, since the first one; of a closed loop 0.
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;  ///< At least 1: the first one comes out of the prefill.
  /// Its part of RequestList::hashes.
  std::uint32_t first_hash = 0;
  std::uint32_t hashes = 0;
  std::uint32_t session = 0;  ///< Requests of one session go to one replica where a router asks.
};

/// Requests by their arrival.
struct RequestList {
  std::vector<Request> requests;
  /// What tells whether two prompts begin alike: one hash for each `hash_tokens` of a prompt, which
  /// stands for these tokens and all before them.
  std::vector<std::uint64_t> hashes;
  std::uint32_t hash_tokens = 0;  ///< 0: no prompt has hashes.
  std::int64_t failed = 0;        ///< Rows of a trace without an answer, which are left out.
  std::uint32_t clients = 0;      ///< A closed loop has some; 0: requests come at their own times.
  std::uint64_t seed = 1;         ///< The seed of routers that choose at random.
};

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
