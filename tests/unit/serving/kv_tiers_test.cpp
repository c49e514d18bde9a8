#include <gtest/gtest.h>

#include <set>

#include "sim/core/random.hpp"
#include "sim/serving/kv_cache.hpp"
#include "sim/serving/request_traffic.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::kv_tiers_test {
namespace {

constexpr HostKvLoading all_loadings[] = {HostKvLoading::apart, HostKvLoading::layers,
                                          HostKvLoading::before};

// Prompts of chats: a way down a tree of three branches at each node, of one block each.
std::vector<std::uint64_t> sampled_path(Random& random) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t node = 0;
  for (std::uint64_t depth = 1 + random.below(6); depth > 0; --depth)
    hashes.push_back(node = 3 * node + 1 + random.below(3));
  return hashes;
}

// A block that was stored and neither taken back nor dropped is on the host, and no other is. A
// known block is known with all before it; a block that moves is in one memory, one that is copied
// in the host's as long as it has space.
TEST(KvTiers, ConservesBlocksOverRandomPrompts) {
  for (const bool copies : {false, true})
    for (const std::int64_t host : {1, 5, 40, 2000}) {
      Random random{static_cast<std::uint64_t>(host)};
      KvBlocks kv{{12 * 16, 16, true, {host * 16}, copies}, 16};
      std::set<std::uint64_t> seen;
      std::vector<std::pair<PrefixTree::Index, std::size_t>> held;
      std::int64_t hits = 0;
      for (int round = 0; round < 20000; ++round) {
        if (!held.empty() && random.below(2) == 0) {
          const auto i = static_cast<std::size_t>(random.below(held.size()));
          kv.release(held[i].first);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
          continue;
        }
        const std::vector<std::uint64_t> hashes = sampled_path(random);
        const PrefixPath path = kv.path_of(hashes, static_cast<std::int64_t>(hashes.size()) * 16);
        const KvBlocks::Match match = kv.match(path);
        ASSERT_LE(match.nodes + match.below, path.nodes);
        for (std::size_t node = 0; node < match.nodes + match.below; ++node)
          ASSERT_TRUE(seen.contains(path[node]));
        for (std::size_t node = match.nodes + match.below; node < path.nodes; ++node)
          ASSERT_FALSE(kv.tier(0).has(path[node]));  // None is there without those above it.
        for (std::size_t node = 0; !copies && node < match.nodes; ++node)
          ASSERT_FALSE(kv.tier(0).has(path[node]));
        if (kv.cost_of(path, match) > kv.available()) continue;
        hits += static_cast<std::int64_t>(match.below);
        held.push_back({kv.hold(path, match), path.nodes});
        for (const std::uint64_t hash : hashes) seen.insert(hash);
        const KvBlocks::Match now = kv.match(path);
        ASSERT_EQ(now.nodes, path.nodes);
        for (std::size_t node = 0; node < path.nodes; ++node)
          ASSERT_TRUE(copies ? host < 6 || kv.tier(0).has(path[node])
                             : !kv.tier(0).has(path[node]));
        ASSERT_LE(kv.tier(0).nodes(), host);
        ASSERT_EQ(kv.tier(0).nodes(),
                  kv.tier(0).stored() - kv.tier(0).taken() - kv.tier(0).dropped());
        ASSERT_LE(kv.used(), kv.capacity());
      }
      EXPECT_TRUE(hits > 0 || host == 1);
      EXPECT_EQ(kv.tier(0).taken(), copies ? 0 : hits);
      // All 1,092 nodes fit in the largest: whatever was asked once is never computed again.
      EXPECT_EQ(kv.tier(0).dropped() == 0, host == 2000);
    }
}

