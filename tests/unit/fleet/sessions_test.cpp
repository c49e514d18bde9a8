#include "sim/fleet/sessions.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::sessions_test {
namespace {

const Place place{"sessions", ""};

std::vector<std::uint64_t> blocks(std::uint64_t count, std::uint64_t first = 0) {
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < count; ++i) hashes.push_back(first + i);
  return hashes;
}

SessionTrace empty_trace(std::uint32_t block = 64) {
  SessionTrace trace;
  trace.list.hash_tokens = block;
  trace.list.hashes_of_sessions = true;
  return trace;
}

// A session that grows by whole blocks: H = 1 - (c + (K - 1) g) / (K c + g K (K - 1) / 2).
TEST(Sessions, IdealHitsOfAGrowingSessionInClosedForm) {
  for (const int turns : {1, 2, 7, 45})
    for (const std::uint64_t first : {1u, 12u, 400u})
      for (const std::uint64_t growth : {1u, 5u, 38u}) {
        SessionTrace trace = empty_trace();
        std::vector<RecordedTurn> of;
        for (int k = 0; k < turns; ++k) {
          RecordedTurn turn;
          const std::uint64_t held = first + static_cast<std::uint64_t>(k) * growth;
          turn.prompt_tokens = static_cast<std::uint32_t>(64 * held);
          turn.hashes = blocks(held);
          if (k > 0) turn.before = {{static_cast<std::uint32_t>(k - 1), Seconds{1.0}}};
          of.push_back(turn);
        }
        add_session("grows", of, place, trace);
        const double n = turns, c = static_cast<double>(first), g = static_cast<double>(growth);
        EXPECT_NEAR(ideal_hit_share(trace),
                    1.0 - (c + (n - 1.0) * g) / (n * c + 0.5 * g * n * (n - 1.0)), 1e-12);
        EXPECT_DOUBLE_EQ(waits_of(trace, trace.sessions[0]).si(), n - 1.0);
        // All prompts share the hashes of the longest.
        EXPECT_EQ(trace.list.hashes.size(), first + growth * static_cast<std::uint64_t>(turns - 1));
      }
}

// A prompt that goes on with the last one and its answer finds both; one that breaks off, neither.
TEST(Sessions, AnswersAreKnownToTheNextTurn) {
  SessionTrace trace = empty_trace();
  RecordedTurn first{640, 200, blocks(10), false, {}};
  RecordedTurn next{1280, 10, blocks(20), false, {{0, Seconds{}}}};
  RecordedTurn other{640, 10, blocks(10, 100), false, {{1, Seconds{}}}};
  add_session("s", std::vector{first, next, other}, place, trace);
  EXPECT_EQ(trace.turns[1].known, 640u);
  EXPECT_EQ(trace.turns[1].known_with_answers, 832u);  // 13 blocks of 840 tokens.
  EXPECT_EQ(trace.list.requests[0].kept_hashes, 13u);
  EXPECT_EQ(trace.turns[2].known, 0u);
  EXPECT_EQ(trace.list.requests[1].kept_hashes, 0u);
}

TEST(Sessions, LongTurnsGoWithAllThatWaitForThem) {
  SessionTrace trace = empty_trace();
  const auto turn = [](std::uint32_t prompt, std::vector<RecordedTurn::Before> before) {
    RecordedTurn of;
    of.prompt_tokens = prompt;
    of.before = std::move(before);
    return of;
  };
  // 0 -> 1 (long) -> 2, and 0 -> 3: a branch that stays.
  add_session("a",
              std::vector{turn(10, {}), turn(99, {{0, Seconds{1.0}}}),
                          turn(20, {{1, Seconds{1.0}}}), turn(30, {{0, Seconds{2.0}}})},
              place, trace);
  add_session("b", std::vector{turn(99, {}), turn(10, {{0, Seconds{}}})}, place, trace);
  EXPECT_EQ(cut_long_sessions(50, trace), 4);
  ASSERT_EQ(trace.sessions.size(), 1u);
  ASSERT_EQ(trace.turns.size(), 2u);
  ASSERT_EQ(trace.followers_of(trace.turns[0]).size(), 1u);
  EXPECT_EQ(trace.followers_of(trace.turns[0])[0].turn, 1u);
  EXPECT_EQ(trace.list.requests[trace.turns[1].request].prompt_tokens, 30u);
  EXPECT_DOUBLE_EQ(waits_of(trace, trace.sessions[0]).si(), 2.0);
}

