#include <algorithm>
#include <cmath>

#include "sim/core/random.hpp"
#include "sim/fleet/sessions.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t profile_stream = 31;
constexpr std::uint32_t block_tokens = 64;
constexpr double most_turns_of_session = 500.0;

double drawn(Random& random, const SessionProfile::Lognormal& law) {
  return portable_exp(portable_log(law.median) + law.sigma * random.normal());
}

}  // namespace

const std::vector<SessionProfile>& session_profiles() {
  // claude-code: kv-cache-tester (github.com/callanjfox/kv-cache-tester, 94f6046d), quartiles of
  // 710 sessions for the turns and their mean growth, else medians and 90th percentiles counted on
  // 192 of them without sub-agents; waits are cut at the 99th percentile of people's. codex:
  // GPT-5.4 on SWE-bench Pro, 610 sessions (vLLM blog, 2026-05-06): the median of turns, first
  // contexts, mean growth, the ratio of prompts to answers, waits p50 and p99; turns are as spread
  // as makes the longest context the published 180,000 tokens, other spreads are claude-code's.
  static const std::vector<SessionProfile> all{{.name = "claude-code",
                                                .turns = {45.0, 1.225},
                                                .first_context = {20'506.0, 1.34},
                                                .growth = {1'055.0, 1.279},
                                                .output = {228.0, 1.055},
                                                .tool_wait = {9.0, 1.543},
                                                .person_wait = {133.0, 2.22},
                                                .person_share = 0.147,
                                                .longest_wait = Seconds{6600.0},
                                                .shared_tokens = 13'000,
                                                .compactions = 0.0053,
                                                .compacted = 0.33},
                                               {.name = "codex",
                                                .turns = {33.0, 0.28},
                                                .first_context = {12'000.0, 0.3},
                                                .growth = {989.0, 1.279},
                                                .output = {198.0, 1.055},
                                                .tool_wait = {5.2, 1.183},
                                                .person_wait = {5.2, 1.183},
                                                .person_share = 0.0,
                                                .longest_wait = Seconds{81.4},
                                                .shared_tokens = 0,
                                                .compactions = 0.0,
                                                .compacted = 1.0}};
  return all;
}

const SessionProfile* session_profile(const std::string& name) {
  for (const SessionProfile& profile : session_profiles())
    if (profile.name == name) return &profile;
  return nullptr;
}

SessionTrace draw_sessions(const SessionProfile& profile, std::uint32_t sessions,
                           std::int64_t longest_context, std::uint64_t seed) {
  SessionTrace trace;
  trace.list.hash_tokens = block_tokens;
  Random random{seed, profile_stream};
  for (std::uint32_t s = 0; s < sessions; ++s) {
    const double wanted = std::clamp(drawn(random, profile.turns), 1.0, most_turns_of_session);
    double context = std::max<double>(profile.shared_tokens + block_tokens,
                                      drawn(random, profile.first_context));
    std::vector<RecordedTurn> turns;
    // Blocks of the shared beginning have the same names in all sessions, others the session's and
    // the number of its compactions.
    std::uint64_t compactions = 0;
    const auto shared = static_cast<std::uint64_t>(profile.shared_tokens / block_tokens);
    Seconds wait;
    while (static_cast<double>(turns.size()) < wanted) {
      RecordedTurn turn;
      turn.prompt_tokens = static_cast<std::uint32_t>(std::min(context, 1e7));
      turn.output_tokens =
          static_cast<std::uint32_t>(std::clamp(drawn(random, profile.output), 1.0, 1e5));
      if (std::int64_t{turn.prompt_tokens} + turn.output_tokens > longest_context) break;
      for (std::uint64_t block = 0; block < turn.prompt_tokens / block_tokens; ++block)
        turn.hashes.push_back(
            block < shared ? block : (std::uint64_t{s} + 1) << 40 | compactions << 24 | block);
      if (!turns.empty())
        turn.before.push_back({static_cast<std::uint32_t>(turns.size() - 1), wait});
      turns.push_back(std::move(turn));
      const bool by_person = random.unit() < profile.person_share;
      wait = std::min(profile.longest_wait,
                      Seconds{drawn(random, by_person ? profile.person_wait : profile.tool_wait)});
      context += drawn(random, profile.growth);
      if (random.unit() < profile.compactions) {
        context =
            std::max<double>(profile.shared_tokens + block_tokens, profile.compacted * context);
        ++compactions;
      }
    }
    if (!turns.empty())
      add_session(profile.name + "-" + std::to_string(s), turns, {profile.name, ""}, trace);
  }
  count_common_beginnings(trace);
  return trace;
}

}  // namespace orrery
