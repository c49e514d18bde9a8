#include "sim/serving/replay_requests.hpp"

#include <gtest/gtest.h>

#include "sim/serving/request_traffic.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::replay_requests_test {
namespace {

RequestList sampled(Arrivals arrivals, double rate, std::int64_t number, SharedPrefix prefix = {}) {
  RequestTraffic traffic;
  traffic.arrivals = arrivals;
  traffic.rate = rate;
  traffic.requests = number;
  traffic.prompt = {LengthDistribution::Kind::lognormal, 735, 735, 0.8};
  traffic.output = {LengthDistribution::Kind::lognormal, 200, 200, 0.8};
  traffic.prefix = prefix;
  return sample_requests(traffic);
}

// The first token comes out of an iteration of the whole prompt, each other one out of a decode
// step of one request whose context is the prompt and what was made before.
TEST(ReplayRequests, ASingleRequestTakesItsClosedForm) {
  const StepCosts costs = affine_costs();
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::uint32_t prompt : {1u, 16u, 1000u, 8192u})
      for (const std::uint32_t output : {1u, 2u, 17u, 1000u}) {
        ReplayShape shape = one_replica(scheduling);
        shape.replica.client = Seconds{0.012};
        const ReplayCounts counts =
            replay_requests(equal_requests(1, prompt, output), shape, costs).counts;
        const double p = prompt, steps = output - 1.0;
        const double prefill =
            costs.dense(p).si() + costs.head(1).si() + costs.prefill_attention(p, 0).si();
        // Contexts p, p + 1, ..., each token of which takes 2e-9 s.
        const double decodes =
            steps * (costs.dense(1).si() + costs.head(1).si() + costs.decode_attention(1, p).si()) +
            2e-9 * steps * (steps - 1.0) / 2.0;
        EXPECT_NEAR(counts.ttft.mean().si() / (0.012 + prefill), 1.0, 1e-12);
        EXPECT_NEAR(counts.e2e.mean().si() / (0.012 + prefill + decodes), 1.0, 1e-12);
        EXPECT_EQ(counts.itl.count(), output - 1u);
        EXPECT_NEAR(counts.itl.sum().si(), decodes, 1e-12 * decodes);
      }
}

