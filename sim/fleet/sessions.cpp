#include "sim/fleet/sessions.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <unordered_set>

namespace orrery {
namespace {

// Hashes of a trace that a prompt had before.
class KnownHashes {
 public:
  // Leading ones that are known; notes all of them.
  std::size_t note(std::span<const std::uint64_t> hashes) {
    std::size_t known = 0;
    while (known < hashes.size() && seen_.contains(hashes[known])) ++known;
    seen_.insert(hashes.begin() + static_cast<std::ptrdiff_t>(known), hashes.end());
    return known;
  }

 private:
  std::unordered_set<std::uint64_t> seen_;
};

std::uint32_t known_tokens(std::size_t hashes, const RequestList& list, const Request& request) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(hashes * list.hash_tokens, request.prompt_tokens));
}

std::span<const std::uint64_t> hashes_of(const RequestList& list, const Request& request) {
  return std::span{list.hashes}.subspan(request.first_hash, request.hashes);
}

// Stores the hashes of a prompt. If it continues the previous prompt, both share their stored
// hashes, and those of this prompt cover the previous answer. Returns how many hashes cover the
// previous prompt with its answer; 0 if this prompt does not continue it.
std::size_t store_hashes(const std::vector<std::uint64_t>& hashes, bool is_first, RequestList& list,
                         Request& request) {
  request.hashes = static_cast<std::uint32_t>(hashes.size());
  if (!is_first) {
    Request& last = list.requests.back();
    const auto before = hashes_of(list, last);
    const bool at_end = last.first_hash + last.hashes == list.hashes.size();
    if (at_end && !before.empty() && before.size() <= hashes.size() &&
        std::equal(before.begin(), before.end(), hashes.begin())) {
      request.first_hash = last.first_hash;
      list.hashes.insert(list.hashes.end(),
                         hashes.begin() + static_cast<std::ptrdiff_t>(before.size()), hashes.end());
      const std::uint64_t context = std::uint64_t{last.prompt_tokens} + last.output_tokens;
      last.kept_hashes = static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(context / list.hash_tokens, last.hashes, hashes.size()));
      return last.kept_hashes;
    }
  }
  request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
  list.hashes.insert(list.hashes.end(), hashes.begin(), hashes.end());
  return 0;
}

}  // namespace

void add_session(const std::string& name, std::span<const RecordedTurn> turns, const Place& at,
                 SessionTrace& trace) {
  const auto first = static_cast<std::uint32_t>(trace.turns.size());
  RequestList& list = trace.list;
  KnownHashes seen;
  std::vector<std::vector<Follower>> followers(turns.size());
  for (std::uint32_t i = 0; i < turns.size(); ++i) {
    const RecordedTurn& from = turns[i];
    const Place here = at / std::to_string(i);
    Turn turn;
    turn.request = static_cast<std::uint32_t>(list.requests.size());
    turn.by_sub_agent = from.by_sub_agent;
    std::unordered_set<std::uint32_t> waits;
    for (const RecordedTurn::Before& before : from.before) {
      if (before.turn >= i || !waits.insert(before.turn).second)
        fail_input(here,
                   "waits for turn " + std::to_string(before.turn) + " of its session" +
                       (before.turn >= i ? ", which is not before it" : " twice"),
                   "order the turns as they were sent, and name each one once");
      followers[before.turn].push_back({first + i, before.wait});
      ++turn.waits_for;
    }
    Request request;
    request.prompt_tokens = from.prompt_tokens;
    request.output_tokens = from.output_tokens;
    for (const std::uint64_t hash : from.hashes)
      if (list.hashes_of_sessions && hash >> 32 != 0)
        fail_input(here,
                   "has the hash " + std::to_string(hash) +
                       ", which does not count within "
                       "a session",
                   "number the blocks of each session from 0 on");
    turn.known = known_tokens(seen.note(from.hashes), list, request);
    const std::size_t answered = store_hashes(from.hashes, i == 0, list, request);
    turn.known_with_answers = std::max(turn.known, known_tokens(answered, list, request));
    list.requests.push_back(request);
    trace.turns.push_back(turn);
  }
  for (std::uint32_t i = 0; i < turns.size(); ++i) {
    Turn& turn = trace.turns[first + i];
    turn.first_follower = static_cast<std::uint32_t>(trace.followers.size());
    turn.followers = static_cast<std::uint32_t>(followers[i].size());
    trace.followers.insert(trace.followers.end(), followers[i].begin(), followers[i].end());
  }
  trace.sessions.push_back({name, first, static_cast<std::uint32_t>(turns.size())});
}