TEST(Sessions, ATurnWaitsForEarlierOnesAlone) {
  for (const std::uint32_t before : {1u, 2u, 7u}) {
    SessionTrace trace = empty_trace();
    RecordedTurn turn{10, 1, {}, false, {{before, Seconds{}}}};
    const std::string message = error_text([&] {
      add_session("s", std::vector{RecordedTurn{}, turn, RecordedTurn{}}, place, trace);
    });
    EXPECT_NE(message.find("not before it"), std::string::npos) << message;
  }
  SessionTrace trace = empty_trace();
  RecordedTurn twice{10, 1, {}, false, {{0, Seconds{}}, {0, Seconds{}}}};
  EXPECT_NE(error_text([&] {
              add_session("s", std::vector{RecordedTurn{}, twice}, place, trace);
            }).find("twice"),
            std::string::npos);
  RecordedTurn large{10, 1, {std::uint64_t{1} << 32}, false, {}};
  EXPECT_NE(error_text([&] { add_session("s", std::vector{large}, place, trace); }).find("hash"),
            std::string::npos);
}

// Sessions of a profile have the statistics that it states: turns, first contexts and growth by
// their medians, the share of tokens that repeat; and the beginning that all have in common.
TEST(SessionProfiles, HaveTheirPublishedStatistics) {
  const SessionProfile& profile = *session_profile("claude-code");
  const SessionTrace trace = draw_sessions(profile, 2000, 260'000, 3);
  std::vector<double> first, prompts, outputs;
  for (const Session& session : trace.sessions) {
    first.push_back(trace.list.requests[trace.turns_of(session).front().request].prompt_tokens);
    for (const Turn& turn : trace.turns_of(session)) {
      prompts.push_back(trace.list.requests[turn.request].prompt_tokens);
      outputs.push_back(trace.list.requests[turn.request].output_tokens);
    }
  }
  const auto median_of = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  };
  // First contexts are at least the system prompt, and at most what a model holds.
  EXPECT_NEAR(median_of(first) / 20'506.0, 1.0, 0.06);
  EXPECT_NEAR(median_of(outputs) / 228.0, 1.0, 0.03);
  // Published of all prompts: a median of 104,644 tokens and a hit share of 0.964.
  EXPECT_NEAR(median_of(prompts) / 104'644.0, 1.0, 0.25);
  EXPECT_NEAR(ideal_hit_share(trace), 0.964, 0.02);
  // The same seed draws the same, another others.
  EXPECT_EQ(draw_sessions(profile, 20, 260'000, 3).list.hashes,
            draw_sessions(profile, 20, 260'000, 3).list.hashes);
  EXPECT_NE(draw_sessions(profile, 20, 260'000, 3).list.hashes,
            draw_sessions(profile, 20, 260'000, 4).list.hashes);
  const Request& one = trace.list.requests.front();
  const Request& other = trace.list.requests[trace.turns_of(trace.sessions[1]).front().request];
  const std::size_t shared = profile.shared_tokens / 64;
  for (std::size_t block = 0;
       block < std::min({shared, std::size_t{one.hashes}, std::size_t{other.hashes}}); ++block)
    EXPECT_EQ(trace.list.hashes[one.first_hash + block],
              trace.list.hashes[other.first_hash + block]);
  EXPECT_EQ(session_profile("chat"), nullptr);
  // What all begin with is known of each of them.
  for (const Session& session : trace.sessions)
    EXPECT_GE(trace.turns_of(session).front().known + 64, profile.shared_tokens);
}

}  // namespace
}  // namespace orrery::sessions_test