// All requests that arrive are answered, with all their tokens and a gap behind each but the last;
// and the number of requests in the system, summed over time, is the sum of their stays (Little's
// law).
TEST(ReplayRequests, ConservesRequestsAndTokensAndKeepsLittlesLaw) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t kv : {9'000, 40'000, 400'000})
      for (const SharedPrefix prefix : {SharedPrefix{}, SharedPrefix{7, 200, 5, 300}}) {
        RequestList list = sampled(Arrivals::poisson, 4.0, 3000, prefix);
        std::int64_t tokens = 0;
        for (Request& request : list.requests) {
          request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
          request.output_tokens = std::min(request.output_tokens, 4000u);
          tokens += request.output_tokens;
        }
        ReplayShape shape = one_replica(scheduling);
        shape.replica.kv.tokens = kv;
        shape.replica.kv.keeps_prefixes = prefix.groups > 0;
        shape.replica.rules.plans_ahead = kv > 9'000 && scheduling->continuous;
        const ReplayCounts counts = replay_requests(list, shape, affine_costs()).counts;
        const ReplayTotals& totals = counts.totals;
        EXPECT_EQ(totals.arrived, 3000);
        EXPECT_EQ(totals.finished, 3000);
        EXPECT_EQ(totals.output_tokens, tokens);
        EXPECT_EQ(static_cast<std::int64_t>(counts.itl.count()), tokens - 3000);
        EXPECT_NEAR(totals.present / totals.stayed, 1.0, 1e-9);
        EXPECT_LE(totals.kv_peak, 1.0);
        EXPECT_LE(totals.busy, totals.end - totals.first_arrival + Seconds{1e-6});
        EXPECT_EQ(totals.prefix_hit_tokens > 0, prefix.groups > 0);
        EXPECT_TRUE(!scheduling->reserves_answers || totals.preemptions == 0);
        EXPECT_TRUE(scheduling->name != "vllm" || kv > 9'000 || totals.preemptions > 100);
      }
}

// Steps of 10 ms. The second request's prompt of 100 tokens comes at 55 ms and is in the iteration
// from 60 to 70 ms, of three parts with a budget of 40. Without --enable-mixed-chunk no request
// decodes meanwhile, so that one gap is 40 ms; with it all are 10 ms, and of the budget one token
// is the decode's: 39, 39 and 22 are the parts.
TEST(ReplayRequests, SglangsPromptsGoFirstUnlessTheyAreMixed) {
  for (const bool unfolded : {false, true})
    for (const bool mixed : {false, true}) {
      RequestList list = equal_requests(2, 100, 50);
      list.requests[0].prompt_tokens = 10;
      list.requests[1].arrival = Seconds{0.055};
      ReplayShape shape = one_replica(scheduler("sglang"));
      shape.replica.rules.budget = 40;
      shape.replica.rules.mixed = mixed;
      shape.replica.replay.unfolded = unfolded;
      const ReplayCounts counts = replay_requests(list, shape, fixed_costs(Seconds{0.01})).counts;
      EXPECT_NEAR(counts.itl.most().si(), mixed ? 0.010 : 0.040, 1e-9);
      EXPECT_NEAR(counts.ttft.sum().si(), 0.010 + 0.035, 1e-9);
      EXPECT_NEAR(counts.e2e.sum().si(), mixed ? 0.500 + 0.525 : 0.530 + 0.525, 1e-9);
    }
}

// The budget of a mixed iteration is that of its decodes as well: one that they fill has no prompt.
TEST(ReplayRequests, MixedIterationsKeepRequestsAndTokens) {
  for (const bool chunked : {false, true})
    for (const std::int64_t kv : {9'000, 40'000}) {
      RequestList list = sampled(Arrivals::poisson, 4.0, 3000);
      std::int64_t tokens = 0;
      for (Request& request : list.requests) {
        request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
        request.output_tokens = std::min(request.output_tokens, 4000u);
        tokens += request.output_tokens;
      }
      ReplayShape shape = one_replica(scheduler("sglang"));
      shape.replica.kv.tokens = kv;
      shape.replica.rules.mixed = true;
      shape.replica.rules.chunked = chunked;
      shape.replica.rules.plans_ahead = kv > 9'000;
      shape.replica.rules.budget = 4500;
      const ReplayCounts folded = replay_requests(list, shape, affine_costs()).counts;
      EXPECT_EQ(folded.totals.finished, 3000);
      EXPECT_EQ(folded.totals.output_tokens, tokens);
      EXPECT_LE(folded.totals.kv_peak, 1.0);
      EXPECT_NEAR(folded.totals.present / folded.totals.stayed, 1.0, 1e-9);
      shape.replica.replay.unfolded = true;
      const ReplayCounts stepped = replay_requests(list, shape, affine_costs()).counts;
      EXPECT_EQ(stepped.totals.iterations, folded.totals.iterations);
      EXPECT_NEAR(stepped.e2e.sum() / folded.e2e.sum(), 1.0, 1e-9);
    }
}

// The gaps between a request's tokens add up to what is between its first and its last one.
TEST(ReplayRequests, GapsBetweenTokensAddUpToTheTimeAfterTheFirst) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t kv : {9'000, 400'000}) {
      RequestList list = sampled(Arrivals::poisson, 4.0, 2000);
      for (Request& request : list.requests) {
        request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
        request.output_tokens = std::min(request.output_tokens, 4000u);
      }
      ReplayShape shape = one_replica(scheduling);
      shape.replica.kv.tokens = kv;
      const ReplayCounts counts = replay_requests(list, shape, affine_costs()).counts;
      const double after_first = (counts.e2e.sum() - counts.ttft.sum()).si();
      EXPECT_NEAR(counts.itl.sum().si() / after_first, 1.0, 1e-9) << scheduling->name << " " << kv;
    }
}

// Steps of 10 ms, of which the first request's begin at 0, 10, 20, ... ms. A request that comes in
// one of them is in the next, or, where that is planned already, in the one after it; an idle
// engine starts a request at once.
TEST(ReplayRequests, ARequestIsInTheFirstIterationThatIsNotYetPlanned) {
  const auto queue_ms = [](double arrival_ms, bool ahead, bool unfolded) {
    RequestList list = equal_requests(2, 100, 50);
    list.requests[1].arrival = Seconds{1e-3 * arrival_ms};
    ReplayShape shape = one_replica();
    shape.replica.rules.plans_ahead = ahead;
    shape.replica.replay.unfolded = unfolded;
    const ReplayCounts counts = replay_requests(list, shape, fixed_costs(Seconds{0.01})).counts;
    return 1e3 * counts.queue.sum().si();
  };
  for (const bool unfolded : {false, true}) {
    EXPECT_NEAR(queue_ms(55.0, false, unfolded), 5.0, 1e-9);
    EXPECT_NEAR(queue_ms(55.0, true, unfolded), 15.0, 1e-9);
    EXPECT_NEAR(queue_ms(3.0, false, unfolded), 7.0, 1e-9);  // While the prompt is computed.
    EXPECT_NEAR(queue_ms(3.0, true, unfolded), 17.0, 1e-9);
    // The last step, behind which nothing is planned.
    EXPECT_NEAR(queue_ms(495.0, true, unfolded), 5.0, 1e-9);
    EXPECT_NEAR(queue_ms(600.0, true, unfolded), 0.0, 1e-9);
  }
}