// Prompts of 4,096 tokens in blocks of 16, which carry hashes of 512. The GPU holds one of them,
// and the answers have one token.
RequestList prompts(const std::vector<std::uint64_t>& chats, Seconds apart) {
  RequestList list;
  list.hash_tokens = 512;
  for (std::size_t i = 0; i < chats.size(); ++i) {
    Request request{static_cast<double>(i) * apart, 4096, 1};
    request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
    request.hashes = 8;
    for (std::uint64_t part = 0; part < 8; ++part) list.hashes.push_back(chats[i] * 100 + part);
    list.requests.push_back(request);
  }
  return list;
}

ReplayShape with_host(HostKvLoading loading, std::int64_t host_tokens, bool copies) {
  ReplayShape shape = one_replica();
  shape.replica.replay.keeps_times = true;
  shape.replica.kv = {4096 + 16, 16, true, {host_tokens}, copies};
  shape.replica.rules.loading = loading;
  shape.replica.rules.load_token = Seconds{2e-6};
  shape.replica.rules.load_layers = 40;
  return shape;
}

// The prompt was computed, and another took its place on the GPU. All of it but the last block
// comes from the host, 4,080 tokens at 2 us each; then 16 tokens are computed behind them, P
// seconds: after the load, or overlapped layer by layer.
TEST(KvTiers, ASinglePromptTakesItsClosedForm) {
  const StepCosts costs = affine_costs();
  const double load = 4080 * 2e-6;
  const double whole =
      costs.dense(4096).si() + costs.head(1).si() + costs.prefill_attention(4096, 0).si();
  const double rest =
      costs.dense(16).si() + costs.head(1).si() + costs.prefill_attention(16, 4080).si();
  for (const HostKvLoading loading : all_loadings)
    for (const bool copies : {false, true})
      for (const bool ahead : {false, true}) {
        ReplayShape shape = with_host(loading, 8192, copies);
        shape.replica.rules.plans_ahead = ahead;
        const RequestList list = prompts({1, 2, 1}, Seconds{10});
        const RequestReplay replay = replay_requests(list, shape, costs);
        EXPECT_NEAR(replay.times[1].ttft.si(), whole, 1e-9);
        const double expected = loading == HostKvLoading::layers
                                    ? std::max(rest + load / 40, load + rest / 40)
                                    : load + rest;
        EXPECT_NEAR(replay.times[2].ttft.si(), expected, 1e-3 * rest);
        EXPECT_EQ(replay.times[2].prefix_hits, 4080u);
        EXPECT_EQ(replay.times[2].tier_hits[0], 4080u);
        const ReplayTotals& totals = replay.counts.totals;
        EXPECT_EQ(totals.tiers[0].loaded_tokens, 4080);
        // Where blocks move, the first prompt went there, and the second when the first came back.
        EXPECT_EQ(totals.tiers[0].stored_tokens, 2 * 4096);
      }
}

// A host that holds one prompt knows the one that left the GPU, where blocks move; where they are
// copied it holds the one that is on the GPU.
TEST(KvTiers, CopiesTakeSpaceThatMovedBlocksDoNot) {
  for (const bool copies : {false, true}) {
    const ReplayShape shape = with_host(HostKvLoading::before, 4096, copies);
    const ReplayTotals totals =
        replay_requests(prompts({1, 2, 1}, Seconds{10}), shape, affine_costs()).counts.totals;
    EXPECT_EQ(totals.tiers[0].hit_tokens, copies ? 0 : 4080);
  }
}

