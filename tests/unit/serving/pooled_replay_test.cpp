#include "sim/serving/pooled_replay.hpp"

#include <gtest/gtest.h>

#include "sim/serving/request_traffic.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::pooled_replay_test {
namespace {

constexpr KvSending sendings[] = {KvSending::whole, KvSending::chunks, KvSending::layers};
constexpr double bytes_a_token = 1e5;
constexpr double latency = 20e-6;

// Replica r of the prefill pool is GPU r, replica d of the decode pool GPU 8 + d, two nodes
// further. Each has a NIC of its own, so that transfers share nothing but a replica's.
KvRoutes routes_of(double bandwidth) {
  System system = read_system("four-by-four", {"test", ""});
  system.nic = BytesPerSecond{bandwidth};
  const SendRates rates{BytesPerSecond{bandwidth}, BytesPerSecond{bandwidth}, Seconds{latency},
                        Seconds{latency}};
  return KvRoutes{Topology::build(system, 16), rates, [](std::uint32_t from, std::uint32_t to) {
                    return KvRoutes::Sends{{Rank{static_cast<int>(from % 8)},
                                            Rank{static_cast<int>(8 + to % 8)}, 1.0}};
                  }};
}

PooledShape pools(const SchedulerKind* scheduling, KvSending sending = KvSending::whole) {
  PooledShape shape;
  shape.prefill.replica = shape.decode.replica = one_replica(scheduling).replica;
  shape.prefill.replica.role = ReplicaRole::prefill;
  shape.decode.replica.role = ReplicaRole::decode;
  shape.decode.replica.makes_first_token = scheduling->name == "vllm";
  shape.sending = sending;
  shape.layers = 10;
  shape.kv_bytes = [](std::int64_t tokens) {
    return Bytes{bytes_a_token * static_cast<double>(tokens)};
  };
  return shape;
}

PooledReplay replay(const RequestList& list, const PooledShape& shape, double bandwidth,
                    const StepCosts& costs = affine_costs()) {
  KvRoutes routes = routes_of(bandwidth);
  StepTimes prefill{costs}, decode{costs};
  return replay_pools(list, shape, routes, prefill, decode);
}

RequestList sampled(double rate, std::int64_t number, SharedPrefix prefix = {}) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = rate;
  traffic.requests = number;
  traffic.prompt = {LengthDistribution::Kind::lognormal, 735, 735, 0.8};
  traffic.output = {LengthDistribution::Kind::lognormal, 200, 200, 0.8};
  traffic.prefix = prefix;
  RequestList list = sample_requests(traffic);
  for (Request& request : list.requests) {
    request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
    request.output_tokens = std::min(request.output_tokens, 4000u);
  }
  return list;
}

ReplayCounts both(const PooledReplay& replay) {
  ReplayCounts counts = replay.prefill;
  counts.add(replay.decode);
  return counts;
}

// A prompt of one iteration of P s, whose keys and values take B / r s on an idle link of r bytes a
// second. Of L layers the last one's are sent when the prompt is computed, and before it what has
// not gone yet: max(B / r - P (L - 1) / L, B / (L r)).
TEST(PooledReplay, ASingleRequestTakesItsClosedForm) {
  const StepCosts costs = affine_costs();
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const KvSending sending : sendings)
      for (const std::uint32_t prompt : {2u, 1000u, 8192u})
        for (const std::uint32_t output : {2u, 17u, 1000u})
          for (const double rate : {1e9, 1e11}) {
            PooledShape shape = pools(scheduling, sending);
            shape.prefill.replica.client = Seconds{0.012};
            shape.handover = Seconds{0.1};
            const ReplayCounts counts =
                both(replay(equal_requests(1, prompt, output), shape, rate));
            const double p = prompt;
            const double prefill =
                costs.dense(p).si() + costs.head(1).si() + costs.prefill_attention(p, 0).si();
            const double sent = bytes_a_token * p / rate;
            double exposed = sent + latency;
            if (sending == KvSending::layers)
              // Each of the two parts has the latency.
              exposed = std::max(sent - prefill * 0.9 + 2 * latency, 0.1 * sent + latency);
            // vLLM computes the prompt's last token again, for the answer's first.
            const bool again = shape.decode.replica.makes_first_token;
            const double context = again ? p - 1 : p;
            const double step =
                costs.dense(1).si() + costs.head(1).si() + costs.decode_attention(1, context).si();
            const double steps = again ? output : output - 1.0;
            const double decodes = steps * step + 2e-9 * steps * (steps - 1.0) / 2.0;
            const double first = 0.112 + prefill + exposed + (again ? step : 0.0);
            SCOPED_TRACE(scheduling->name + " " + std::to_string(static_cast<int>(sending)) + " " +
                         std::to_string(prompt) + " " + std::to_string(rate));
            EXPECT_NEAR(counts.ttft.mean().si() / first, 1.0, 1e-9);
            EXPECT_NEAR(counts.e2e.mean().si() / (0.112 + prefill + exposed + decodes), 1.0, 1e-9);
            EXPECT_EQ(counts.itl.count(), output - 1u);
          }
}