// A scheduler that looks for requests every ten decode steps does so when those from 100, 200, ...
// ms on begin, which it has planned before, or when those before them end.
TEST(ReplayRequests, ARequestWaitsUntilTheSchedulerLooksForIt) {
  const auto queue_ms = [](double arrival_ms, int interval, bool ahead, bool unfolded) {
    RequestList list = equal_requests(2, 100, 50);
    list.requests[1].arrival = Seconds{1e-3 * arrival_ms};
    ReplayShape shape = one_replica(scheduler("sglang"));
    shape.replica.rules.plans_ahead = ahead;
    shape.replica.rules.receive_interval = interval;
    shape.replica.replay.unfolded = unfolded;
    const ReplayCounts counts = replay_requests(list, shape, fixed_costs(Seconds{0.01})).counts;
    EXPECT_EQ(counts.totals.finished, 2);
    return 1e3 * counts.queue.sum().si();
  };
  for (const bool unfolded : {false, true})
    for (const bool ahead : {false, true}) {
      EXPECT_NEAR(queue_ms(55.0, 10, ahead, unfolded), 55.0, 1e-9);
      EXPECT_NEAR(queue_ms(3.0, 10, ahead, unfolded), ahead ? 107.0 : 7.0, 1e-9);
      EXPECT_NEAR(queue_ms(95.0, 10, ahead, unfolded), 15.0, 1e-9);
      EXPECT_NEAR(queue_ms(ahead ? 105.0 : 115.0, 10, ahead, unfolded), ahead ? 105.0 : 95.0, 1e-9);
      EXPECT_NEAR(queue_ms(600.0, 10, ahead, unfolded), 0.0, 1e-9);
      // The first is over before it looks again.
      EXPECT_NEAR(queue_ms(55.0, 1000, ahead, unfolded), 445.0, 1e-9);
    }
}

// Fixed steps and one request at a time are a queue M/D/1, whose mean wait is rho D / (2 (1 - rho))
// (Pollaczek and Khinchine).
TEST(ReplayRequests, WaitsAsPollaczekAndKhinchineSay) {
  const double step = 0.01;
  for (const double load : {0.3, 0.5, 0.7, 0.8}) {
    RequestTraffic traffic;
    traffic.arrivals = Arrivals::poisson;
    traffic.rate = load / step;
    traffic.requests = 1'000'000;
    ReplayShape shape = one_replica();
    shape.replica.rules.most_requests = 1;
    const ReplayCounts counts =
        replay_requests(sample_requests(traffic), shape, fixed_costs(Seconds{step})).counts;
    const double wait = load * step / (2.0 * (1.0 - load));
    EXPECT_NEAR(counts.queue.mean().si() / wait, 1.0, 0.02) << load;
    EXPECT_NEAR(counts.e2e.mean().si() / (wait + step), 1.0, 0.02) << load;
    EXPECT_FALSE(counts.saturated());
  }
}

void expect_close(const ReplayCounts& one, const ReplayCounts& other, double relative) {
  EXPECT_EQ(one.totals.finished, other.totals.finished);
  EXPECT_EQ(one.totals.iterations, other.totals.iterations);
  EXPECT_EQ(one.totals.preemptions, other.totals.preemptions);
  EXPECT_NEAR(one.totals.end / other.totals.end, 1.0, relative);
  EXPECT_NEAR(one.ttft.mean() / other.ttft.mean(), 1.0, relative);
  EXPECT_NEAR(one.tpot.mean() / other.tpot.mean(), 1.0, relative);
  EXPECT_NEAR(one.e2e.mean() / other.e2e.mean(), 1.0, relative);
  for (const double share : {0.5, 0.9, 0.99})
    EXPECT_NEAR(one.itl.percentile(share) / other.itl.percentile(share), 1.0, 1.0 / 128);
}

// All requests finish, their stay is conserved, and a replay that is not folded agrees. Returns the
// counts of the folded one.
ReplayCounts expect_conserved_and_folded(const RequestList& list, ReplayShape shape) {
  const ReplayCounts folded = replay_requests(list, shape, affine_costs()).counts;
  EXPECT_EQ(folded.totals.finished, static_cast<std::int64_t>(list.requests.size()));
  EXPECT_NEAR(folded.totals.present / folded.totals.stayed, 1.0, 1e-9);
  shape.replica.replay.unfolded = true;
  expect_close(folded, replay_requests(list, shape, affine_costs()).counts, 1e-9);
  return folded;
}