// Loads use one link, one after another: the last of n prompts that come at once waits for all.
TEST(KvTiers, LoadsShareTheirLinkAndOthersGoOn) {
  for (const int n : {1, 2, 3, 5}) {
    std::vector<std::uint64_t> chats;
    for (int i = 0; i < n; ++i) chats.push_back(static_cast<std::uint64_t>(i) + 1);
    const std::vector<std::uint64_t> once = chats;
    chats.push_back(99);  // Takes all places on the GPU.
    chats.insert(chats.end(), once.begin(), once.end());
    RequestList list = prompts(chats, Seconds{10});
    ReplayShape shape = with_host(HostKvLoading::apart, 16 * 4096, true);
    shape.replica.kv.tokens = n * (4096 + 16);
    list.requests[static_cast<std::size_t>(n)].prompt_tokens = static_cast<std::uint32_t>(n) * 4096;
    const std::size_t first = static_cast<std::size_t>(n) + 1;
    for (std::size_t i = first; i < chats.size(); ++i)
      list.requests[i].arrival = list.requests[first].arrival;
    // One step takes 1 ms, whatever is in it: loads of 8.16 ms are what there is to see.
    const RequestReplay replay = replay_requests(list, shape, fixed_costs(Seconds{1e-3}));
    for (std::size_t i = first; i < chats.size(); ++i) {
      EXPECT_EQ(replay.times[i].tier_hits[0], 4080u);
      const double loads = static_cast<double>(i - first + 1) * 4080 * 2e-6;
      EXPECT_GE(replay.times[i].ttft.si(), loads + 1e-3 - 1e-9);
      EXPECT_LE(replay.times[i].ttft.si(), loads + 3e-3);
    }
  }
}

// While a prompt is loaded apart, who decodes does not notice.
TEST(KvTiers, DecodesGoOnWhileAPromptIsLoadedApart) {
  for (const bool unfolded : {false, true})
    for (const HostKvLoading loading : all_loadings) {
      RequestList list = prompts({1, 2, 3, 4, 1}, Seconds{10});
      list.requests[3].output_tokens = 4000;  // Of 1 ms each.
      list.requests[3].prompt_tokens = 16;
      list.requests[3].hashes = 0;
      list.requests[4].arrival = list.requests[3].arrival + Seconds{1.0};
      ReplayShape shape = with_host(loading, 16 * 4096, true);
      shape.replica.kv.tokens = 8208;
      shape.replica.rules.load_token = Seconds{1e-4};  // 0.408 s for the prompt.
      shape.replica.replay.unfolded = unfolded;
      const ReplayCounts counts = replay_requests(list, shape, fixed_costs(Seconds{1e-3})).counts;
      ASSERT_EQ(counts.totals.finished, 5);
      ASSERT_EQ(counts.totals.tiers[0].hit_tokens, 4080);
      const double longest = loading == HostKvLoading::apart    ? 1e-3
                             : loading == HostKvLoading::layers ? 0.408 + 1e-3 / 40
                                                                : 0.409;
      EXPECT_NEAR(counts.itl.most().si(), longest, 0.01 * longest);
    }
}

RequestList chats(std::int64_t number) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = 6.0;
  traffic.requests = number;
  traffic.prompt = {LengthDistribution::Kind::lognormal, 300, 300, 0.8};
  traffic.output = {LengthDistribution::Kind::lognormal, 100, 100, 0.8};
  traffic.prefix = {40, 2000, 5, 1000};
  RequestList list = sample_requests(traffic);
  for (Request& request : list.requests) {
    request.prompt_tokens = std::min(request.prompt_tokens, 8000u);
    request.output_tokens = std::min(request.output_tokens, 2000u);
  }
  return list;
}

