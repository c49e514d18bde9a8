#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// The longest prompt or answer that is read or sampled, in tokens: no model has such a context.
inline constexpr std::int64_t most_request_tokens = 1 << 24;

/// Limits of a request (a service-level objective), and the share that must keep to them.
struct Slo {
  static constexpr Seconds any{1e18};

  Seconds ttft = any;  ///< Time to its first token.
  Seconds tpot = any;  ///< Mean time between its tokens.
  Seconds e2e = any;   ///< Time to its last token.
  double share = 0.99;

  bool met(Seconds ttft_of, Seconds tpot_of, Seconds e2e_of) const {
    return ttft_of <= ttft && tpot_of <= tpot && e2e_of <= e2e;
  }
};

/// A kind of requests. Of those that wait the ones with the highest priority begin first, whenever
/// they came; when the cache is full the lowest is preempted (vLLM's --scheduling-policy priority,
/// SGLang's --enable-priority-scheduling).
struct RequestClass {
  std::string name;
  int priority = 0;
  std::optional<Slo> slo;  ///< Its own limits; none: those of all.
};

/// A client's request to a served model: some tokens go in, some come out.
struct Request {
  Seconds arrival;  ///< Sending time, from that of the first; 0 in a closed loop.
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;  ///< The first one comes out of the prefill.
  /// Its part of RequestList::hashes.
  std::uint32_t first_hash = 0;
  std::uint32_t hashes = 0;
  /// Hashes from the first one on that cover its prompt and its answer, if another prompt goes on
  /// with both: the cache keeps the answer, too. Fewer than `hashes`: the answer is not kept.
  std::uint32_t kept_hashes = 0;
  static constexpr std::uint32_t no_session = 0xffffffff;
  /// Session routing sends a session to one replica; one without is a session of its own.
  std::uint32_t session = no_session;
  std::uint8_t of_class = 0;  ///< Of RequestList::classes, if there are any.
  /// How often its session was replayed before: nothing is in common with those.
  std::uint32_t round = 0;
};

/// Requests in the order of their arrival.
struct RequestList {
  std::vector<Request> requests;
  /// Hashes tell which prompts begin alike: one for each `hash_tokens` of a prompt, over these
  /// tokens and all before them.
  std::vector<std::uint64_t> hashes;
  std::uint32_t hash_tokens = 0;  ///< 0: no prompt has hashes.
  /// Hashes are below 2^32, and those of different sessions have nothing in common.
  bool hashes_of_sessions = false;
  std::int64_t failed = 0;    ///< Rows of a trace without an answer, which are left out.
  std::uint32_t clients = 0;  ///< A closed loop has some; 0: requests come at their own times.
  /// Requests that a client sends at a time: the next ones when all of them are answered.
  std::uint32_t together = 1;
  std::uint64_t seed = 1;               ///< The seed of routers that choose at random.
  std::vector<RequestClass> classes{};  ///< Empty: all are alike.

  /// What tells a request's hashes from equal ones of other sessions or rounds.
  std::uint64_t hash_offset(const Request& request) const {
    return hashes_of_sessions ? std::uint64_t{request.session} << 32
                              : request.round * 0x9e3779b97f4a7c15u;
  }
  int priority_of(const Request& request) const {
    return classes.empty() ? 0 : classes[request.of_class].priority;
  }
  /// The limits of a request, of which `usual` are those of all.
  const std::optional<Slo>& limits_of(const Request& request,
                                      const std::optional<Slo>& usual) const {
    return classes.empty() || !classes[request.of_class].slo ? usual
                                                             : classes[request.of_class].slo;
  }
};

/// Reads "ttft=2000,tpot=40@p90": milliseconds, and the share of requests that must meet all of
/// them (default 99 %). Errors (bad_input): another key, a time that is not positive, a share that
/// is no percentage.
Slo parse_slo(const std::string& text, const Place& at);
/// The same text.
std::string slo_text(const Slo& slo);

}  // namespace orrery