// Summing up the steps between two changes leaves the answer as it is: the same iterations, but for
// the rounding of their sums.
TEST(ReplayRequests, FoldedIsUnfolded) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t kv : {9'000, 30'000, 400'000})
      for (const bool hidden : {true, false}) {  // And planned ahead, or not.
        RequestList list = sampled(Arrivals::poisson, 5.0, 1500, {5, 100, 3, 100});
        for (Request& request : list.requests) {
          request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
          request.output_tokens = std::min(request.output_tokens, 4000u);
        }
        StepCosts costs = affine_costs();
        costs.host = [](double n) { return Seconds{0.009 + 2e-5 * n}; };
        costs.host_hidden = hidden;
        ReplayShape shape = one_replica(scheduling);
        shape.replica.kv.tokens = kv;
        shape.replica.kv.keeps_prefixes = true;
        shape.replica.rules.plans_ahead = hidden && scheduling->continuous;
        const RequestReplay folded = replay_requests(list, shape, costs);
        shape.replica.replay.unfolded = true;
        const RequestReplay unfolded = replay_requests(list, shape, costs);
        SCOPED_TRACE(scheduling->name + " " + std::to_string(kv));
        expect_close(folded.counts, unfolded.counts, 1e-9);
        EXPECT_LT(folded.counts.totals.events, unfolded.counts.totals.events);
      }
}

TEST(ReplayRequests, OneReplicaRepresentsItsEquals) {
  RequestList list = equal_requests(400, 1000, 300);
  ReplayShape shape = one_replica();
  shape.replicas = 8;
  for (const std::uint32_t clients : {0u, 40u}) {
    list.clients = clients;
    shape.replica.replay.unfolded = false;
    const RequestReplay folded = replay_requests(list, shape, affine_costs());
    EXPECT_EQ(folded.replayed, 1u);
    shape.replica.replay.unfolded = true;
    const RequestReplay unfolded = replay_requests(list, shape, affine_costs());
    EXPECT_EQ(unfolded.replayed, 8u);
    expect_close(folded.counts, unfolded.counts, 1e-9);
  }
}

TEST(ReplayRequests, SaysTheSameBytesWithAnyNumberOfWorkers) {
  const RequestList list = sampled(Arrivals::poisson, 20.0, 4000, {20, 200, 2, 100});
  for (const Routing routing : {Routing::round_robin, Routing::random, Routing::session_hash}) {
    ReplayShape shape = one_replica();
    shape.replica.kv.keeps_prefixes = true;
    shape.replicas = 8;
    shape.replica.replay.routing = routing;
    const std::string alone = replay_requests(list, shape, affine_costs()).counts.bytes();
    shape.replica.replay.workers = 8;
    EXPECT_EQ(replay_requests(list, shape, affine_costs()).counts.bytes(), alone);
  }
}

// A router that looks at the replicas runs them on one clock; where there is but one, or the
// choice does not depend on them, it is the same replay.
TEST(ReplayRequests, OneClockIsThatOfEachReplica) {
  for (const Arrivals arrivals : {Arrivals::poisson, Arrivals::burst}) {
    const RequestList list = sampled(arrivals, 4.0, 1000);
    ReplayShape shape = one_replica();
    const std::string apart = replay_requests(list, shape, affine_costs()).counts.bytes();
    for (const Routing routing : {Routing::least_tokens, Routing::power_of_two, Routing::prefix}) {
      shape.replica.replay.routing = routing;
      EXPECT_EQ(replay_requests(list, shape, affine_costs()).counts.bytes(), apart);
    }
  }
}

