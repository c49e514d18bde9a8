#include <gtest/gtest.h>

#include <set>

#include "sim/core/random.hpp"
#include "sim/serving/kv_cache.hpp"
#include "sim/serving/request_traffic.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::host_kv_test {
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
TEST(HostKv, ConservesBlocksOverRandomPrompts) {
  for (const bool copies : {false, true})
    for (const std::int64_t host : {1, 5, 40, 2000}) {
      Random random{static_cast<std::uint64_t>(host)};
      KvBlocks kv{{12 * 16, 16, true, host * 16, copies}, 16};
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
        ASSERT_LE(match.nodes + match.host_nodes, path.nodes);
        for (std::size_t node = 0; node < match.nodes + match.host_nodes; ++node)
          ASSERT_TRUE(seen.contains(path[node]));
        for (std::size_t node = match.nodes + match.host_nodes; node < path.nodes; ++node)
          ASSERT_FALSE(kv.host().has(path[node]));  // None is there without those above it.
        for (std::size_t node = 0; !copies && node < match.nodes; ++node)
          ASSERT_FALSE(kv.host().has(path[node]));
        if (kv.cost_of(path, match) > kv.available()) continue;
        hits += static_cast<std::int64_t>(match.host_nodes);
        held.push_back({kv.hold(path, match), path.nodes});
        for (const std::uint64_t hash : hashes) seen.insert(hash);
        const KvBlocks::Match now = kv.match(path);
        ASSERT_EQ(now.nodes, path.nodes);
        for (std::size_t node = 0; node < path.nodes; ++node)
          ASSERT_TRUE(copies ? host < 6 || kv.host().has(path[node]) : !kv.host().has(path[node]));
        ASSERT_LE(kv.host().nodes(), host);
        ASSERT_EQ(kv.host().nodes(), kv.host().stored() - kv.host().taken() - kv.host().dropped());
        ASSERT_LE(kv.used(), kv.capacity());
      }
      EXPECT_TRUE(hits > 0 || host == 1);
      EXPECT_EQ(kv.host().taken(), copies ? 0 : hits);
      // All 1,092 nodes fit in the largest: whatever was asked once is never computed again.
      EXPECT_EQ(kv.host().dropped() == 0, host == 2000);
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
  shape.replica.kv = {4096 + 16, 16, true, host_tokens, copies};
  shape.replica.rules.loading = loading;
  shape.replica.rules.load_token = Seconds{2e-6};
  shape.replica.rules.load_layers = 40;
  return shape;
}

// The prompt was computed, and another took its place on the GPU. All of it but the last block
// comes from the host, 4,080 tokens at 2 us each; then 16 tokens are computed behind them, P
// seconds: after the load, or overlapped layer by layer.
TEST(HostKv, ASinglePromptTakesItsClosedForm) {
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
        EXPECT_EQ(replay.times[2].host_hits, 4080u);
        const ReplayTotals& totals = replay.counts.totals;
        EXPECT_EQ(totals.host_loaded_tokens, 4080);
        // Where blocks move, the first prompt went there, and the second when the first came back.
        EXPECT_EQ(totals.host_stored_tokens, 2 * 4096);
        EXPECT_NEAR(totals.host_time.si(), load, 1e-12);
      }
}

// A host that holds one prompt knows the one that left the GPU, where blocks move; where they are
// copied it holds the one that is on the GPU.
TEST(HostKv, CopiesTakeSpaceThatMovedBlocksDoNot) {
  for (const bool copies : {false, true}) {
    const ReplayShape shape = with_host(HostKvLoading::before, 4096, copies);
    const ReplayTotals totals =
        replay_requests(prompts({1, 2, 1}, Seconds{10}), shape, affine_costs()).counts.totals;
    EXPECT_EQ(totals.host_hit_tokens, copies ? 0 : 4080);
  }
}

// Loads use one link, one after another: the last of n prompts that come at once waits for all.
TEST(HostKv, LoadsShareTheirLinkAndOthersGoOn) {
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
      EXPECT_EQ(replay.times[i].host_hits, 4080u);
      const double loads = static_cast<double>(i - first + 1) * 4080 * 2e-6;
      EXPECT_GE(replay.times[i].ttft.si(), loads + 1e-3 - 1e-9);
      EXPECT_LE(replay.times[i].ttft.si(), loads + 3e-3);
    }
  }
}

// While a prompt is loaded apart, who decodes does not notice.
TEST(HostKv, DecodesGoOnWhileAPromptIsLoadedApart) {
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
      ASSERT_EQ(counts.totals.host_hit_tokens, 4080);
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
TEST(HostKv, KeepsTheInvariantsOfAReplay) {
  const RequestList list = chats(1000);
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const HostKvLoading loading : all_loadings)
      for (const bool copies : {false, true}) {
        ReplayShape shape = one_replica(scheduling);
        shape.replicas = 2;
        shape.replica.kv = {24'000, shape.replica.kv.block_tokens, true, 0, copies};
        shape.replica.rules.plans_ahead = copies;
        shape.replica.rules.loading = loading;
        shape.replica.rules.load_token = Seconds{1e-6};
        shape.replica.rules.load_layers = 40;
        // Less than what is asked again, and more than the GPU, where copies need that.
        const std::int64_t middle = copies ? 30'000 : 20'000;
        std::int64_t known = 0;
        for (const std::int64_t host : {std::int64_t{0}, middle, std::int64_t{1'000'000}}) {
          shape.replica.kv.host_tokens = host;
          shape.replica.replay.unfolded = false;
          shape.replica.replay.workers = 1;
          const ReplayCounts counts = replay_requests(list, shape, affine_costs()).counts;
          const ReplayTotals& totals = counts.totals;
          EXPECT_EQ(totals.finished, 1000);
          EXPECT_NEAR(totals.present / totals.stayed, 1.0, 1e-9);
          EXPECT_LE(totals.kv_peak, 1.0);
          EXPECT_EQ(totals.host_hit_tokens > 0, host > 0);
          EXPECT_LE(totals.host_hit_tokens, totals.host_loaded_tokens);
          EXPECT_GT(totals.prefix_hit_tokens, known);
          known = totals.prefix_hit_tokens;
          shape.replica.replay.workers = 8;
          EXPECT_EQ(replay_requests(list, shape, affine_costs()).counts.bytes(), counts.bytes());
          shape.replica.replay.unfolded = true;
          const ReplayCounts each = replay_requests(list, shape, affine_costs()).counts;
          EXPECT_NEAR(each.ttft.mean() / counts.ttft.mean(), 1.0, 1e-9)
              << scheduling->name << static_cast<int>(loading) << copies << host;
          EXPECT_NEAR(each.e2e.mean() / counts.e2e.mean(), 1.0, 1e-9);
          EXPECT_EQ(each.totals.host_loaded_tokens, totals.host_loaded_tokens);
        }
      }
}

}  // namespace
}  // namespace orrery::host_kv_test
