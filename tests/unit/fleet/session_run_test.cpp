#include "sim/fleet/session_run.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::session_run_test {
namespace {

const Place place{"sessions", ""};
constexpr std::uint32_t block = 64;

// Sessions that grow by `growth` blocks a turn, with waits of 2 s; each third turn starts two
// sub-agents of two turns for which the next turn waits.
SessionTrace agents(int sessions, std::uint32_t turns, std::uint64_t first, std::uint64_t growth,
                    bool sub_agents = true) {
  SessionTrace trace;
  trace.list.hash_tokens = block;
  trace.list.hashes_of_sessions = true;
  for (int s = 0; s < sessions; ++s) {
    std::vector<RecordedTurn> of;
    std::vector<RecordedTurn::Before> waits;
    for (std::uint32_t k = 0; k < turns; ++k) {
      const std::uint64_t held = first + k * growth + static_cast<std::uint64_t>(s % 3);
      RecordedTurn turn;
      turn.prompt_tokens = static_cast<std::uint32_t>(block * held) + 1;
      turn.output_tokens = 20 + 7 * static_cast<std::uint32_t>(s % 4);
      for (std::uint64_t i = 0; i < held; ++i) turn.hashes.push_back(i);
      turn.before = waits;
      waits = {{static_cast<std::uint32_t>(of.size()), Seconds{2.0}}};
      of.push_back(turn);
      if (!sub_agents || k % 3 != 2) continue;
      const std::uint32_t parent = waits[0].turn;
      for (std::uint64_t agent = 0; agent < 2; ++agent) {
        RecordedTurn one;
        one.by_sub_agent = true;
        one.prompt_tokens = 5 * block + 1;
        one.output_tokens = 11;
        for (std::uint64_t i = 0; i < 5; ++i) one.hashes.push_back(100'000 * (k + 1) + i);
        one.before = {{parent, Seconds{0.5}}};
        of.push_back(one);
        one.before = {{static_cast<std::uint32_t>(of.size() - 1), Seconds{0.25}}};
        of.push_back(one);
        waits.push_back({static_cast<std::uint32_t>(of.size() - 1), Seconds{0.1}});
      }
    }
    add_session("s" + std::to_string(s), of, place, trace);
  }
  return trace;
}

ReplayShape replicas(std::uint32_t number, std::int64_t kv = 400'000,
                     Routing routing = Routing::session) {
  ReplayShape shape = one_replica();
  shape.replicas = number;
  shape.replica.kv.tokens = kv;
  shape.replica.kv.keeps_prefixes = true;
  shape.replica.client = Seconds{0.012};
  shape.replica.replay.routing = routing;
  return shape;
}

SessionRun run_of(const SessionLoad& load, const ReplayShape& shape) {
  SessionRun run;
  run.setup.deployment.replicas = static_cast<int>(shape.replicas);
  StepTimes times{affine_costs()};
  replay_sessions(load, shape, times, run);
  return run;
}

SessionLoad lanes(std::uint32_t number, SessionTrace trace, double seconds = 400.0) {
  SessionLoad load;
  load.trace = std::move(trace);
  load.lanes = number;
  load.duration = Seconds{seconds};
  return load;
}

// One lane, one session without sub-agents: its time is the sum of its answers' and its waits.
TEST(SessionRun, OneLaneTakesItsClosedForm) {
  for (const double think : {0.0, 1.0, 3.0}) {
    SessionLoad load = lanes(1, agents(1, 6, 10, 4, false), 1e4);
    load.think = think;
    const SessionRun run = run_of(load, replicas(1));
    const StepCosts costs = affine_costs();
    double expected = 0.0;
    for (std::uint32_t k = 0; k < 6; ++k) {
      const double prompt = block * (10.0 + 4.0 * k) + 1.0;
      // Blocks of 16 tokens, of prompts of nodes of 64 alone: the answers of 20 tokens fill none.
      const double known = k == 0 ? 0.0 : block * (10.0 + 4.0 * (k - 1));
      const double fresh = prompt - known;
      expected += 0.012 + costs.dense(fresh).si() + costs.head(1).si() +
                  costs.prefill_attention(fresh, known).si();
      for (int step = 0; step < 19; ++step)
        expected += costs.dense(1).si() + costs.head(1).si() +
                    costs.decode_attention(1, prompt + step).si();
    }
    EXPECT_NEAR(run.session_time.least().si(), expected + 5.0 * 2.0 * think, 1e-6);
    EXPECT_NEAR(run.session_time.most().si(), expected + 5.0 * 2.0 * think, 1e-6);
    EXPECT_GT(run.session_time.count(), 10u);  // It began again and again.
  }
}

// No turn is sent before all that it waits for are answered, and each exactly then.
TEST(SessionRun, TurnsWaitForTheOnesBeforeThem) {
  for (const Routing routing : {Routing::session, Routing::kv, Routing::round_robin}) {
    const SessionLoad load = lanes(5, agents(7, 9, 20, 6));
    const SessionRun run = run_of(load, replicas(3, 400'000, routing));
    std::map<std::pair<std::uint32_t, std::uint32_t>, RequestTimes> of;  // By instance and turn.
    for (const RequestTimes& times : run.times)
      of[{run.origins[times.request].instance, run.origins[times.request].turn}] = times;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Seconds> due;
    for (const auto& [key, times] : of)
      for (const Follower& next : load.trace.followers_of(load.trace.turns[key.second])) {
        Seconds& at = due[{key.first, next.turn}];
        at = std::max(at, times.arrival + times.e2e + next.wait);
      }
    std::size_t checked = 0;
    for (const auto& [key, times] : of)
      if (load.trace.turns[key.second].waits_for > 0) {
        EXPECT_NEAR(times.arrival.si(), due[key].si(), 1e-9);
        ++checked;
      }
    EXPECT_GT(checked, 100u);
  }
}

// Lanes are a closed population: at each moment each has one session, so that the sessions' times,
// cut at the end, add up to lanes times the run (Little's law over sessions).
TEST(SessionRun, EachLaneAlwaysHasOneSession) {
  const SessionLoad load = lanes(6, agents(5, 7, 20, 6), 300.0);
  RequestList sent;
  sent.hashes = load.trace.list.hashes;
  sent.hash_tokens = block;
  sent.hashes_of_sessions = true;
  const ReplayShape shape = replicas(2);
  StepTimes times{affine_costs()};
  SessionSource source{load, shape.replica.client, sent};
  Fleet fleet{sent, shape.replica, 2, times, RequestRouter{Routing::session, 2, 1}};
  fleet.run(source, [](const Replica&) {});
  std::map<std::uint32_t, Seconds> until;
  for (const SessionSource::Instance& of : source.instances()) {
    EXPECT_EQ(of.begun, until[of.lane]);
    until[of.lane] = of.ended;
  }
  EXPECT_EQ(until.size(), 6u);
  std::int64_t arrived = 0, finished = 0;
  for (const Replica& replica : fleet.replicas()) {
    arrived += replica.counts().totals.arrived;
    finished += replica.counts().totals.finished;
  }
  EXPECT_EQ(arrived, finished);
  const auto is_sent = [](const SessionSource::Origin& origin) { return origin.is_sent; };
  EXPECT_EQ(arrived, std::count_if(source.origins().begin(), source.origins().end(), is_sent));
}

// With room for all, sessions that keep their replica find all that they and their answers left,
// but for the blocks of 16 that are computed again at the end of a prompt; elsewhere they find
// less.
TEST(SessionRun, ReachedHitsAreThoseOfACacheThatForgetsNothing) {
  const SessionLoad load = lanes(4, agents(6, 9, 20, 6));
  const SessionRun run = run_of(load, replicas(2, 4'000'000));
  ASSERT_GT(run.counts.totals.finished, 50);
  EXPECT_LE(run.hit_share(), run.bound_of_hits());
  EXPECT_GT(run.hit_share(), run.bound_of_hits() - 1e-3);
  EXPECT_GE(run.bound_of_hits(), run.ideal_hit_share());
  const SessionRun turns = run_of(load, replicas(2, 4'000'000, Routing::round_robin));
  EXPECT_LT(turns.hit_share(), run.hit_share() - 0.05);
}

// More memory never lowers hits, and where live contexts fill it they fall off a cliff.
TEST(SessionRun, HitsFallWhereLiveContextsFillTheCache) {
  SessionLoad load = lanes(8, agents(8, 12, 40, 4, false), 600.0);
  load.longest_wait = Seconds{0.2};
  double before = 0.0;
  SessionRun run;
  for (const std::int64_t kv : {8'000, 16'000, 32'000, 64'000}) {
    run = run_of(load, replicas(1, kv));
    EXPECT_GE(run.hit_share(), before - 0.01);
    EXPECT_LT(run.hit_share(), kv == 8'000 ? 0.5 : 1.0);
    before = run.hit_share();
  }
  EXPECT_NEAR(run.hit_share(), run.bound_of_hits(), 1e-3);
}

// A new session goes where the fewest tokens are, and stays there; requests without a session are
// spread like those of least-tokens.
TEST(SessionRun, SessionsAreSpreadByLoadAndStay) {
  const SessionLoad load = lanes(40, agents(40, 5, 20, 6), 100.0);
  const SessionRun run = run_of(load, replicas(4));
  std::map<std::uint32_t, std::set<std::uint32_t>> homes;
  for (const RequestTimes& times : run.times)
    homes[run.origins[times.request].instance].insert(run.replica_of[times.request]);
  std::map<std::uint32_t, int> sessions;
  for (const auto& [session, at] : homes) {
    ASSERT_EQ(at.size(), 1u);
    if (session < 40) ++sessions[*at.begin()];
  }
  for (const auto& [replica, count] : sessions) EXPECT_EQ(count, 10) << replica;
  EXPECT_LT(run.imbalance(), 1.15);

  RequestList list = equal_requests(64, 1000, 50);
  ReplayShape shape = replicas(8);
  const auto of = [&](Routing routing) {
    shape.replica.replay.routing = routing;
    return replay_requests(list, shape, affine_costs()).counts;
  };
  EXPECT_EQ(of(Routing::session).e2e.most(), of(Routing::least_tokens).e2e.most());
}

// The clock starts when each lane has its warm-up behind it; only later turns count.
TEST(SessionRun, WarmUpDoesNotCount) {
  SessionLoad load = lanes(3, agents(5, 9, 20, 6), 200.0);
  const SessionRun cold = run_of(load, replicas(1));
  load.warm_turns = 4;
  load.start_low = 0.25;
  load.start_high = 0.75;
  const SessionRun warm = run_of(load, replicas(1));
  EXPECT_DOUBLE_EQ(warm.span.si(), 200.0);
  EXPECT_GE(warm.sent - warm.counts.totals.finished, 12);
  EXPECT_EQ(cold.sent, cold.counts.totals.finished);
  EXPECT_GT(warm.hit_share(), cold.hit_share());
}

// Twice the replicas, lanes and sessions: the same a GPU.
TEST(SessionRun, TwiceTheFleetServesTwiceTheLanes) {
  const SessionRun one = run_of(lanes(32, agents(64, 9, 20, 6), 1500.0), replicas(4));
  const SessionRun two = run_of(lanes(64, agents(64, 9, 20, 6), 1500.0), replicas(8));
  EXPECT_NEAR(two.turns_per_s() / one.turns_per_s(), 2.0, 0.02);
  EXPECT_NEAR(two.counts.ttft.percentile(0.5) / one.counts.ttft.percentile(0.5), 1.0, 0.05);
}

// Sessions that begin at a rate: as many as were drawn, each from its first turn.
TEST(SessionRun, OpenArrivalsBeginAtTheirRate) {
  SessionLoad load = lanes(0, agents(5, 5, 20, 6), 2000.0);
  load.rate = 0.2;
  const SessionRun run = run_of(load, replicas(4));
  EXPECT_NEAR(static_cast<double>(run.sessions_begun), 400.0, 3.0 * 20.0);
  EXPECT_GT(run.session_time.count(), 300u);
}

// Mooncake's run with a store (kvcache-ai/Mooncake, SGLang with HiCache and SSD): 20 clients whose
// prompts grow by 4,096 tokens a round fill a store of 6.6 rounds in the seventh. Until then
// all of a prompt but its newest part is found, and from then on less; a drive's worth behind it
// finds all.
TEST(SessionRun, AStoreIsFullInTheRoundThatItsSizeSays) {
  constexpr double rounds = 6.6;
  const auto hits_by_round = [&](double size_in_rounds) {
    SessionLoad load;
    load.trace = agents(20, 10, 64, 64, false);
    load.lanes = 20;
    load.duration = Seconds{60.0};
    ReplayShape shape = replicas(1, 60'000);
    shape.replica.kv.tiers = {static_cast<std::int64_t>(size_in_rounds * 20 * 4096)};
    shape.replica.kv.copies_at_once = true;
    shape.replica.kv.shares_last = true;
    shape.replica.rules.loading = HostKvLoading::layers;
    shape.replica.rules.load_token = Seconds{1e-7};
    const SessionRun run = run_of(load, shape);
    std::map<std::uint32_t, std::pair<double, double>> found;
    for (const RequestTimes& times : run.times) {
      if (run.origins[times.request].instance >= 20) continue;
      const Turn& turn = load.trace.turns[run.origins[times.request].turn];
      const std::uint32_t prompt = load.trace.list.requests[turn.request].prompt_tokens;
      found[prompt / 4096].first += times.prefix_hits;
      found[prompt / 4096].second += prompt;
    }
    std::vector<double> shares;
    for (const auto& [round, sums] : found) shares.push_back(sums.first / sums.second);
    return shares;
  };
  const std::vector<double> small = hits_by_round(rounds), large = hits_by_round(20.0);
  ASSERT_EQ(small.size(), 10u);
  for (std::size_t round = 0; round < 10; ++round) {
    const double ideal = static_cast<double>(round) / static_cast<double>(round + 1);
    EXPECT_NEAR(large[round], ideal, 0.03) << round;
    if (round < 6) {
      EXPECT_NEAR(small[round], ideal, 0.03) << round;
    }
    if (round > 6) {
      EXPECT_LT(small[round], 0.5) << round;
    }
  }
}

// A session that is replayed again has nothing in common with its last replay, whether its hashes
// count within it or not: no more is found than the bound says.
TEST(SessionRun, RoundsHaveNothingInCommon) {
  for (const bool of_sessions : {true, false}) {
    SessionLoad load;
    load.trace = agents(3, 6, 8, 4, false);
    if (!of_sessions) {
      load.trace.list.hashes_of_sessions = false;
      for (std::size_t i = 0; i < load.trace.sessions.size(); ++i) {
        const Session& session = load.trace.sessions[i];
        const Request& last = load.trace.list.requests[load.trace.turns_of(session).back().request];
        for (std::uint32_t hash = 0; hash < last.hashes; ++hash)
          load.trace.list.hashes[last.first_hash + hash] += 1'000 * i;
      }
      count_common_beginnings(load.trace);
    }
    load.lanes = 2;
    load.duration = Seconds{500.0};
    const SessionRun run = run_of(load, replicas(1));
    EXPECT_GT(run.sessions_begun, 12);
    EXPECT_LE(run.hit_share(), run.bound_of_hits() + 1e-12) << of_sessions;
    EXPECT_GT(run.hit_share(), 0.5);
  }
}

}  // namespace
}  // namespace orrery::session_run_test