TEST(ReplayRequests, RoutersThatLookAroundWaitLess) {
  const RequestList list = sampled(Arrivals::poisson, 30.0, 20'000, {50, 600, 1, 1});
  ReplayShape shape = one_replica();
  shape.replicas = 8;
  shape.replica.rules.most_requests = 16;
  shape.replica.kv.keeps_prefixes = true;
  const auto counts = [&](Routing routing) {
    shape.replica.replay.routing = routing;
    return replay_requests(list, shape, affine_costs()).counts;
  };
  const ReplayCounts random = counts(Routing::random);
  EXPECT_LT(counts(Routing::least_tokens).queue.mean(), random.queue.mean());
  EXPECT_LT(counts(Routing::power_of_two).queue.mean(), random.queue.mean());
  shape.replica.kv.tokens = 20'000;  // So that a replica does not know all prompts.
  EXPECT_GT(counts(Routing::prefix).totals.prefix_hit_tokens,
            counts(Routing::least_tokens).totals.prefix_hit_tokens);
}

// With more clients in a closed loop throughput rises and each of them gets its tokens slower.
TEST(ReplayRequests, MoreClientsGetMoreInAllAndLessEach) {
  for (const SchedulerKind* scheduling : schedulers()) {
    double end = 1e300, tpot = 0.0;
    for (const std::uint32_t clients : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
      RequestList list = equal_requests(512, 800, 200);
      list.clients = clients;
      const ReplayCounts counts =
          replay_requests(list, one_replica(scheduling), affine_costs()).counts;
      EXPECT_LT(counts.totals.end.si(), end) << clients;
      EXPECT_GT(counts.tpot.mean().si(), tpot) << clients;
      end = counts.totals.end.si();
      tpot = counts.tpot.mean().si();
    }
  }
}

TEST(ReplayRequests, MoreMemoryNeverHurtsAndAHigherRateAlwaysDoes) {
  double e2e = 1e300;
  for (const std::int64_t kv : {10'000, 20'000, 40'000, 80'000, 160'000}) {
    ReplayShape shape = one_replica();
    shape.replica.kv.tokens = kv;
    RequestList list = sampled(Arrivals::poisson, 6.0, 3000);
    for (Request& request : list.requests) {
      request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
      request.output_tokens = std::min(request.output_tokens, 4000u);
    }
    const double now = replay_requests(list, shape, affine_costs()).counts.e2e.mean().si();
    EXPECT_LE(now, e2e * (1 + 1e-12)) << kv;
    e2e = now;
  }
  double ttft = 0.0;
  for (const double rate : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    const ReplayCounts counts =
        replay_requests(sampled(Arrivals::poisson, rate, 5000), one_replica(), affine_costs())
            .counts;
    EXPECT_GT(counts.ttft.mean().si(), ttft) << rate;
    ttft = counts.ttft.mean().si();
  }
}

// A slot of a static batch is computed on until the longest answer is complete.
TEST(ReplayRequests, AStaticBatchWastesTheSlotsOfItsShorterAnswers) {
  RequestList list = equal_requests(4, 100, 1);
  for (std::uint32_t i = 0; i < 4; ++i) list.requests[i].output_tokens = 101 + 100 * i;
  ReplayShape shape = one_replica(scheduler("static"));
  shape.replica.rules.most_requests = 4;
  const ReplayTotals totals = replay_requests(list, shape, affine_costs()).counts.totals;
  // 100, 200, 300 and 400 decode steps: of 4 x 400 slots 1,000 are used, (400 - 250) / 400 wasted.
  EXPECT_EQ(totals.slot_steps, 1600);
  EXPECT_EQ(totals.output_tokens - totals.finished, 1000);
}

// A single prompt of M parts fills a pipeline of p stages and empties it: (M + p - 1) / M of the
// time that its parts take in a stage. With a batch for each stage no stage ever waits.
TEST(ReplayRequests, APipelineWaitsWhereASinglePromptFillsIt) {
  const double all_stages = 0.08;
  for (const int stages : {1, 2, 4, 8})
    for (const std::uint32_t parts : {1u, 2u, 5u, 40u}) {
      StepCosts costs = fixed_costs(Seconds{all_stages});
      costs.stages = stages;
      costs.longest_stage = costs.last_stage = 1.0 / stages;
      ReplayShape shape = one_replica();
      shape.replica.rules.budget = 1024;
      shape.replica.stages = stages;
      shape.replicas = static_cast<std::uint32_t>(stages);
      const double m = parts, p = stages;
      const RequestList single = equal_requests(1, 1024 * parts, 1);
      EXPECT_NEAR(replay_requests(single, shape, costs).counts.ttft.mean().si(),
                  (m + p - 1) * all_stages / p, 1e-9);
      const ReplayCounts full =
          replay_requests(equal_requests(stages, 100, 51), shape, costs).counts;
      EXPECT_NEAR(full.tpot.mean().si(), all_stages, 1e-9);
      EXPECT_NEAR(full.totals.end.si(), 51 * all_stages, 1e-9);
    }
}

// The longest stage decides where stages are uneven, and hops come on top.
TEST(ReplayRequests, APipelineTakesItsLongestStageForEachBatch) {
  StepCosts costs = fixed_costs(Seconds{0.08});
  costs.stages = 4;
  costs.longest_stage = 0.4;
  costs.last_stage = 0.2;
  costs.hop = [](double) { return Seconds{0.001}; };
  EXPECT_NEAR(StepTimes{costs}.decode(3, 30).first.si(), 4 * (0.4 * 0.08 + 0.001), 1e-12);
  costs.longest_stage = costs.last_stage = 0.25;
  EXPECT_NEAR(StepTimes{costs}.decode(3, 30).first.si(), 0.08 + 4 * 0.001, 1e-12);
}

// The last stage has the head, and the host of each looks at the requests of all batches.
TEST(ReplayRequests, APipelineWaitsForItsHeadAndItsHosts) {
  StepCosts costs = fixed_costs(Seconds{0.08});
  costs.head = [](double) { return Seconds{0.005}; };
  costs.stages = 4;
  costs.longest_stage = costs.last_stage = 0.25;
  EXPECT_NEAR(StepTimes{costs}.decode(3, 30).first.si(), 4 * (0.02 + 0.005), 1e-12);
  EXPECT_NEAR(StepTimes{costs}.mixed(3, 30, {{100, 0}}, 1).si(), 4 * (0.02 + 0.005), 1e-12);
  costs.longest_stage = 0.3;  // Others have more: 0.3 x 0.08 > 0.15 x 0.08 + 0.005.
  costs.last_stage = 0.15;
  EXPECT_NEAR(StepTimes{costs}.decode(3, 30).first.si(), 4 * 0.024, 1e-12);
  costs.planning = [](double requests) { return Seconds{1e-4 * requests}; };
  EXPECT_NEAR(StepTimes{costs}.decode(3, 30).first.si(), 4 * (0.024 + 1e-4 * 12), 1e-12);
  // A part of a prompt that another one follows has no head.
  EXPECT_NEAR(StepTimes{costs}.chunk_follows({{100, 0}}, 2).si(), 2 * (0.024 + 1e-4 * 2), 1e-12);
}

// A batch that is alone goes through all stages; others make it wait for the longest one.
TEST(ReplayRequests, BatchesOfAPipelineWaitOnlyForThoseThatAreThere) {
  StepCosts costs = fixed_costs(Seconds{0.08});
  costs.head = [](double) { return Seconds{0.02}; };
  costs.stages = 4;
  costs.longest_stage = costs.last_stage = 0.25;
  // 0.08 + 0.02 of all stages, or so many times 0.02 + 0.02.
  for (const auto& [busy, time] : {std::pair{1, 0.10}, {2, 0.10}, {3, 0.12}, {4, 0.16}, {0, 0.16}})
    EXPECT_NEAR(StepTimes{costs}.decode(1, 30, 0.0, busy).first.si(), time, 1e-12) << busy;
  ReplayShape shape = one_replica();
  shape.replica.stages = 4;
  shape.replicas = 4;
  // Three more answer 11 tokens each, and the step that begins as they end is still one of four.
  RequestList list = equal_requests(4, 100, 11);
  list.requests.front().output_tokens = 101;
  const ReplayCounts counts = replay_requests(list, shape, costs).counts;
  EXPECT_NEAR(counts.totals.end.si(), 12 * 0.16 + 89 * 0.10, 1e-9);
}

// A request that joins or leaves a pipeline changes the others' steps from the next one on.
TEST(ReplayRequests, PipelinesFoldToTheirSteps) {
  StepCosts costs = affine_costs();
  costs.stages = 4;
  costs.longest_stage = 0.26;
  costs.last_stage = 0.25;
  costs.hop = [](double) { return Seconds{1e-4}; };
  costs.planning = [](double requests) { return Seconds{1e-5 * requests}; };
  ReplayShape shape = one_replica(scheduler("trtllm"));
  shape.replica.stages = 4;
  shape.replicas = 8;
  RequestList list = equal_requests(60, 300, 40);
  for (std::uint32_t i = 0; i < 60; ++i) {
    list.requests[i].arrival = Seconds{0.07 * i + 0.003 * (i % 7)};
    list.requests[i].output_tokens = 20 + 17 * (i % 9);
  }
  const ReplayCounts folded = replay_requests(list, shape, costs).counts;
  shape.replica.replay.unfolded = true;
  const ReplayCounts unfolded = replay_requests(list, shape, costs).counts;
  EXPECT_LT(folded.totals.events, unfolded.totals.events);
  EXPECT_NEAR(folded.totals.end / unfolded.totals.end, 1.0, 1e-9);
  EXPECT_NEAR(folded.tpot.mean() / unfolded.tpot.mean(), 1.0, 1e-9);
  EXPECT_NEAR(folded.ttft.mean() / unfolded.ttft.mean(), 1.0, 1e-9);
}

// Attention DP ranks run in step: decoding requests wait for a prompt of another rank. The experts
// work on the tokens of all of them, a mean a rank.
TEST(ReplayRequests, CopiesOfAttentionWaitForEachOther) {
  StepCosts costs = fixed_costs({});
  costs.dense = [](double tokens) { return Seconds{0.010 + 3e-5 * tokens}; };
  costs.shared = [](double tokens) { return Seconds{2e-5 * tokens}; };
  ReplayShape shape = one_replica();
  shape.replicas = 2;
  shape.replica.copies = 2;
  shape.replica.rules.most_requests = 8;
  RequestList list = equal_requests(2, 1, 1001);
  list.requests[1] = {Seconds{2.0}, 1000, 1};
  const ReplayCounts counts = replay_requests(list, shape, costs).counts;
  // One decodes 1,000 times; in one of the steps the other's prompt is computed: its own 1e-5 s a
  // token, and that of the experts for half of 1,001.
  const double alone = 0.010 + 1e-5 + 2e-5;
  const double with_prompt = 0.010 + 1e-5 * 1000 + 2e-5 * 501;
  EXPECT_NEAR(counts.itl.most().si(), with_prompt, 1e-9);
  EXPECT_NEAR(counts.totals.end.si(), 1000 * alone + with_prompt, 1e-9);
  shape.replica.replay.unfolded = true;
  EXPECT_NEAR(replay_requests(list, shape, costs).counts.totals.end / counts.totals.end, 1.0,
              1e-12);
}

TEST(ReplayRequests, CopiesOfAttentionConserveAndAreFoldedAsOthers) {
  for (const SchedulerKind* scheduling : continuous_schedulers()) {
    ReplayShape shape = one_replica(scheduling);
    shape.replicas = 8;
    shape.replica.copies = 4;
    const RequestList list = sampled(Arrivals::poisson, 20.0, 3000);
    const ReplayCounts folded = expect_conserved_and_folded(list, shape);
    shape.replica.replay.unfolded = true;
    shape.replica.copies = 1;
    EXPECT_LT(replay_requests(list, shape, affine_costs()).counts.itl.mean(), folded.itl.mean());
  }
}

// Servers, each of several replicas that meet on one clock, share nothing: with as many times the
// clients, each has its own and answers as if it were alone.
TEST(ReplayRequests, ServersOfSeveralReplicasKeepTheirClients) {
  for (const bool staged : {false, true}) {
    ReplayShape one = one_replica(scheduler("sglang"));
    (staged ? one.replica.stages : one.replica.copies) = 8;
    one.replicas = 8;
    ReplayShape four = one;
    four.replicas = 32;
    for (const bool equal : {false, true}) {
      RequestList list =
          equal ? equal_requests(3000, 700, 100) : sampled(Arrivals::closed, 0.0, 3000);
      list.clients = 64;
      RequestList fourfold =
          equal ? equal_requests(12'000, 700, 100) : sampled(Arrivals::closed, 0.0, 12'000);
      fourfold.clients = 256;
      const ReplayCounts alone = replay_requests(list, one, affine_costs()).counts;
      const RequestReplay run = replay_requests(fourfold, four, affine_costs());
      const ReplayCounts& together = run.counts;
      const double within = equal ? 1e-9 : 0.03;
      EXPECT_NEAR(together.ttft.mean() / alone.ttft.mean(), 1.0, 3 * within);
      EXPECT_NEAR(together.tpot.mean() / alone.tpot.mean(), 1.0, within);
      EXPECT_NEAR(together.e2e.mean() / alone.e2e.mean(), 1.0, within);
      EXPECT_EQ(run.replayed, equal ? 8u : 32u);
    }
  }
}

// A router of sessions before another spreads over all replicas of its servers.
TEST(ReplayRequests, RoutersBehindRoutersDrawApart) {
  for (const Routing routing : {Routing::session_hash, Routing::random}) {
    for (std::uint32_t server = 1; server <= 4; ++server) {
      RequestRouter first{routing, 4, 7}, second{routing, 8, 7, server};
      std::vector<int> seen(8);
      for (std::uint32_t session = 0; session < 4000; ++session) {
        Request request;
        request.session = session;
        if (first.choose(request) == server - 1) ++seen[second.choose(request)];
      }
      for (const int count : seen) EXPECT_NEAR(count, 125, 60) << server;
    }
  }
}

// With a delay of n, a prompt that one copy alone could begin is computed in the n-th iteration
// since; one for each copy at once.
TEST(ReplayRequests, CopiesOfAttentionBeginPromptsTogether) {
  StepCosts costs = fixed_costs({});
  costs.dense = [](double tokens) { return Seconds{0.010 + 1e-5 * tokens}; };
  ReplayShape shape = one_replica(scheduler("sglang"));
  shape.replicas = 2;
  shape.replica.copies = 2;
  shape.replica.rules.most_requests = 8;
  const double step = 0.010 + 1e-5;
  // Two decode throughout; a third request comes at 2 s, in some a fourth for the other copy.
  const auto first_token = [&](int delay, bool fourth, bool unfolded) {
    shape.replica.rules.prefill_delay = delay;
    shape.replica.replay.unfolded = unfolded;
    shape.replica.replay.keeps_times = true;
    RequestList list = equal_requests(fourth ? 4 : 3, 1, 1001);
    list.requests[2] = {Seconds{2.0}, 1000, 1};
    if (fourth) list.requests[3] = {Seconds{2.0 + 3 * step}, 1000, 1};
    const RequestReplay run = replay_requests(list, shape, costs);
    EXPECT_EQ(run.counts.totals.finished, fourth ? 4 : 3);
    return run.times[2].arrival.si() + run.times[2].ttft.si();
  };
  for (const bool unfolded : {false, true}) {
    const double at_once = first_token(0, false, unfolded);
    EXPECT_DOUBLE_EQ(first_token(1, false, unfolded), at_once);
    for (const int delay : {2, 5, 30})
      EXPECT_NEAR(first_token(delay, false, unfolded), at_once + (delay - 1) * step, 1e-9) << delay;
    // The fourth comes in the third or fourth iteration since.
    EXPECT_NEAR(first_token(30, true, unfolded), at_once + 3 * step, 1.001 * step);
  }
}

// Two copies of eight places each, and more clients than places: every prompt is of 100 tokens, and
// an iteration of 400 has four of them. New ones then wait until the fuller copy has four places
// free, so that five to six of eight are taken on the mean; without a delay all are.
TEST(ReplayRequests, PromptsThatBeginTogetherWaitForRoom) {
  StepCosts costs = fixed_costs({});
  costs.dense = [](double tokens) { return Seconds{0.010 + 1e-5 * tokens}; };
  ReplayShape shape = one_replica(scheduler("sglang"));
  shape.replicas = 2;
  shape.replica.copies = 2;
  shape.replica.rules.most_requests = 8;
  shape.replica.rules.budget = 400;
  RequestTraffic traffic;
  traffic.requests = 2000;
  traffic.prompt = {LengthDistribution::Kind::uniform, 100, 100};
  traffic.output = {LengthDistribution::Kind::uniform, 50, 150};
  RequestList list = sample_requests(traffic);
  for (Request& request : list.requests) request.arrival = Seconds{};
  list.clients = 64;
  const auto taken = [&](int delay) {
    shape.replica.rules.prefill_delay = delay;
    const ReplayCounts counts = replay_requests(list, shape, costs).counts;
    EXPECT_EQ(counts.totals.finished, 2000);
    const Seconds span = counts.totals.end - counts.totals.first_arrival;
    return counts.tpot.mean() * (2000.0 * 99.0) / span / 2.0;
  };
  EXPECT_NEAR(taken(0), 7.6, 0.4);
  EXPECT_NEAR(taken(30), 5.5, 0.5);
}

TEST(ReplayRequests, RequestsThatWaitToBeSeenConserveAndAreFoldedAsOthers) {
  for (const int interval : {2, 7, 30}) {
    ReplayShape shape = one_replica(scheduler("sglang"));
    shape.replicas = 2;
    shape.replica.rules.most_requests = 6;
    shape.replica.rules.plans_ahead = true;
    shape.replica.rules.receive_interval = interval;
    expect_conserved_and_folded(sampled(Arrivals::poisson, 4.0, 2000), shape);
  }
}

TEST(ReplayRequests, DelayedPromptsConserveAndAreFoldedAsOthers) {
  for (const int delay : {2, 7, 30}) {
    ReplayShape shape = one_replica(scheduler("sglang"));
    shape.replicas = 8;
    shape.replica.copies = 4;
    shape.replica.rules.most_requests = 6;
    shape.replica.rules.prefill_delay = delay;
    expect_conserved_and_folded(sampled(Arrivals::poisson, 20.0, 3000), shape);
  }
}

TEST(ReplayRequests, SaysThatAQueueGrowsThroughTheRun) {
  ReplayShape shape = one_replica();
  shape.replica.rules.most_requests = 8;
  EXPECT_TRUE(replay_requests(sampled(Arrivals::poisson, 20.0, 4000), shape, affine_costs())
                  .counts.saturated());
  EXPECT_FALSE(replay_requests(sampled(Arrivals::poisson, 1.0, 4000), shape, affine_costs())
                   .counts.saturated());
}

TEST(ReplayRequests, KeepsTheTimesOfEachRequestInTheirPlaces) {
  const RequestList list = sampled(Arrivals::poisson, 5.0, 500);
  ReplayShape shape = one_replica();
  shape.replicas = 3;
  shape.replica.replay.keeps_times = true;
  for (const Routing routing : {Routing::round_robin, Routing::least_tokens}) {
    shape.replica.replay.routing = routing;
    const RequestReplay result = replay_requests(list, shape, affine_costs());
    ASSERT_EQ(result.times.size(), 500u);
    double e2e = 0.0;
    for (std::uint32_t i = 0; i < 500; ++i) {
      EXPECT_EQ(result.times[i].request, i);
      EXPECT_NEAR(result.times[i].arrival.si(), list.requests[i].arrival.si(), 1e-9);
      e2e += result.times[i].e2e.si();
    }
    EXPECT_NEAR(e2e / result.counts.e2e.sum().si(), 1.0, 1e-12);
  }
}

// Three clients cannot keep eight replicas busy: the other five get nothing.
TEST(ReplayRequests, AReplicaWithoutAClientGetsNothing) {
  RequestTraffic traffic;
  traffic.concurrency = 3;
  traffic.requests = 30;
  traffic.prompt = parse_length_distribution("500", {});
  traffic.output = parse_length_distribution("100", {});
  const RequestList list = sample_requests(traffic);
  ReplayShape shape = one_replica();
  shape.replicas = 3;
  const RequestReplay three = replay_requests(list, shape, affine_costs());
  shape.replicas = 8;
  const RequestReplay eight = replay_requests(list, shape, affine_costs());
  EXPECT_EQ(eight.counts.totals.end, three.counts.totals.end);
  EXPECT_EQ(eight.counts.ttft.most(), three.counts.ttft.most());
  EXPECT_EQ(eight.counts.totals.finished, 30);
}

}  // namespace
}  // namespace orrery::replay_requests_test