void count_common_beginnings(SessionTrace& trace) {
  if (trace.list.hashes_of_sessions) return;
  std::unordered_map<std::uint64_t, std::uint32_t> sessions;  // With each hash, up to two.
  const auto first_hashes = [&](const Session& session) {
    return hashes_of(trace.list, trace.list.requests[trace.turns[session.first_turn].request]);
  };
  for (const Session& session : trace.sessions)
    for (const std::uint64_t hash : first_hashes(session)) ++sessions[hash];
  for (const Session& session : trace.sessions) {
    const auto hashes = first_hashes(session);
    std::size_t common = 0;
    while (common < hashes.size() && sessions[hashes[common]] > 1) ++common;
    Turn& turn = trace.turns[session.first_turn];
    turn.known =
        std::max(turn.known, known_tokens(common, trace.list, trace.list.requests[turn.request]));
    turn.known_with_answers = std::max(turn.known_with_answers, turn.known);
  }
}

double ideal_hit_share(const SessionTrace& trace) {
  double known = 0.0, all = 0.0;
  for (const Turn& turn : trace.turns) {
    known += turn.known;
    all += trace.list.requests[turn.request].prompt_tokens;
  }
  return all > 0.0 ? known / all : 0.0;
}

double ideal_hit_share(const RequestList& list) {
  KnownHashes seen;
  double known = 0.0, all = 0.0;
  for (const Request& request : list.requests) {
    known += known_tokens(seen.note(hashes_of(list, request)), list, request);
    all += request.prompt_tokens;
  }
  return all > 0.0 ? known / all : 0.0;
}

std::int64_t cut_long_sessions(std::int64_t tokens, SessionTrace& trace) {
  SessionTrace kept;
  kept.list.hashes = trace.list.hashes;
  kept.list.hash_tokens = trace.list.hash_tokens;
  kept.list.hashes_of_sessions = trace.list.hashes_of_sessions;
  std::int64_t left_out = 0;
  for (const Session& session : trace.sessions) {
    std::vector<bool> goes(session.turns);
    std::vector<std::uint32_t> number(session.turns);  // Of those that stay.
    const auto first = static_cast<std::uint32_t>(kept.turns.size());
    std::uint32_t stay = 0;
    for (std::uint32_t i = 0; i < session.turns; ++i) {
      const Turn& turn = trace.turns[session.first_turn + i];
      const Request& request = trace.list.requests[turn.request];
      goes[i] = goes[i] || std::int64_t{request.prompt_tokens} + request.output_tokens > tokens;
      if (goes[i])
        for (const Follower& next : trace.followers_of(turn))
          goes[next.turn - session.first_turn] = true;
      else
        number[i] = stay++;
    }
    left_out += session.turns - stay;
    if (stay == 0) continue;
    for (std::uint32_t i = 0; i < session.turns; ++i) {
      if (goes[i]) continue;
      Turn turn = trace.turns[session.first_turn + i];
      const auto followers = trace.followers_of(turn);
      kept.list.requests.push_back(trace.list.requests[turn.request]);
      turn.request = static_cast<std::uint32_t>(kept.list.requests.size() - 1);
      turn.first_follower = static_cast<std::uint32_t>(kept.followers.size());
      for (const Follower& next : followers)
        if (const std::uint32_t of = next.turn - session.first_turn; !goes[of])
          kept.followers.push_back({first + number[of], next.wait});
      turn.followers = static_cast<std::uint32_t>(kept.followers.size()) - turn.first_follower;
      kept.turns.push_back(turn);
    }
    kept.sessions.push_back({session.name, first, stay});
  }
  trace = std::move(kept);
  return left_out;
}

Seconds waits_of(const SessionTrace& trace, const Session& session) {
  std::vector<Seconds> begins(session.turns);
  Seconds longest;
  for (std::uint32_t i = 0; i < session.turns; ++i) {
    longest = std::max(longest, begins[i]);
    for (const Follower& next : trace.followers_of(trace.turns[session.first_turn + i])) {
      Seconds& of = begins[next.turn - session.first_turn];
      of = std::max(of, begins[i] + next.wait);
    }
  }
  return longest;
}

}  // namespace orrery
