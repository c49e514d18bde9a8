#include <gtest/gtest.h>

#include "sim/core/random.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::windowed_cache_test {
namespace {

// Blocks of a group with a window that a request holds if tokens from - window + 1 to `to` are
// seen: counted one by one.
std::int64_t touched(std::int64_t from, std::int64_t to, std::int64_t window, std::int64_t block) {
  const std::int64_t first = std::max<std::int64_t>(0, from - window + 1) / block;
  return to == 0 ? 0 : (to - 1) / block - first + 1;
}

// What tokens `at_once` behind any context see never touches more blocks, and somewhere as many.
TEST(WindowedCache, TheMostBlocksOfAWindowAreReached) {
  for (const std::int64_t block : {1, 3, 16})
    for (const std::int64_t window : {1, 2, 16, 17, 50})
      for (const std::int64_t at_once : {1, 4, 15, 16, 33}) {
        std::int64_t most = 0;
        for (std::int64_t context = 0; context < 200; ++context)
          most = std::max(most, touched(context, context + at_once, window, block));
        EXPECT_EQ(most, (KvGroups{1, 1, window}.most_windowed(at_once, block)))
            << block << " " << window << " " << at_once;
      }
}

// A prompt's last node stays, with the one before where it does not hold a window.
TEST(WindowedCache, APoolOfWindowsHoldsThePartsOfPromptsThatEndThem) {
  const WindowPool pool{100'000, 128, 8'192};
  for (const auto& [prompt, held] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                          {100, 100},
                                                          {8'192, 8'192},
                                                          {8'193, 8'193},
                                                          {8'319, 8'319},
                                                          {8'320, 128},
                                                          {12'000, 3'808},
                                                          {16'384, 8'192},
                                                          {16'385, 8'193}})
    EXPECT_EQ(pool.of(prompt), held + 256) << prompt;
  const WindowPool without_prefixes{100'000, 128, 0};
  EXPECT_EQ(without_prefixes.of(1), 256);
  EXPECT_EQ(without_prefixes.of(100'000), 256);
}

// No more run at a time than the pool holds, and at least one does; without prefixes windows alone
// count.
TEST(WindowedCache, RequestsWaitForThePoolOfWindows) {
  const auto most_running = [](WindowPool pool, bool keeps_prefixes) {
    ReplayShape shape = one_replica(scheduler("sglang"));
    shape.replica.kv.windows = pool;
    shape.replica.kv.keeps_prefixes = keeps_prefixes;
    const RequestReplay replay =
        replay_requests(equal_requests(60, 1'000, 200), shape, affine_costs());
    EXPECT_EQ(replay.counts.totals.finished, 60);
    EXPECT_EQ(replay.counts.totals.output_tokens, 60 * 200);
    return std::llround(replay.counts.totals.kv_peak * 400'000.0 / 1'200.0);
  };
  const std::int64_t all = most_running({}, true);
  EXPECT_EQ(most_running({60 * 1'256, 128, 8'192}, true), all);
  EXPECT_LT(most_running({20 * 1'256, 128, 8'192}, true), 21);
  EXPECT_GT(most_running({20 * 1'256, 128, 8'192}, true), 17);
  EXPECT_LT(most_running({1'255, 128, 8'192}, true), 2);
  EXPECT_EQ(most_running({60 * 256, 128, 8'192}, false), all);
  EXPECT_LT(most_running({20 * 256, 128, 8'192}, false), 21);
}

// The longest request that a number of blocks holds is the last that fits.
TEST(WindowedCache, TheLongestRequestIsTheLastThatFits) {
  for (const KvGroups groups : {KvGroups{1, 0, 0}, KvGroups{1, 1, 50}, KvGroups{2, 5, 50}})
    for (const std::int64_t most : {1, 4, 9})
      for (std::int64_t blocks = 0; blocks < 200; ++blocks) {
        const std::int64_t longest = groups.longest(blocks, most);
        EXPECT_LE(groups.blocks(longest, most), blocks);
        EXPECT_GT(groups.blocks(longest + 1, most), blocks);
      }
  EXPECT_EQ((KvGroups{0, 1, 50}.longest(8, 9)), 8);
  EXPECT_EQ((KvGroups{0, 1, 50}.longest(9, 9)), KvGroups::unlimited);
}

// Prompts of random lengths join, decode in strides of random length, are preempted and leave. At
// any time the cache has given what the requests hold by their lengths, each for itself.
TEST(WindowedCache, HoldsWhatItsRequestsKeepAtAnyTime) {
  for (const KvGroups groups : {KvGroups{1, 0, 0}, KvGroups{1, 1, 40}, KvGroups{0, 1, 40},
                                KvGroups{2, 5, 100}, KvGroups{1, 1, 5}})
    for (const std::int64_t block : {1, 7, 16})
      for (const int step : {1, 3}) {
        Random random{static_cast<std::uint64_t>(block * 10 + step)};
        RequestList list;
        for (int i = 0; i < 400; ++i)
          list.requests.push_back({Seconds{}, static_cast<std::uint32_t>(1 + random.below(200)),
                                   static_cast<std::uint32_t>(2 + random.below(150))});
        BatchRules rules;
        rules.budget = 64;
        rules.step_tokens = step;
        KvShape shape{8000, block};
        shape.groups = groups;
        ServingBatch batch{list, rules, shape};
        struct Held {
          std::uint32_t place;
          std::int64_t tokens;
        };
        std::vector<Held> decodes;
        const std::int64_t kept = groups.most_windowed(step, block);
        const std::int64_t in_prompt = groups.most_windowed(64, block);
        const auto blocks_of = [&](std::int64_t tokens) { return (tokens + block - 1) / block; };
        std::uint32_t next = 0;
        for (int round = 0; round < 3000; ++round) {
          if (!batch.has_waiting() && next < list.requests.size()) {
            Sequence sequence;
            sequence.request = next;
            sequence.prompt = list.requests[next].prompt_tokens;
            sequence.outputs = list.requests[next++].output_tokens;
            batch.wait(sequence);
            batch.see_until(Seconds{1e300}, Seconds{});
          }
          const bool space =
              batch.has_waiting() &&
              batch.candidate().prompt_blocks + batch.growth_of_step() <= batch.kv().available();
          const std::uint64_t what = random.below(8);
          if (what < 2 && space) {
            const ServingBatch::Candidate one = batch.candidate();
            EXPECT_EQ(one.prompt_blocks, groups.blocks(blocks_of(one.prompt), in_prompt));
            batch.admit(one, false, Seconds{});
            const std::uint32_t place = batch.prefilling().back();
            ASSERT_TRUE(batch.computed({place, static_cast<std::uint32_t>(one.prompt)}));
            ++batch.at(place).made;
            if (batch.sequence(place).made < batch.sequence(place).outputs) {
              batch.join_decodes(place);
              decodes.push_back({place, one.prompt});
            } else {
              batch.leave(place);
            }
          } else if (what == 2 && decodes.size() > 1) {
            batch.preempt_youngest(Seconds{});
            decodes.pop_back();
          } else if (what > 2 && !decodes.empty() &&
                     batch.growth_of_step() <= batch.kv().available()) {
            // What a step may take is what its tokens need.
            std::int64_t growth = 0;
            for (const Held& one : decodes)
              growth += groups.blocks(blocks_of(one.tokens + step), kept) -
                        groups.blocks(blocks_of(one.tokens), kept);
            EXPECT_EQ(batch.growth_of_step(), growth);
            const std::int64_t tokens =
                std::min<std::int64_t>({batch.tokens_until_full(), batch.tokens_until_finish(),
                                        1 + static_cast<std::int64_t>(random.below(60))});
            batch.advance(tokens);
            for (Held& one : decodes) one.tokens += tokens;
            for (std::uint32_t end; (end = batch.next_finished()) != ServingBatch::no_place;) {
              batch.leave(end);
              std::erase_if(decodes, [&](const Held& one) { return one.place == end; });
            }
          }
          std::int64_t used = 0;
          for (const Held& one : decodes) used += groups.blocks(blocks_of(one.tokens), kept);
          ASSERT_EQ(batch.kv().used(), used) << round;
          ASSERT_LE(used, batch.kv().capacity());
        }
        EXPECT_GT(next, 100u);
        while (!decodes.empty()) {
          batch.leave(decodes.back().place);
          decodes.pop_back();
        }
        EXPECT_EQ(batch.kv().used(), 0);
      }
}

RequestList sampled(SharedPrefix prefix = {}) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = 4.0;
  traffic.requests = 1500;
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

ReplayShape windowed(const SchedulerKind* scheduling, std::int64_t tokens, KvGroups groups) {
  ReplayShape shape = one_replica(scheduling);
  shape.replica.kv.tokens = tokens;
  shape.replica.kv.groups = groups;
  return shape;
}

// A window that no request outgrows changes no byte of the answer, however layers are grouped.
TEST(WindowedCache, AWindowThatNoRequestOutgrowsChangesNothing) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t tokens : {9'000, 40'000})
      for (const SharedPrefix prefix : {SharedPrefix{}, SharedPrefix{7, 200, 5, 300}}) {
        const RequestList list = sampled(prefix);
        const auto bytes = [&](KvGroups groups) {
          ReplayShape shape = windowed(scheduling, tokens, groups);
          shape.replica.kv.keeps_prefixes = prefix.groups > 0;
          return replay_requests(list, shape, affine_costs()).counts.bytes();
        };
        const std::string whole = bytes({1, 0, 0});
        for (const KvGroups groups : {KvGroups{1, 1, 8000}, KvGroups{0, 1, 8000}})
          EXPECT_TRUE(bytes(groups) == whole)
              << scheduling->name << " " << tokens << " " << prefix.groups << " " << groups.whole;
      }
}

// All requests are answered, and sums over equal steps are those of single steps, with windows that
// begin in prompts, in answers, and behind them.
TEST(WindowedCache, FoldedIsUnfolded) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t window : {0, 2, 128, 1000, 4096})
      for (const int drafted : {0, 3})
        for (const SharedPrefix prefix : {SharedPrefix{}, SharedPrefix{7, 200, 5, 300}}) {
          const RequestList list = sampled(prefix);
          ReplayShape shape = windowed(scheduling, 9'000, {1, window > 0 ? 2 : 0, window});
          shape.replica.kv.keeps_prefixes = prefix.groups > 0;
          shape.replica.rules.step_tokens = 1 + drafted;
          StepCosts costs = affine_costs();
          costs.step_tokens = 1 + drafted;
          costs.progress = shape.replica.rules.progress = drafted > 0 ? 2.39 : 1.0;
          const ReplayTotals folded = replay_requests(list, shape, costs).counts.totals;
          shape.replica.replay.unfolded = true;
          const ReplayTotals stepped = replay_requests(list, shape, costs).counts.totals;
          EXPECT_EQ(folded.finished, 1500);
          EXPECT_LE(folded.kv_peak, 1.0);
          EXPECT_EQ(folded.iterations, stepped.iterations)
              << scheduling->name << " " << window << " " << drafted << " " << prefix.groups;
          EXPECT_EQ(folded.preemptions, stepped.preemptions);
          EXPECT_NEAR(folded.stayed / stepped.stayed, 1.0, 1e-9);
        }
}

// Of requests that come together, those run at once whose blocks fit: one of n tokens holds
// ceil(n / 16) blocks in the group that keeps all, and 9 in that with a window of 128 tokens. A
// cache of exactly so many preempts none, of one block less it does.
TEST(WindowedCache, RequestsOfOneLengthFitByTheirClosedForm) {
  for (const std::int64_t at_once : {1, 2, 7, 30}) {
    // The last token of an answer is never read: 99 + 1000 tokens are 69 blocks.
    RequestList list = equal_requests(at_once, 100, 1000);
    const std::int64_t blocks = at_once * (69 + 9);
    const auto preemptions = [&](std::int64_t in_all) {
      ReplayShape shape = windowed(scheduler("vllm"), in_all / 2 * 16, {1, 1, 128});
      return replay_requests(list, shape, affine_costs()).counts.totals.preemptions;
    };
    EXPECT_EQ(preemptions(blocks), 0) << at_once;
    if (at_once > 1) {
      EXPECT_GT(preemptions(blocks - 2), 0) << at_once;
    }
  }
}

// The tokens that are printed for a deployment are those of the cache of its replay, in which the
// requests fit that KvCapacity counts, and no more.
TEST(WindowedCache, ADeploymentsCacheIsThatOfItsReplay) {
  for (const char* model : {"gpt-oss-20b", "gemma-3-27b", "mistral-7b", "llama3.1-8b"}) {
    const ServingSetup setup = make_serving_setup(model, "dgx-h100", "vllm", {}, 1, {});
    const KvCapacity kv = kv_capacity(setup.model, setup.system, setup.deployment, setup.engine);
    ReplicaShape shape = replica_shape(setup, {}, kv);
    EXPECT_EQ((KvBlocks{shape.kv, 0}.capacity()), kv.blocks()) << model;
    shape.replay.keeps_times = false;
    shape.rules.most_requests = 1 << 20;
    const std::int64_t fit = kv.requests(2000, 1);
    for (const std::int64_t requests : {fit, fit + 1}) {
      // 40 + 1,961 tokens, of which the last is never read.
      const RequestList list = equal_requests(requests, 40, 1961);
      const ReplayTotals totals =
          replay_requests(list, ReplayShape{shape}, fixed_costs(Seconds{0.01})).counts.totals;
      EXPECT_EQ(totals.preemptions > 0, requests > fit) << model << " " << requests;
    }
  }
}

// Of one cache and requests that run together from the first, a smaller window never preempts more.
TEST(WindowedCache, ASmallerWindowNeverPreemptsMore) {
  const RequestList list = equal_requests(25, 300, 1500);
  std::int64_t before = 0;
  for (const std::int64_t window : {1, 16, 128, 512, 1024, 4096, 8000}) {
    const ReplayShape shape = windowed(scheduler("vllm"), 9'000, {1, 1, window});
    const std::int64_t now = replay_requests(list, shape, affine_costs()).counts.totals.preemptions;
    EXPECT_GE(now, before) << window;
    before = now;
  }
  EXPECT_GT(before, 10);
}

// A request longer than all groups together hold is refused unless its window is kept.
TEST(WindowedCache, RefusesOnlyWhatDoesNotFitWithItsWindow) {
  KvShape kv{1600, 16};
  kv.groups = {1, 1, 128};  // 200 blocks, of which a window and 64 tokens at once take 13.
  const auto refused = [&](std::uint32_t tokens) {
    try {
      refuse_oversized(equal_requests(1, tokens, 1), kv, 64, {});
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_EQ(kv.groups.most_windowed(64, 16), 13);
  EXPECT_FALSE(refused(187 * 16));
  EXPECT_TRUE(refused(187 * 16 + 1));
  for (const bool shared : {false, true}) {
    RequestList list = equal_requests(3, 187 * 16 - 99, 100);
    ReplayShape shape = windowed(scheduler("vllm"), 1600, {1, 1, 128});
    shape.replica.rules.budget = 64;
    shape.replica.kv.keeps_prefixes = shared;
    if (shared) {
      list.hash_tokens = 16;
      for (Request& request : list.requests) request.hashes = request.prompt_tokens / 16;
      for (std::uint32_t i = 0; i < 200; ++i) list.hashes.push_back(i);
    }
    EXPECT_EQ(replay_requests(list, shape, affine_costs()).counts.totals.finished, 3);
  }
}

}  // namespace
}  // namespace orrery::windowed_cache_test
