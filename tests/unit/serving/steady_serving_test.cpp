#include "sim/serving/steady_serving.hpp"

#include <gtest/gtest.h>

#include "sim/serving/serving_run.hpp"

namespace orrery::steady_serving_test {
namespace {

PricedServing priced_of(const std::string& engine, int tp, int gpus) {
  DeploymentRequest request;
  request.tp = tp;
  return PricedServing{
      make_serving_setup("llama3.1-8b", "dgx-h100", engine, request, gpus, {"", ""})};
}

TEST(SteadyServing, ThroughputRisesAndAUsersSpeedFallsWithConcurrency) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    const PricedServing priced = priced_of(engine, 1, 1);
    double throughput = 0.0;
    Seconds tpot;
    for (const std::int64_t concurrency : {1, 2, 4, 8, 16, 32, 64, 128}) {
      const SteadyState state = steady_state(priced, {1024, 1024, concurrency}, {"", ""});
      EXPECT_GT(state.output_tokens_per_s, throughput) << engine << " " << concurrency;
      EXPECT_GT(state.tpot.si(), 0.999 * tpot.si()) << engine << " " << concurrency;
      throughput = state.output_tokens_per_s;
      tpot = state.tpot;
    }
  }
}

TEST(SteadyServing, ASingleRequestHasStepsOfOneAndItsShareOfItsPrompt) {
  const PricedServing priced = priced_of("sglang", 1, 1);
  const SteadyState state = steady_state(priced, {1024, 256, 1}, {"", ""});
  const IterationPrices& prices = priced.prices;
  // A context of 1,024 + 128 tokens halfway, and one prompt every 256 tokens.
  const Seconds decode =
      std::max(prices.dense(1) + prices.decode_attention(1, 1152) + prices.head(1),
               prices.host(1)) +
      prices.gap(1);
  const Seconds prompt =
      std::max(std::max(prices.dense(1024) + prices.prefill_attention({1024, 0}) + prices.head(1),
                        prices.eager(1024, false)),
               prices.host(1)) +
      prices.gap(1);
  EXPECT_NEAR(state.decode_step / decode, 1.0, 1e-12);
  EXPECT_NEAR(state.tpot / (decode + prompt / 256.0), 1.0, 1e-12);
  EXPECT_FALSE(state.kv_bound);
}

TEST(SteadyServing, TheCacheBoundsWhatRunsAtOnce) {
  const PricedServing priced = priced_of("vllm", 1, 1);
  const SteadyState state = steady_state(priced, {20'000, 4'000, 512}, {"", ""});
  EXPECT_TRUE(state.kv_bound);
  EXPECT_EQ(state.running, static_cast<double>(priced.kv.tokens / 22'000));
}

// First answers are cut for a steady state alone: a run that is too short for one has whole ones.
TEST(SteadyServing, RunsTooShortForASteadyStateHaveWholeAnswers) {
  for (const bool short_run : {false, true}) {
    ServingLoad load;
    load.part = MeasuredPart::steady;
    load.traffic.concurrency = 8;
    load.traffic.requests = 20;
    load.traffic.stationary = true;
    load.traffic.prompt = parse_length_distribution("100", {"", ""});
    load.traffic.output = parse_length_distribution("128", {"", ""});
    load.list = requests_of(load);
    std::vector<std::int64_t> made;
    serve_until_steady(
        [&](const ServingLoad& served) {
          made.push_back(0);
          for (const Request& request : served.list.requests) made.back() += request.output_tokens;
          ServingRun run;
          run.window.whole = short_run;
          return run;
        },
        load, 1);
    EXPECT_LT(made.front(), 20 * 128);
    EXPECT_EQ(made.size(), short_run ? 2 : 1);
    EXPECT_EQ(made.back() == 20 * 128, short_run);
  }
}

TEST(SteadyServing, ReplicasShareTheRequests) {
  const SteadyState one = steady_state(priced_of("vllm", 1, 1), {1024, 1024, 16}, {"", ""});
  const SteadyState four = steady_state(priced_of("vllm", 1, 4), {1024, 1024, 64}, {"", ""});
  EXPECT_EQ(four.tpot, one.tpot);
  EXPECT_NEAR(four.output_tokens_per_s / one.output_tokens_per_s, 4.0, 1e-12);
}

}  // namespace
}  // namespace orrery::steady_serving_test