// With links that take no time a request alone is prefilled and decoded as by one replica that does
// both, but for the token that vLLM computes twice.
TEST(PooledReplay, WithoutTransfersPoolsOfOneAreTheSumOfTheirParts) {
  for (const SchedulerKind* scheduling : {scheduler("sglang"), scheduler("trtllm")}) {
    RequestList list = sampled(1.0, 200);
    list.clients = 1;  // No two requests meet.
    const ReplayCounts alone =
        replay_requests(list, one_replica(scheduling), affine_costs()).counts;
    for (const KvSending sending : sendings) {
      const ReplayCounts counts = both(replay(list, pools(scheduling, sending), 1e18));
      EXPECT_NEAR((counts.ttft.mean() - alone.ttft.mean()).si(), latency, 1e-9);
      EXPECT_NEAR((counts.e2e.mean() - alone.e2e.mean()).si(), latency, 1e-9);
      EXPECT_NEAR(counts.tpot.mean() / alone.tpot.mean(), 1.0, 1e-9);
    }
  }
}

// Each request is prefilled, sent and decoded once, with all its tokens; what is sent are the keys
// and values of its prompt, but for what the decode pool has of it; and the requests in each pool,
// summed over time, are the sum of their stays (Little's law).
TEST(PooledReplay, ConservesRequestsTokensAndBytes) {
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const KvSending sending : sendings)
      for (const std::int64_t kv : {9'000, 400'000})
        for (const bool keeps : {false, true}) {
          const SharedPrefix prefix = keeps ? SharedPrefix{7, 200, 5, 300} : SharedPrefix{};
          const RequestList list = sampled(8.0, 1500, prefix);
          PooledShape shape = pools(scheduling, sending);
          shape.prefill.replicas = 2;
          shape.decode.replicas = 3;
          for (ReplayShape* pool : {&shape.prefill, &shape.decode}) {
            pool->replica.kv.tokens = kv;
            pool->replica.kv.keeps_prefixes = keeps;
            pool->replica.rules.budget = 2048;
            pool->replica.rules.keeps_preempted = scheduling->name == "sglang" || keeps;
          }
          const PooledReplay result = replay(list, shape, 2e9);
          const ReplayCounts counts = both(result);
          std::int64_t tokens = 0, prompts = 0, passing = 0;
          for (const Request& request : list.requests) {
            tokens += request.output_tokens;
            if (request.output_tokens == 1) continue;
            ++passing;
            prompts += request.prompt_tokens;
          }
          SCOPED_TRACE(scheduling->name + " " + std::to_string(static_cast<int>(sending)) + " " +
                       std::to_string(kv));
          EXPECT_EQ(result.prefill.totals.arrived, 1500);
          EXPECT_EQ(result.decode.totals.arrived, passing);
          EXPECT_EQ(result.transfers.requests, passing);
          EXPECT_EQ(counts.totals.finished, 1500);
          EXPECT_EQ(counts.totals.output_tokens, tokens);
          EXPECT_EQ(static_cast<std::int64_t>(counts.itl.count()), tokens - 1500);
          EXPECT_NEAR(counts.itl.sum() / (counts.e2e.sum() - counts.ttft.sum()), 1.0, 1e-9);
          EXPECT_EQ(result.transfers.prompts, prompts);
          if (keeps)
            EXPECT_LT(result.transfers.tokens, prompts);
          else
            EXPECT_EQ(result.transfers.tokens, prompts);
          const double bytes = bytes_a_token * static_cast<double>(result.transfers.tokens);
          EXPECT_NEAR(result.transfers.kv.si() / bytes, 1.0, 1e-12);
          EXPECT_NEAR(result.transfers.sent.si() / bytes, 1.0, 1e-9);
          EXPECT_GE(result.transfers.moving / result.transfers.alone, 1.0 - 1e-9);
          for (const ReplayCounts* pool : {&result.prefill, &result.decode}) {
            EXPECT_NEAR(pool->totals.present / pool->totals.stayed, 1.0, 1e-9);
            EXPECT_LE(pool->totals.kv_peak, 1.0);
          }
          EXPECT_TRUE(kv > 9'000 || scheduling->name != "vllm" ||
                      result.decode.totals.preemptions > 0);
          EXPECT_EQ(result.prefill.totals.preemptions, 0);
        }
}

