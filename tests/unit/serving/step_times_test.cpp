#include "sim/serving/step_times.hpp"

#include <gtest/gtest.h>

#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::step_times_test {
namespace {

// Linear functions are met exactly by tables that are linear between their places, and so is the
// square of a prompt's length, which is tabled a token.
TEST(StepTimes, MeetsLinearCostsAndThePromptsSquareExactly) {
  StepCosts costs = affine_costs();
  costs.prefill_attention = [](double q, double p) {
    return Seconds{1e-9 * (q * p + 0.5 * q * q)};
  };
  StepTimes times{costs};
  for (const std::int64_t n : {1, 7, 64, 65, 100, 777, 1024})
    for (const std::int64_t context : {n, 17 * n, 1000 * n + 13}) {
      const DecodeSteps steps = times.decode(n, context);
      const auto requests = static_cast<double>(n), tokens = static_cast<double>(context);
      const double expected = costs.dense(requests).si() + costs.head(requests).si() +
                              costs.decode_attention(requests, tokens).si();
      EXPECT_NEAR(steps.first.si() / expected, 1.0, 1e-12) << n << " " << context;
      EXPECT_NEAR(steps.growth.si(), 2e-9 * requests, 1e-15);
    }
  for (const std::uint32_t q : {1u, 16u, 100u, 1000u, 8191u})
    for (const std::uint32_t p : {0u, 1u, 100u, 4097u}) {
      const double expected =
          costs.dense(q).si() + costs.head(1).si() + costs.prefill_attention(q, p).si();
      EXPECT_NEAR(times.mixed(0, 0, {{q, p}}, 1).si() / expected, 1.0, 1e-12) << q << " " << p;
    }
}

TEST(StepTimes, StepsAddUpAndEndWhereTheSpanDoes) {
  for (const double growth : {0.0, 1e-9, 1e-5, 1e-3}) {
    const DecodeSteps steps{Seconds{0.01}, Seconds{growth}, 1000000};
    double sum = 0.0;
    for (std::int64_t k = 1; k < 400; ++k) {
      sum += 0.01 + static_cast<double>(k - 1) * growth;
      ASSERT_NEAR(steps.time(k).si() / sum, 1.0, 1e-12);
      EXPECT_EQ(steps.until(Seconds{steps.time(k).si() * (1 - 1e-12)}), k);
      EXPECT_EQ(steps.until(Seconds{steps.time(k).si() * (1 + 1e-12)}), k + 1);
    }
    EXPECT_EQ(steps.until(Seconds{}), 1);
  }
}

// Step by step, whether the table's cell or the host's time ends what holds for several steps, or a
// stage with more layers catches up with the last one, which has the head.
TEST(StepTimes, SumsOverStepsAreTheirSteps) {
  StepCosts costs = affine_costs();
  costs.host = [](double n) { return Seconds{0.012 + 1e-5 * n}; };
  for (const auto& [hidden, stages] : {std::pair{true, 1}, {false, 1}, {true, 4}}) {
    costs.host_hidden = hidden;
    costs.stages = stages;
    costs.longest_stage = stages == 1 ? 1.0 : 0.2612;  // 200 requests: at 207,000 tokens.
    costs.last_stage = stages == 1 ? 1.0 : 0.25;
    StepTimes times{costs};
    for (const std::int64_t n : {1, 5, 200}) {
      std::int64_t context = 10 * n;
      for (int cell = 0; cell < 60; ++cell) {
        const DecodeSteps steps = times.decode(n, context);
        for (std::int64_t k = 0; k < steps.steps; k += 1 + steps.steps / 5)
          ASSERT_NEAR(times.decode(n, context + k * n).first.si(),
                      (steps.first + static_cast<double>(k) * steps.growth).si(), 1e-12)
              << n << " " << context << " " << k;
        context += steps.steps * n;
      }
    }
  }
}

TEST(StepTimes, TheLongerOfHostAndGpuOrTheirSum) {
  StepCosts costs = fixed_costs(Seconds{0.010});
  costs.host = [](double) { return Seconds{0.004}; };
  costs.gap = [](double) { return Seconds{0.001}; };
  EXPECT_NEAR(StepTimes{costs}.decode(4, 100).first.si(), 0.011, 1e-12);
  costs.host_hidden = false;
  EXPECT_NEAR(StepTimes{costs}.decode(4, 100).first.si(), 0.015, 1e-12);
  costs.launch = [](double tokens, bool) { return Seconds{tokens > 512 ? 0.1 : 0.0}; };
  EXPECT_NEAR(StepTimes{costs}.mixed(0, 0, {{600, 0}}, 1).si(), 0.105, 1e-12);
  EXPECT_NEAR(StepTimes{costs}.decode(600, 6000).first.si(), 0.105, 1e-12);
  EXPECT_NEAR(StepTimes{costs}.mixed(0, 0, {{500, 0}}, 1).si(), 0.015, 1e-12);
}

// A step of decodes alone is as long as that of the graph that holds it, but for attention; with a
// prompt there is no graph.
TEST(StepTimes, DecodesFillTheirGraph) {
  StepCosts costs = fixed_costs(Seconds{});
  costs.dense = [](double tokens) { return Seconds{1e-3 * tokens}; };
  const auto bare = StepTimes{costs}.decode(48, 480).first;
  costs.padded = [](std::int64_t requests) { return requests <= 64 ? 64 : requests; };
  StepTimes padded{costs};
  EXPECT_NEAR((padded.decode(48, 480).first - bare).si(), 16e-3, 1e-12);
  EXPECT_EQ(padded.decode(48, 480).first, padded.decode(64, 640).first);
  EXPECT_EQ(padded.mixed(48, 480, {{10, 0}}, 1), StepTimes{costs}.mixed(48, 480, {{10, 0}}, 1));
  EXPECT_NEAR((padded.mixed(48, 480, {{10, 0}}, 1) - bare).si(), 10e-3, 1e-9);
}

}  // namespace
}  // namespace orrery::step_times_test
