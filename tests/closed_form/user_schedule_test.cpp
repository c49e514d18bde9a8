// Whole steps of schedules that a user has written out, with virtual stages in the shape of a V.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/closed_form/hand_made.hpp"
#include "tests/support/schedules.hpp"

namespace orrery::user_schedule_test {
namespace {

constexpr Seconds tf{1.0};
constexpr Bytes next_to_nothing{1.0};
constexpr double tolerance = 1e-6;

Scenario zb_v_pipeline(const System& system, int p, int m) {
  return pipeline(system, zb_v_schedule(p, m), p, 2, m);
}

// Qi et al., arXiv 2405.15362, section 4: passes of a chunk that all take f leave no rank idle, so
// that a step takes 6 m f where no rank waits for another at its end, and (p-1) f more where all
// wait for the last one, which begins that much later.
TEST(UserSchedule, ZeroBubbleVTakesTheClosedForm) {
  for (int p : {1, 2, 3, 4, 8})
    for (int m : {2 * p, 2 * p + 1, 4 * p}) {
      SCOPED_TRACE("p=" + std::to_string(p) + " m=" + std::to_string(m));
      Scenario scenario = zb_v_pipeline(without_latency(), p, m);
      const auto cost = prices(scenario, tf, 2.0 * tf, next_to_nothing, 1, tf);
      EXPECT_NEAR(simulate(scenario, cost).si(), ((6 * m + p - 1) * tf).si(), tolerance);
      scenario.software.optimizer_post_validation = true;
      EXPECT_NEAR(simulate(scenario, cost).si(), (6 * m * tf).si(), tolerance);
    }
}

// A micro-batch on its way down and up two ranks, a GPU a node: S / 1 GB/s = 1 s there and 1 s back
// in each direction; nothing where the V turns, on rank 1.
TEST(UserSchedule, TheTurnOfAVSendsNothing) {
  System system = without_latency();
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 1;
  const Schedule& alone =
      user_schedule("alone",
                    "orrery.schedule/1\nstages 2\nchunks 2\nmicrobatches 1\n"
                    "holds 0: 0 3\nholds 1: 1 2\n"
                    "runs 0: F0.0 F0.1 B0.1 B0.0\nruns 1: F0.0 F0.1 B0.1 B0.0\n");
  const Scenario scenario = pipeline(system, &alone, 2, 2, 1);
  EXPECT_NEAR(simulate(scenario, prices(scenario, tf, 2.0 * tf, Bytes{1e9})).si(),
              4 * 3.0 + 2 * 2 * 1.0, tolerance);
}

// The first and last virtual stage are on rank 0: there is one embedding, without a reduction.
TEST(UserSchedule, ATiedEmbeddingIsThereOnce) {
  const System system = without_latency();
  Model model = small_gpt(8, 64, 4, 128);
  model.tied_embeddings = true;
  const auto scenario = [&](const Schedule* schedule) {
    PlanRequest request = plan_request(1, 4, 1, 8, 64, "megatron-2021");
    request.schedule = schedule;
    return scenario_of(model, system, request, 4);
  };
  const Scenario v = scenario(zb_v_schedule(4, 8));
  const Scenario plain = scenario(&one_f_one_b());
  const auto weights = [](const Scenario& of) {
    double sum = 0.0;
    for (const StageMemory& stage : memory_of(of).stages) sum += stage.weights.si();
    return sum;
  };
  const double table = 2.0 * static_cast<double>(v.padded_vocab * model.hidden);
  EXPECT_DOUBLE_EQ(weights(plain) - weights(v), table);
  const auto with_tied = [](const Scenario& of, double bytes) {
    const auto cost = prices(of, tf, 2.0 * tf, next_to_nothing, 1, tf);
    cost->tied_gradient_bytes = Bytes{bytes};
    return simulate(of, cost).si();
  };
  EXPECT_DOUBLE_EQ(with_tied(v, 1e9), with_tied(v, 0.0));
  EXPECT_GT(with_tied(plain, 1e9), with_tied(plain, 0.0));
}

// Each rank holds 2 p halves of what 1F1B's first rank holds p of; rank 0 alone has logits.
TEST(UserSchedule, ZeroBubbleVHoldsAsMuchAsTheFullestOf1F1B) {
  Scenario v = zb_v_pipeline(without_latency(), 4, 8);
  PlanRequest request = plan_request(1, 4, 1, 8, 64, "megatron-2021");
  Scenario plain = scenario_of(v.model, v.system, request, 4);
  v.software.frees_outputs = plain.software.frees_outputs = true;
  const auto stages = memory_of(v).stages;
  const auto of_plain = memory_of(plain).stages;
  for (const StageMemory& stage : stages)
    EXPECT_NEAR(stage.activations.si(), of_plain[0].activations.si(), 1.0);
  EXPECT_DOUBLE_EQ(stages[0].other.si(), of_plain[3].other.si());
  for (std::size_t s : {1u, 2u, 3u}) EXPECT_DOUBLE_EQ(stages[s].other.si(), of_plain[0].other.si());
}

}  // namespace
}  // namespace orrery::user_schedule_test