// What a preempted request has in the cache is loaded back or computed again, which takes longer.
TEST(PooledReplay, KeptRequestsAreNotComputedAgain) {
  const RequestList list = sampled(8.0, 1500);
  const auto replayed = [&](bool keeps) {
    PooledShape shape = pools(scheduler("vllm"));
    shape.decode.replica.kv.tokens = 9'000;
    shape.decode.replica.rules.keeps_preempted = keeps;
    return replay(list, shape, 2e9).decode;
  };
  const ReplayCounts kept = replayed(true), again = replayed(false);
  EXPECT_GT(kept.totals.preemptions, 100);
  EXPECT_LT(kept.e2e.mean(), again.e2e.mean());
  EXPECT_EQ(kept.totals.output_tokens, again.totals.output_tokens);
}

// Stepping every iteration by itself leaves the answer as it is.
TEST(PooledReplay, FoldedIsUnfolded) {
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const KvSending sending : sendings) {
      const RequestList list = sampled(6.0, 800);
      PooledShape shape = pools(scheduling, sending);
      shape.prefill.replica.kv.tokens = shape.decode.replica.kv.tokens = 20'000;
      shape.decode.replica.rules.keeps_preempted = sending != KvSending::whole;
      SCOPED_TRACE(scheduling->name + " " + std::to_string(static_cast<int>(sending)));
      const ReplayCounts folded = both(replay(list, shape, 5e9));
      shape.prefill.replica.replay.unfolded = shape.decode.replica.replay.unfolded = true;
      const ReplayCounts unfolded = both(replay(list, shape, 5e9));
      EXPECT_EQ(folded.totals.iterations, unfolded.totals.iterations);
      EXPECT_EQ(folded.totals.preemptions, unfolded.totals.preemptions);
      EXPECT_NEAR(folded.ttft.mean() / unfolded.ttft.mean(), 1.0, 1e-9);
      EXPECT_NEAR(folded.e2e.mean() / unfolded.e2e.mean(), 1.0, 1e-9);
      EXPECT_LT(folded.totals.events, unfolded.totals.events);
    }
}

// n prompts end at one moment on n replicas: where each goes to a NIC of its own, none notices the
// others; where all go to one, each gets 1 / n of it.
TEST(PooledReplay, TransfersThatMeetShareTheirLinks) {
  for (const std::uint32_t n : {1u, 2u, 5u, 8u})
    for (const bool meet : {false, true}) {
      PooledShape shape = pools(scheduler("sglang"));
      shape.prefill.replicas = n;
      shape.decode.replicas = meet ? 1 : n;
      const PooledReplay result = replay(equal_requests(n, 1000, 10), shape, 1e9);
      const double alone = 1000 * bytes_a_token / 1e9;
      const double share = meet ? n : 1.0;
      EXPECT_NEAR(result.transfers.transfer.mean().si(), latency + share * alone, 1e-9);
      EXPECT_NEAR(result.transfers.transfer.most().si(), latency + share * alone, 1e-9);
      EXPECT_NEAR(result.transfers.alone.si(), n * (latency + alone), 1e-9);
    }
}

TEST(PooledReplay, MoreBandwidthIsNeverSlowerAndLayersNeverSlowerThanTheWhole) {
  for (const SchedulerKind* scheduling : continuous_schedulers()) {
    for (const KvSending sending : sendings) {
      double ttft = 1e300, transfer = 1e300;
      for (const double rate : {1e8, 1e9, 1e10, 1e11, 1e12}) {
        RequestList list = equal_requests(20, 2000, 50);
        list.clients = 1;
        const PooledReplay result = replay(list, pools(scheduling, sending), rate);
        const double now = both(result).ttft.mean().si();
        EXPECT_LT(now, ttft) << rate;
        EXPECT_LT(result.transfers.transfer.mean().si(), transfer) << rate;
        ttft = now;
        transfer = result.transfers.transfer.mean().si();
      }
    }
    for (const double rate : {1e8, 1e9, 1e10}) {
      const auto first_token = [&](KvSending sending) {
        PooledShape shape = pools(scheduling, sending);
        shape.prefill.replica.rules.budget = 1000;  // Four parts of each prompt.
        shape.prefill.replica.rules.chunked = scheduling->name != "trtllm";
        RequestList list = equal_requests(10, 4000, 50);
        list.clients = 1;
        return both(replay(list, shape, rate)).ttft.mean().si();
      };
      EXPECT_LE(first_token(KvSending::chunks), first_token(KvSending::whole) + 4 * latency);
      EXPECT_LT(first_token(KvSending::layers), first_token(KvSending::chunks)) << rate;
    }
  }
}