// Invariants that hold without the tier: all are answered, Little's law holds, one iteration at a
// time gives the same as many, and so do eight workers. A larger host knows more.
TEST(KvTiers, KeepsTheInvariantsOfAReplay) {
  const RequestList list = chats(1000);
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const HostKvLoading loading : all_loadings)
      for (const bool copies : {false, true}) {
        ReplayShape shape = one_replica(scheduling);
        shape.replicas = 2;
        shape.replica.kv = {24'000, shape.replica.kv.block_tokens, true, {0}, copies};
        shape.replica.rules.plans_ahead = copies;
        shape.replica.rules.loading = loading;
        shape.replica.rules.load_token = Seconds{1e-6};
        shape.replica.rules.load_layers = 40;
        // Less than what is asked again, and more than the GPU, where copies need that.
        const std::int64_t middle = copies ? 30'000 : 20'000;
        std::int64_t known = 0;
        for (const std::int64_t host : {std::int64_t{0}, middle, std::int64_t{1'000'000}}) {
          shape.replica.kv.tiers = {host};
          shape.replica.replay.unfolded = false;
          shape.replica.replay.workers = 1;
          const ReplayCounts counts = replay_requests(list, shape, affine_costs()).counts;
          const ReplayTotals& totals = counts.totals;
          EXPECT_EQ(totals.finished, 1000);
          EXPECT_NEAR(totals.present / totals.stayed, 1.0, 1e-9);
          EXPECT_LE(totals.kv_peak, 1.0);
          EXPECT_EQ(totals.tiers[0].hit_tokens > 0, host > 0);
          EXPECT_LE(totals.tiers[0].hit_tokens, totals.tiers[0].loaded_tokens);
          EXPECT_GT(totals.prefix_hit_tokens, known);
          known = totals.prefix_hit_tokens;
          shape.replica.replay.workers = 8;
          EXPECT_EQ(replay_requests(list, shape, affine_costs()).counts.bytes(), counts.bytes());
          shape.replica.replay.unfolded = true;
          const ReplayCounts each = replay_requests(list, shape, affine_costs()).counts;
          EXPECT_NEAR(each.ttft.mean() / counts.ttft.mean(), 1.0, 1e-9)
              << scheduling->name << static_cast<int>(loading) << copies << host;
          EXPECT_NEAR(each.e2e.mean() / counts.e2e.mean(), 1.0, 1e-9);
          EXPECT_EQ(each.totals.tiers[0].loaded_tokens, totals.tiers[0].loaded_tokens);
        }
      }
}

// Where blocks move, two memories one behind the other find what one of both sizes does, for any
// prompts: the farther has what the nearer evicted, in its order. Where they are copied, a farther
// one finds what it would alone, and a nearer one what it would alone of that.
TEST(KvTiers, TwoMemoriesFindWhatOneWould) {
  for (const bool copies : {false, true})
    for (const std::int64_t near : {3, 10, 30})
      for (const std::int64_t far : {40, 80, 300}) {
        const auto hits = [&](const std::vector<std::int64_t>& tiers) {
          Random random{7};
          std::vector<std::int64_t> tokens;
          for (const std::int64_t nodes : tiers) tokens.push_back(nodes * 16);
          KvBlocks kv{{12 * 16, 16, true, tokens, copies}, 16};
          std::array<std::int64_t, most_tiers> found{};
          for (int round = 0; round < 3000; ++round) {
            const std::vector<std::uint64_t> hashes = sampled_path(random);
            const PrefixPath path =
                kv.path_of(hashes, static_cast<std::int64_t>(hashes.size()) * 16);
            const KvBlocks::Match match = kv.match(path);
            for (std::size_t tier = 0; tier < most_tiers; ++tier)
              found[tier] += match.in_tier[tier];
            kv.release(kv.hold(path, match));
            for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
              const TierBlocks& of = kv.tier(tier);
              EXPECT_LE(of.nodes(), tiers[tier]);
              EXPECT_EQ(of.nodes(), of.stored() - of.taken() - of.dropped());
            }
          }
          return found;
        };
        const auto both = hits({near, far});
        EXPECT_GT(both[1], 0);
        EXPECT_EQ(both[0] + both[1], hits({copies ? far : near + far})[0]);
        if (copies) {
          EXPECT_EQ(both[0], hits({near})[0]);
        }
      }
}

