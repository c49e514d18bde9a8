// Sharded weights: what a step of ZeRO-2 and ZeRO-3 takes, from prices chosen by hand.
#include <gtest/gtest.h>

#include "tests/closed_form/hand_made.hpp"

namespace orrery::sharding_test {
namespace {

constexpr int units = 5;
constexpr std::int64_t unit_parameters = 50'000'000;

// One stage over four replicas in a node; `m` micro-batches each.
Scenario replicas(int zero, int m, bool overlap, bool reshard = true) {
  PlanRequest request = plan_request(1, 1, 1, std::int64_t{m} * 4, 64, "megatron-core");
  request.zero = zero;
  if (zero == 3) request.reshard = reshard;
  request.dp_overlap = overlap;
  return scenario_of(small_gpt(units, 64, 4, 128), without_latency(), request, 4);
}

std::shared_ptr<StepCost> unit_prices(const Scenario& scenario, Seconds forward, Seconds backward) {
  auto cost = prices(scenario, units * forward, units * backward, {}, units * unit_parameters);
  StageCost& stage = cost->stages.front();
  stage.buckets.clear();
  for (int u = 0; u < units; ++u)  // The last is still whole when the backward pass begins.
    stage.buckets.push_back({kernels(forward),
                             kernels(backward),
                             {unit_parameters, 0},
                             {unit_parameters, 0},
                             {scenario.plan.reshard && u + 1 < units ? unit_parameters : 0, 0}});
  return cost;
}

Seconds collective(const Scenario& scenario, CollectiveKind kind, double bytes) {
  return CollectiveTime{scenario.system}(kind, Bytes{bytes * unit_parameters}, {4, 1, 4}).time();
}
Seconds gather_of(const Scenario& scenario) {
  return collective(scenario, CollectiveKind::all_gather, 2.0);
}
Seconds reduce_of(const Scenario& scenario) {
  return collective(scenario, CollectiveKind::reduce_scatter, scenario.software.gradient_bytes);
}

// The norm of the gradients closes a step; a rank by itself has nothing to wait for.
Seconds step_of(const Scenario& scenario, Seconds forward, Seconds backward) {
  return simulate(scenario, unit_prices(scenario, forward, backward));
}

// The kernels are longer than the concurrent traffic: exposed are the first gather of every forward
// pass and the last reduction.
TEST(Sharding, LongKernelsHideAllButTheEnds) {
  for (int m : {1, 3}) {
    const Scenario scenario = replicas(3, m, true);
    const Seconds gather = gather_of(scenario);
    const Seconds reduce = reduce_of(scenario);
    const Seconds forward = 1.5 * (gather + reduce);
    const Seconds backward = 3.0 * (gather + reduce);
    const Seconds expected = m * (gather + units * (forward + backward)) + reduce;
    EXPECT_NEAR(step_of(scenario, forward, backward) / expected, 1.0, 1e-6) << m;
  }
}

// Short kernels run as their weights come: all gathers and reductions one after another. The last
// unit's backward pass needs no gather; while it runs, the next one's is on its way.
TEST(Sharding, ShortKernelsWaitForTheStream) {
  const Scenario scenario = replicas(3, 1, true);
  const Seconds gather = gather_of(scenario);
  const Seconds reduce = reduce_of(scenario);
  const Seconds kernel = 0.01 * gather;
  // Gathers of the forward pass, its last kernel; then each gather of the backward pass and each
  // reduction. The first backward gather starts with the last forward kernel, a gather ahead.
  const Seconds expected = units * gather + (units - 1) * gather + units * reduce + 2.0 * kernel;
  EXPECT_NEAR(step_of(scenario, kernel, kernel) / expected, 1.0, 0.02);
}

// Without overlap everything is in a row.
TEST(Sharding, WithoutOverlapTimesAddUp) {
  for (int m : {1, 2}) {
    const Scenario scenario = replicas(3, m, false);
    const Seconds gather = gather_of(scenario);
    const Seconds reduce = reduce_of(scenario);
    const Seconds kernel = gather;
    const Seconds expected = m * ((2.0 * units - 1.0) * gather + units * (reduce + 2.0 * kernel));
    EXPECT_NEAR(step_of(scenario, kernel, kernel) / expected, 1.0, 1e-6) << m;
  }
}

// Weights that stay whole after the forward pass save the backward pass's gathers.
TEST(Sharding, KeepingWeightsSavesTheSecondGather) {
  const Scenario again = replicas(3, 2, false, true);
  const Scenario kept = replicas(3, 2, false, false);
  const Seconds kernel = gather_of(again);
  const Seconds saved = step_of(again, kernel, kernel) - step_of(kept, kernel, kernel);
  EXPECT_NEAR(saved / (2.0 * (units - 1.0) * gather_of(again)), 1.0, 1e-6);
}

// ZeRO-2 reduces in every micro-batch, ZeRO-1 in the last: without overlap that many times more.
TEST(Sharding, ShardedGradientsAreReducedEveryTime) {
  const int m = 4;
  const Scenario whole = replicas(1, m, false);
  const Scenario sharded = replicas(2, m, false);
  const Seconds kernel = gather_of(whole);
  const Seconds more = step_of(sharded, kernel, kernel) - step_of(whole, kernel, kernel);
  const Seconds once =
      collective(whole, CollectiveKind::reduce_scatter, units * whole.software.gradient_bytes);
  // One large reduction or one a unit: bytes are the same, and there are no latencies.
  EXPECT_NEAR(more / ((m - 1.0) * once), 1.0, 0.05);
}

// A member sends its share of each gather and reduction, (n - 1) / n of the tensor.
TEST(Sharding, BytesAreThoseOfThePublication) {
  for (int zero : {2, 3})
    for (int m : {1, 3}) {
      const Scenario scenario = replicas(zero, m, true);
      const Placement placement{scenario.plan, scenario.system};
      const RankClasses classes = RankClasses::folded(placement);
      Topology topology = Topology::build(scenario.system, 4);
      const TrainingStep step = build_training_step(
          scenario, unit_prices(scenario, Seconds{1.0}, Seconds{2.0}),
          StepTraffic{scenario, CollectiveTime{scenario.system}, placement.shapes()}, classes,
          topology, true);
      double gathered = 0.0;
      double reduced = 0.0;
      for (int i = 0; i < step.graph.size(); ++i) {
        const Label::What what = step.label(TaskId{i}).what;
        for (const Flow& flow : step.graph.task(TaskId{i}).flows) {
          if (what == Label::What::weights) gathered += flow.bytes.si();
          if (what == Label::What::gradients) reduced += flow.bytes.si();
        }
      }
      // Rajbhandari et al. (arXiv 1910.02054), section 7.2: ZeRO-3 gathers the weights for the
      // forward and for the backward pass, and reduces as ZeRO-2 does.
      const double all = 3.0 / 4 * unit_parameters;
      EXPECT_NEAR(reduced, m * units * scenario.software.gradient_bytes * all, 10.0);
      EXPECT_NEAR(gathered, zero == 3 ? m * (2.0 * units - 1) * 2.0 * all : units * 2.0 * all,
                  10.0);
    }
}

}  // namespace
}  // namespace orrery::sharding_test