// A prefill pool keeps a prompt until it has arrived. Where links are slow, that fills its memory,
// and others wait for it.
TEST(PooledReplay, SlowLinksHoldUpThePrefillPool) {
  PooledShape shape = pools(scheduler("vllm"));
  shape.prefill.replica.kv.tokens = 2'016;  // Two prompts, in blocks of 16.
  const RequestList list = equal_requests(20, 1000, 10);
  const PooledReplay fast = replay(list, shape, 1e12);
  const PooledReplay slow = replay(list, shape, 1e8);
  EXPECT_LT(fast.prefill.queue.count() + fast.decode.queue.count(), 21u);
  EXPECT_GT(both(slow).queue.most(), 5.0 * both(fast).queue.most());
  EXPECT_DOUBLE_EQ(slow.prefill.totals.kv_peak, 1.0);
}

// Batches that take turns in a pipeline, and copies of attention that go in step, in either pool.
TEST(PooledReplay, PoolsMayHaveStagesAndCopies) {
  StepCosts staged = affine_costs();
  staged.stages = 2;
  staged.longest_stage = 0.5;
  StepCosts shared = affine_costs();
  shared.shared = [](double tokens) { return Seconds{1e-5 * tokens}; };
  const RequestList list = sampled(6.0, 600);
  std::int64_t tokens = 0;
  for (const Request& request : list.requests) tokens += request.output_tokens;
  for (const bool prefill_staged : {true, false}) {
    PooledShape shape = pools(scheduler("sglang"), KvSending::chunks);
    ReplayShape& with_stages = prefill_staged ? shape.prefill : shape.decode;
    ReplayShape& with_copies = prefill_staged ? shape.decode : shape.prefill;
    with_stages.replicas = with_stages.replica.stages = 2;
    with_copies.replicas = with_copies.replica.copies = 4;
    KvRoutes routes = routes_of(1e10);
    StepTimes prefill{prefill_staged ? staged : shared};
    StepTimes decode{prefill_staged ? shared : staged};
    const ReplayCounts counts = both(replay_pools(list, shape, routes, prefill, decode));
    EXPECT_EQ(counts.totals.finished, 600);
    EXPECT_EQ(counts.totals.output_tokens, tokens);
    EXPECT_NEAR(counts.itl.sum() / (counts.e2e.sum() - counts.ttft.sum()), 1.0, 1e-9);
  }
}

TEST(PooledReplay, AnswersOfOneTokenNeverLeaveThePrefillPool) {
  const PooledReplay result = replay(equal_requests(7, 500, 1), pools(scheduler("trtllm")), 1e9);
  EXPECT_EQ(result.prefill.totals.finished, 7);
  EXPECT_EQ(result.decode.totals.arrived, 0);
  EXPECT_EQ(result.transfers.requests, 0);
}

TEST(PooledReplay, KeepsTimesOfEachRequest) {
  PooledShape shape = pools(scheduler("vllm"));
  for (ReplayShape* pool : {&shape.prefill, &shape.decode})
    pool->replica.replay.keeps_times = pool->replica.replay.keeps_iterations = true;
  const RequestList list = sampled(4.0, 300);
  const PooledReplay result = replay(list, shape, 1e9);
  ASSERT_EQ(result.times.size(), 300u);
  Seconds ttft;
  for (std::size_t i = 0; i < 300; ++i) {
    const RequestTimes& times = result.times[i];
    const PoolTimes& passed = result.pool_times[i];
    EXPECT_EQ(times.request, i);
    EXPECT_NEAR(times.arrival.si(), list.requests[i].arrival.si(), 1e-9);
    const Seconds parts = times.queue + passed.prefill + passed.place + passed.transfer;
    EXPECT_TRUE(list.requests[i].output_tokens == 1 || times.ttft + Seconds{1e-9} > parts);
    ttft += times.ttft;
  }
  EXPECT_NEAR(ttft / both(result).ttft.sum(), 1.0, 1e-9);
  EXPECT_FALSE(result.prefill_iterations.empty());
  EXPECT_FALSE(result.decode_iterations.empty());
}

}  // namespace
}  // namespace orrery::pooled_replay_test