// A prompt that comes from a drive: its latency and its time a token, then the host's link. An
// engine that loads while others run begins to compute when both have passed; the link carries what
// has come.
TEST(KvTiers, ADriveTakesItsClosedForm) {
  const StepCosts costs = affine_costs();
  const double link = 4080 * 2e-6, read = 1e-3 + 4096 * 5e-6;
  const double rest =
      costs.dense(16).si() + costs.head(1).si() + costs.prefill_attention(16, 4080).si();
  for (const HostKvLoading loading : all_loadings) {
    ReplayShape shape = with_host(loading, 16, true);  // The host's memory holds one block.
    shape.replica.kv.tiers.push_back(16 * 4096);
    shape.replica.rules.tiers[1] = {Seconds{5e-6}, Seconds{1e-3}};
    const RequestReplay replay = replay_requests(prompts({1, 2, 1}, Seconds{10}), shape, costs);
    const double expected = loading == HostKvLoading::apart ? std::max(read, link) + rest
                            : loading == HostKvLoading::before
                                ? read + link + rest
                                : read + std::max(rest + link / 40, link + rest / 40);
    EXPECT_NEAR(replay.times[2].ttft.si(), expected, 1e-3 * rest);
    EXPECT_EQ(replay.times[2].tier_hits[0], 0u);
    EXPECT_EQ(replay.times[2].tier_hits[1], 4080u);
    EXPECT_EQ(replay.counts.totals.tiers[1].loaded_tokens, 4080);
    EXPECT_EQ(replay.counts.totals.tiers[1].stored_tokens, 2 * 4096);
  }
}

// A read that begins when a request arrives is over when the prompt before it is computed.
TEST(KvTiers, ReadsThatBeginAtArrivalHideBehindOtherPrompts) {
  for (const bool at_arrival : {false, true}) {
    ReplayShape shape = with_host(HostKvLoading::apart, 16 * 4096, true);
    shape.replica.rules.tiers[0] = {Seconds{1e-4}, Seconds{}};  // 0.4096 s.
    shape.replica.rules.fetches_at_arrival = at_arrival;
    RequestList list = prompts({1, 2, 3, 1}, Seconds{10});
    list.requests[3].arrival = list.requests[2].arrival;  // Behind a prompt that is computed alone.
    const RequestReplay replay = replay_requests(list, shape, fixed_costs(Seconds{0.5}));
    EXPECT_NEAR(replay.times[3].ttft.si(), at_arrival ? 1.0 : 1.5, 0.1);
  }
}

// What has come within the limit counts, and the rest is computed: no limit finds nothing, a long
// one what a prompt that waits finds.
TEST(KvTiers, AShorterLimitFindsLess) {
  const auto found = [](KvFetching prefetch) {
    ReplayShape shape = with_host(HostKvLoading::layers, 16 * 4096, true);
    shape.replica.rules.tiers[0] = {Seconds{1e-4}, Seconds{1e-3}};
    shape.replica.rules.prefetch = prefetch;
    const RequestReplay replay =
        replay_requests(prompts({1, 2, 1}, Seconds{10}), shape, affine_costs());
    EXPECT_EQ(replay.counts.totals.finished, 3);
    return replay.times[2].tier_hits[0];
  };
  EXPECT_EQ(found({}), 4080u);
  EXPECT_EQ(found({KvPrefetch::best_effort, Seconds{}, Seconds{}}), 0u);
  std::uint32_t before = 0;
  for (const double limit : {0.0, 0.05, 0.1, 0.2, 0.3, 0.5}) {
    const std::uint32_t now = found({KvPrefetch::timeout, Seconds{limit}, Seconds{}});
    // Nodes of 512 tokens take 51.2 ms each.
    const auto nodes = static_cast<std::uint32_t>(std::max(0.0, limit - 1e-3) / 0.0512);
    EXPECT_EQ(now, std::min(4080u, nodes * 512));
    EXPECT_GE(now, before);
    before = now;
  }
  EXPECT_EQ(before, 4080u);
}

