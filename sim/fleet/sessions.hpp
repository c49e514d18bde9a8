#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// A turn of a session: a request that is sent when those before it are answered and the user, or
/// a tool, is done with their answers.
struct Turn {
  std::uint32_t request = 0;    ///< Of SessionTrace::list; one each.
  std::uint32_t waits_for = 0;  ///< Turns that must be answered before.
  std::uint32_t first_follower = 0, followers = 0;
  /// Tokens at the beginning of its prompt that the prompts before it in the session had, of whole
  /// blocks of hashes; and those that they and their answers had.
  std::uint32_t known = 0, known_with_answers = 0;
  bool by_sub_agent = false;
};

/// A turn that waits for another, by its number in the trace, and for so long after its answer.
struct Follower {
  std::uint32_t turn = 0;
  Seconds wait;
};

/// Consecutive turns of SessionTrace::turns, in the order in which they were recorded: a turn waits
/// for earlier ones alone.
struct Session {
  std::string name;
  std::uint32_t first_turn = 0, turns = 0;
};

/// Recorded sessions of agents or of people who chat: requests that depend on each other.
struct SessionTrace {
  /// Requests have no session yet.
  RequestList list;
  std::vector<Turn> turns;
  std::vector<Follower> followers;
  std::vector<Session> sessions;

  std::span<const Turn> turns_of(const Session& session) const {
    return std::span{turns}.subspan(session.first_turn, session.turns);
  }
  std::span<const Follower> followers_of(const Turn& turn) const {
    return std::span{followers}.subspan(turn.first_follower, turn.followers);
  }
};

/// A turn as a file says it.
struct RecordedTurn {
  std::uint32_t prompt_tokens = 1, output_tokens = 1;
  /// Below 2^32 if they count within the session (RequestList::hashes_of_sessions).
  std::vector<std::uint64_t> hashes;
  bool by_sub_agent = false;
  struct Before {
    std::uint32_t turn = 0;  ///< An earlier one, by its number in the session.
    Seconds wait;
  };
  std::vector<Before> before;  ///< None: it begins with the session.
};

/// Appends a session; `trace.list` says what hashes are. Where a turn's prompt continues the one
/// before, and so its answer, the answer stays in the cache like the prompt: engines keep the
/// blocks that they fill while they decode.
/// Errors (bad_input, at the turn's place): it waits for itself or for a later turn, or twice for
/// one; a hash of 2^32 or more.
void add_session(const std::string& name, std::span<const RecordedTurn> turns, const Place& at,
                 SessionTrace& trace);

/// Statistics from which sessions are drawn: lognormal laws by their median and the deviation of
/// the logarithm.
struct SessionProfile {
  struct Lognormal {
    double median = 1.0, sigma = 0.0;
  };
  std::string name;
  Lognormal turns;
  Lognormal first_context, growth, output;  ///< Tokens; contexts grow from one prompt to the next.
  Lognormal tool_wait, person_wait;         ///< Seconds from an answer to the next turn.
  double person_share = 0.0;                ///< Turns after which a person answers, not a tool.
  Seconds longest_wait;
  std::uint32_t shared_tokens = 0;  ///< System prompt and tools, with which all sessions begin.
  /// Share of turns after which a context is summarised, to this part of it.
  double compactions = 0.0, compacted = 1.0;
};
const std::vector<SessionProfile>& session_profiles();
/// The profile of this name; null: there is none.
const SessionProfile* session_profile(const std::string& name);

/// Draws sessions without sub-agents. One ends before the first turn with more than
/// `longest_context` tokens, prompt and answer.
SessionTrace draw_sessions(const SessionProfile& profile, std::uint32_t sessions,
                           std::int64_t longest_context, std::uint64_t seed);

/// Counts what sessions have in common: where hashes do not count within sessions, the beginning of
/// a session's first prompt that another session's has too is known like what the session had.
void count_common_beginnings(SessionTrace& trace);

/// The share of all prompts' tokens that a cache which forgets nothing holds, of prompts alone, as
/// benchmarks count it.
double ideal_hit_share(const SessionTrace& trace);
/// The same of requests without sessions, in their order.
double ideal_hit_share(const RequestList& list);

/// Cuts sessions before the first turn whose prompt and answer have more than `tokens`, with the
/// turns that wait for it. Returns the number of turns left out; sessions without a turn go.
std::int64_t cut_long_sessions(std::int64_t tokens, SessionTrace& trace);

/// The session's time if nothing but its own waits took time: the longest path through its turns.
Seconds waits_of(const SessionTrace& trace, const Session& session);

}  // namespace orrery
