#include "sim/serving/pooled_serving.hpp"

#include <gtest/gtest.h>

#include "sim/serving/request_traffic.hpp"

namespace orrery::pooled_serving_test {
namespace {

const Place place{"test", ""};

PricedPools priced(const std::string& prefill, const std::string& decode, bool apart = true,
                   const std::string& engine = "sglang",
                   const std::string& model = "llama3.1-70b") {
  PoolsRequest request;
  parse_pool(prefill, request.prefill, place);
  parse_pool(decode, request.decode, place);
  request.apart = apart;
  return price_pools(model, "dgx-h200", engine, request, place, place, place);
}

ServingLoad closed(int clients, std::int64_t requests) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::closed;
  traffic.concurrency = clients;
  traffic.requests = requests;
  traffic.prompt = {LengthDistribution::Kind::uniform, 800, 1000, 0.0};
  traffic.output = {LengthDistribution::Kind::uniform, 100, 200, 0.0};
  ServingLoad load;
  load.list = sample_requests(traffic);
  return load;
}

// Eight ranks send to eight ranks, each an eighth by a NIC of its own, or by NVLink; four ranks
// send with four NICs, whatever the receivers are.
TEST(PooledServing, ASinglePromptGoesOverAllNicsOfTheSmallerSide) {
  const Bytes kv{327'680.0 * 8192};
  const EnginePools engine = *read_serving_engine("vllm", place).pools;
  const auto rate = [&](const PricedPools& pools) {
    const IsolatedTransfer single = isolated_transfer(pools, 8192);
    EXPECT_EQ(single.kv, kv);
    EXPECT_EQ(single.sent.si(), kv.si());
    return kv / (single.inside ? single.time : single.time - engine.network_latency);
  };
  const BytesPerSecond eight = rate(priced("tp=8", "tp=8"));
  const BytesPerSecond four = rate(priced("tp=4", "tp=8"));
  EXPECT_NEAR(rate(priced("tp=8", "tp=4")) / four, 1.0, 0.01);
  EXPECT_NEAR(eight / four, 2.0, 0.02);
  const System system = read_system("dgx-h200", place);
  EXPECT_LE(eight, engine.network_share * 8.0 * system.nic);
  EXPECT_GT(eight, 0.8 * engine.network_share * 8.0 * system.nic);
  // In one node NVLink carries it.
  EXPECT_GT(rate(priced("tp=4", "tp=4", false)), 4.0 * rate(priced("tp=4", "tp=4")));
}

// Each rank of a latent cache needs all of it.
TEST(PooledServing, ALatentCacheGoesToEveryRank) {
  const IsolatedTransfer single = isolated_transfer(
      priced("tp=8,weights=fp8_block", "tp=8,weights=fp8_block", true, "sglang", "deepseek-v3"),
      1000);
  EXPECT_EQ(single.kv, Bytes{70'272'000});
  EXPECT_NEAR(single.sent.si(), 8 * 70'272'000.0, 1e-3);
  EXPECT_EQ(single.flows, 8);
}

TEST(PooledServing, CountsTokensOverTheGpusOfBothPools) {
  const PricedPools pools = priced("tp=4,replicas=2", "tp=8");
  const ServingLoad load = closed(32, 320);
  const ServingRun run = serve_pools(pools, load);
  std::int64_t tokens = 0, prompts = 0;
  for (const Request& request : load.list.requests) {
    tokens += request.output_tokens;
    prompts += request.prompt_tokens;
  }
  EXPECT_EQ(run.gpus(), 16);
  EXPECT_EQ(run.replay.counts.totals.finished, 320);
  EXPECT_NEAR(run.output_tokens_per_s() * run.span().si(), static_cast<double>(tokens), 1e-6);
  ASSERT_TRUE(run.pools);
  EXPECT_EQ(run.pools->transfers.tokens, prompts);
  EXPECT_NEAR(run.pools->transfers.kv.si(), 327'680.0 * static_cast<double>(prompts), 1.0);
  for (const PoolOutcome* pool : {&run.pools->prefill, &run.pools->decode}) {
    EXPECT_GT(pool->busy, 0.0);
    EXPECT_LE(pool->busy, 1.0 + 1e-9);
  }
  EXPECT_EQ(run.pools->prefill.bound, Bound::compute);
}

// Prompts no longer hold up those that decode.
TEST(PooledServing, PoolsHaveNoPromptsBetweenTokens) {
  const ServingLoad load = closed(64, 640);
  const PricedServing together{
      make_serving_setup("llama3.1-70b", "dgx-h200", "sglang", {}, 8, place)};
  const ServingRun pooled = serve_pools(priced("tp=8", "tp=8"), load);
  const ServingRun one = serve_requests(together, load, place);
  EXPECT_LT(pooled.replay.counts.itl.percentile(0.99), one.replay.counts.itl.percentile(0.99));
  EXPECT_LT(pooled.replay.counts.tpot.mean(), one.replay.counts.tpot.mean());
}

TEST(PooledServing, MoreReplicasOfThePoolThatLimitsGiveMoreTokens) {
  const ServingLoad load = closed(128, 640);
  double last = 0.0;
  for (const std::string replicas : {"1", "2", "4"}) {
    const double now =
        serve_pools(priced("tp=1,weights=fp8,replicas=" + replicas, "tp=8,weights=fp8"), load)
            .output_tokens_per_s();
    EXPECT_GT(now, last * 1.05) << replicas;
    last = now;
  }
}

}  // namespace
}  // namespace orrery::pooled_serving_test