// Of a store that all share, each finds what the others computed; its reads follow each other.
TEST(KvTiers, ReplicasFindInTheStoreWhatOthersComputed) {
  for (const std::uint32_t n : {1u, 2u, 5u}) {
    // The first replica computes the prompt. Then each is asked for it, all at once.
    RequestList list = prompts(std::vector<std::uint64_t>(2 * n, 1), Seconds{});
    for (std::size_t i = 1; i < n; ++i) {  // Round robin passes the other replicas.
      list.requests[i].hashes = 0;
      list.requests[i].prompt_tokens = 16;
    }
    for (std::size_t i = n; i < 2 * n; ++i) list.requests[i].arrival = Seconds{10};
    ReplayShape shape = with_host(HostKvLoading::apart, 16 * 4096, true);
    shape.replicas = n;
    shape.replica.kv.shares_last = true;
    shape.replica.rules.store_token = Seconds{1e-4};
    const RequestReplay replay = replay_requests(list, shape, fixed_costs(Seconds{1e-3}));
    EXPECT_EQ(replay.counts.totals.tiers[0].loaded_tokens, (n - 1) * 4080);
    for (std::size_t i = n + 1; i < 2 * n; ++i) {
      EXPECT_EQ(replay.times[i].tier_hits[0], 4080u);
      EXPECT_NEAR(replay.times[i].ttft.si(), static_cast<double>(i - n) * 0.4096 + 2e-3, 2e-3);
    }
  }
}

// A farther memory never lowers what is found; all are answered; Little's law holds; all of it also
// with copies of attention that go in step, of which some wait for loads while others decode.
TEST(KvTiers, MoreMemoryNeverFindsLess) {
  const RequestList list = chats(600);
  for (const int copies : {1, 2})
    for (const HostKvLoading loading : all_loadings)
      for (const bool through : {false, true}) {
        std::int64_t known = 0, without = 0;
        for (const std::vector<std::int64_t>& tiers :
             {std::vector<std::int64_t>{}, {28'000}, {28'000, 36'000}, {28'000, 36'000, 400'000}}) {
          ReplayShape shape = one_replica();
          shape.replicas = 2;
          shape.replica.copies = copies;
          shape.replica.kv = {24'000, 16, true, tiers, through};
          shape.replica.kv.shares_last = tiers.size() == most_tiers;
          shape.replica.rules.loading = loading;
          shape.replica.rules.load_token = Seconds{1e-6};
          shape.replica.rules.tiers[1] = {Seconds{2e-5}, Seconds{1e-4}};
          shape.replica.rules.tiers[2] = {Seconds{4e-5}, Seconds{1e-3}};
          const ReplayTotals totals = replay_requests(list, shape, affine_costs()).counts.totals;
          EXPECT_EQ(totals.finished, 600);
          EXPECT_NEAR(totals.present / totals.stayed, 1.0, 1e-9);
          EXPECT_LE(totals.kv_peak, 1.0);
          EXPECT_GE(totals.prefix_hit_tokens, known);
          known = totals.prefix_hit_tokens;
          if (tiers.empty()) without = known;
        }
        EXPECT_GT(known, without);
      }
}

TEST(KvTiers, TextsOfTiersAreReadBack) {
  for (const char* text : {"none", "nvme:4TB@7GB/s", "nvme:500GB@7GB/s@80us", "remote:1TB",
                           "remote:1TB@20GB/s", "nvme:4TB@7GB/s+remote:2TB@25GB/s@2000us"})
    EXPECT_EQ(kv_tiers_text(parse_kv_tiers(text, {"", "--kv_tiers"})), text);
  for (const char* text : {"", "nvme", "nvme:4TB", "nvme:0TB@7GB/s", "nvme:4TB@0GB/s", "disk:1TB",
                           "remote:1TB+nvme:4TB@7GB/s", "nvme:1TB@1GB/s+nvme:1TB@1GB/s",
                           "remote:1TB@1GB/s@1ms@2", "remote:-1TB"})
    EXPECT_THROW(parse_kv_tiers(text, {"", "--kv_tiers"}), Error) << text;
}

}  // namespace
}  // namespace orrery::kv_tiers_test
