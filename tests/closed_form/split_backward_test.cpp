// Whole steps of schedules whose backward passes come in two, against the formulas of their papers.
// tests/unit/schedule has the orders alone, over more cases.
#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/closed_form/hand_made.hpp"

namespace orrery::split_backward_test {
namespace {

constexpr Seconds tf{1.0};
constexpr Seconds tb{1.2};  // Of the inputs alone.
constexpr Seconds tw{0.8};
constexpr Bytes next_to_nothing{1.0};
constexpr double tolerance = 1e-6;

std::string label(const Plan& plan) {
  return plan.schedule->name() + " p=" + std::to_string(plan.pp) +
         " m=" + std::to_string(plan.microbatches);
}

Seconds step(const Scenario& scenario) {
  return simulate(scenario, prices(scenario, tf, tb + tw, next_to_nothing, 1, tw));
}

// Qi et al., arXiv 2401.10241, table 2: idle for (p-1)(f + b - w), and where no stage waits for
// another at the end (p-1)(f + b - 2w), of the longest stage.
TEST(SplitBackward, ZeroBubbleTakesTheClosedForm) {
  for (int p : {1, 2, 3, 4, 8})
    for (int m : {2 * p, 2 * p + 1, 3 * p, 4 * p}) {
      Scenario scenario = pipeline(without_latency(), &zb_h1(), p, 1, m);
      SCOPED_TRACE(label(scenario.plan));
      EXPECT_NEAR(step(scenario).si(), (m * (tf + tb + tw) + (p - 1) * (tf + tb - tw)).si(),
                  tolerance);
      scenario = pipeline(without_latency(), &zb_h2(), p, 1, m);
      scenario.software.optimizer_post_validation = true;
      EXPECT_NEAR(step(scenario).si(), (m * (tf + tb + tw) + (p - 1) * (tf + tb - 2.0 * tw)).si(),
                  tolerance);
    }
}

// The same stages in the same order, where all wait for the norm of all gradients: the last stage
// begins (p-1) f after the first one. Their wait is what post validation saves.
TEST(SplitBackward, WaitingAtTheEndCostsTheFill) {
  for (int p : {2, 4, 8}) {
    const Scenario scenario = pipeline(without_latency(), &zb_h2(), p, 1, 3 * p);
    SCOPED_TRACE(label(scenario.plan));
    EXPECT_NEAR(step(scenario).si(), (3 * p * (tf + tb + tw) + (p - 1) * tf).si(), tolerance);
  }
}

// Equal passes: none idle with 2 p micro-batches held, (p-1) passes with p (arXiv 2401.10241,
// figures 2 and 3, which the heuristic finds).
TEST(SplitBackward, HeuristicFindsTheBestOfEqualPasses) {
  for (int p : {2, 4, 8})
    for (const Schedule* kind : {&zb_1p(), &zb_2p()}) {
      Scenario scenario = pipeline(without_latency(), kind, p, 1, 4 * p);
      scenario.software.optimizer_post_validation = true;
      SCOPED_TRACE(label(scenario.plan));
      const int idle = kind == &zb_1p() ? p - 1 : 0;
      EXPECT_NEAR(simulate(scenario, prices(scenario, tf, 2.0 * tf, next_to_nothing, 1, tf)).si(),
                  (4 * p * 3.0 * tf + idle * tf).si(), tolerance);
    }
}

// DeepSeek-V3, arXiv 2412.19437, table 2, without experts, whose exchanges two passes hide:
// (p/2-1)(f + b - 2w), b of the whole backward pass.
TEST(SplitBackward, DualPipeTakesTheClosedForm) {
  for (int p : {2, 4, 8})
    for (int m : {2 * p, 2 * p + 2, 4 * p}) {
      const Scenario scenario = pipeline(without_latency(), &dualpipe(), p, 1, m);
      SCOPED_TRACE(label(scenario.plan));
      EXPECT_NEAR(step(scenario).si(), (m * (tf + tb + tw) + (p / 2 - 1) * (tf + tb - tw)).si(),
                  tolerance);
    }
}

// Both ranks of a pipeline of two hold both stages, of S = 2 bytes x 1e9 parameters each. Two
// all-reduces over two ranks follow each other on links of 10 GB/s: S each.
TEST(SplitBackward, DualPipeSumsGradientsOfBothCopies) {
  const System system = read_system("four-by-four", test_place);
  const Scenario scenario = pipeline(system, &dualpipe(), 2, 1, 4);
  const Scenario alone = pipeline(system, &one_f_one_b(), 2, 1, 4);
  const auto length = [](const Scenario& of, std::int64_t parameters) {
    return simulate(of, prices(of, tf, tb + tw, next_to_nothing, parameters, tw)).si();
  };
  EXPECT_NEAR(length(scenario, 1'000'000'000) - length(scenario, 1), 2 * 2e9 / 10e9, 1e-8);
  EXPECT_NEAR(length(alone, 1'000'000'000), length(alone, 1), 1e-8);
}

// Activations of as many micro-batches as the orders hold; weights and gradients of a DualPipe
// stage and its mirror, whose optimizer states ZeRO-1 spreads over both.
TEST(SplitBackward, Memory) {
  const auto memory = [](const Schedule* kind, int zero = 0) {
    Scenario scenario = pipeline(without_latency(), kind, 4, 1, 16, 2);
    scenario.plan.zero = zero;
    return memory_of(scenario).stages;
  };
  const auto plain = memory(&one_f_one_b());
  const Bytes each = plain[3].activations;  // 1F1B's last stage holds one.
  const std::pair<const Schedule*, int> held[] = {
      {&zb_h1(), 4}, {&zb_h2(), 7}, {&zb_1p(), 4}, {&zb_2p(), 8}, {&dualpipe(), 5}};
  for (const auto& [kind, count] : held)
    for (int stage : {1, 2})
      EXPECT_NEAR(memory(kind)[static_cast<std::size_t>(stage)].activations.si(),
                  (plain[2].activations / 2.0 * count).si(), 1.0)
          << kind->name();
  EXPECT_GT(each.si(), 0.0);
  const auto dual = memory(&dualpipe());
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const std::size_t mirror = 3 - stage;
    EXPECT_DOUBLE_EQ(dual[stage].weights.si(),
                     plain[stage].weights.si() + plain[mirror].weights.si());
    EXPECT_DOUBLE_EQ(dual[stage].optimizer.si(),
                     plain[stage].optimizer.si() + plain[mirror].optimizer.si());
    EXPECT_DOUBLE_EQ(memory(&dualpipe(), 1)[stage].optimizer.si(),
                     dual[stage].optimizer.si() / 4.0);  // Two replicas, two copies in each.
  }
}

}  // namespace
}  // namespace orrery::split_backward_test
