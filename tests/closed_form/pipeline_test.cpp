// Lengths of whole steps that can be written down, through the real path: placement, cast, task
// graph, SimGrid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/closed_form/hand_made.hpp"

namespace orrery::pipeline_test {
namespace {

constexpr Seconds tf{1.0};
constexpr Seconds tb{2.0};
// A byte at 1 GB/s takes a nanosecond, that of all transfers together stays below a microsecond.
constexpr Bytes next_to_nothing{1.0};
constexpr double tolerance = 1e-6;

// With equal stages and free communication the critical path goes down the pipeline with
// micro-batch 0, through the last stage's m forward/backward pairs, and back up:
//     (p-1) tf + m (tf+tb) + (p-1) tb  =  (m+p-1) (tf+tb)
// so that the bubble is (p-1)/m of the ideal. GPipe takes as long: 1F1B saves memory, not time.
TEST(Pipeline, GpipeAndOneFOneBTakeTheClosedForm) {
  for (const Schedule* kind : {&gpipe(), &one_f_one_b()})
    for (int p : {1, 2, 3, 4, 8})
      for (int m : {1, 2, 4, 7, 16}) {
        SCOPED_TRACE(kind->name() + " p=" + std::to_string(p) + " m=" + std::to_string(m));
        const Scenario scenario = pipeline(without_latency(), kind, p, 1, m);
        EXPECT_NEAR(simulate(scenario, prices(scenario, tf, tb, next_to_nothing)).si(),
                    (m + p - 1) * 3.0, tolerance);
      }
}

// v chunks a stage, each a v-th of its work: a stage's first work arrives after p-1 passes of one
// chunk instead of one stage, and so for the last (Narayanan et al., arXiv 2104.04473, 2.2):
//     m (tf+tb) + (p-1)/v (tf+tb)
// Plain 1F1B would take (p-1) instead of (p-1)/v: 3 s more already for p = 2, v = 2.
TEST(Pipeline, InterleavingDividesTheBubble) {
  for (int p : {2, 3, 4})
    for (int v : {2, 3, 4})
      for (int groups : {1, 2, 4}) {
        const int m = groups * p;
        SCOPED_TRACE("p=" + std::to_string(p) + " v=" + std::to_string(v) +
                     " m=" + std::to_string(m));
        const double expected = (m + static_cast<double>(p - 1) / v) * 3.0;
        for (const Schedule* kind : {&interleaved(), &looped_bfs()}) {
          const Scenario scenario = pipeline(without_latency(), kind, p, v, m);
          EXPECT_NEAR(simulate(scenario, prices(scenario, tf / v, tb / v, next_to_nothing)).si(),
                      expected, tolerance);
        }
      }
}

// Behind each local batch of m micro-batches the pipeline drains: the first stage begins the next
// one when its last backward pass ends, and no other stage can hold it up. So R local batches take
//     R (m + (p-1)/v) (tf+tb)
// and hold what one of them does.
TEST(Pipeline, DrainsBehindEachLocalBatch) {
  for (const auto& [kind, v] : {std::pair{&one_f_one_b(), 1}, {&gpipe(), 1}, {&interleaved(), 2}})
    for (int p : {2, 3, 4})
      for (int m : {p, 2 * p})
        for (int rounds : {1, 2, 5}) {
          SCOPED_TRACE(kind->name() + " p=" + std::to_string(p) + " m=" + std::to_string(m) +
                       " rounds=" + std::to_string(rounds));
          Scenario scenario = pipeline(without_latency(), kind, p, v, m * rounds);
          scenario.plan.local_batch = m;  // A micro-batch has one sequence.
          EXPECT_NEAR(simulate(scenario, prices(scenario, tf / v, tb / v, next_to_nothing)).si(),
                      rounds * (m + static_cast<double>(p - 1) / v) * 3.0, tolerance);
          const Scenario once = pipeline(without_latency(), kind, p, v, m);
          EXPECT_EQ(memory_of(scenario).stages.front().activations,
                    memory_of(once).stages.front().activations);
        }
}

// A local batch is a multiple of the micro-batch and divides what a replica has of a step.
TEST(Pipeline, LocalBatchesDivideTheStep) {
  const auto refusal = [](std::int64_t local, const Schedule* schedule) {
    PlanRequest request = plan_request(1, 2, 2, 32, 64, "megatron-2021");
    request.local_batch = local;
    request.schedule = schedule;
    return error_text(
        [&] { scenario_of(small_gpt(8, 64, 4, 128), without_latency(), request, 4); });
  };
  EXPECT_THAT(refusal(3, &one_f_one_b()), testing::HasSubstr("not a multiple of mbs=2"));
  EXPECT_THAT(refusal(6, &one_f_one_b()), testing::HasSubstr("does not divide the 16 sequences"));
  EXPECT_THAT(refusal(8, &dualpipe()), testing::HasSubstr("its own order of a whole step"));
  EXPECT_EQ(refusal(8, &one_f_one_b()), "no error");
}

// One micro-batch goes down and up; nothing can hide its 2 (p-1) transfers of
//     c = network latency + S / NIC = 10 us + 1e9 B / 1 GB/s       (p = 4: a GPU a stage and node)
// The optimizer waits for the gradient norm, an all-reduce of 8 bytes over the four ranks, one a
// node, whose latency is the lesser of the ring's 2 x 3 and the tree's 2 log2(4) hops of 10 us.
TEST(Pipeline, ASingleMicrobatchPaysEveryTransfer) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 1;
  const Scenario scenario = pipeline(system, &one_f_one_b(), 4, 1, 1);
  const double transfer = 10e-6 + 1.0;
  const double norm = 4 * 10e-6;
  EXPECT_NEAR(simulate(scenario, prices(scenario, tf, tb, Bytes{1e9})).si(),
              4 * 3.0 + 2 * 3 * transfer + norm, 1e-7);
}

// Gradients after the last backward pass, over dp = 4 ranks of one node: a ring all-reduce of
//     S = 2 bytes x 1e9 parameters
// takes 2 (n-1) hops of 1 us and 2 (n-1)/n S / 10 GB/s.
TEST(Pipeline, GradientsCostARingAllReduce) {
  const System system = read_system("four-by-four", test_place);
  const Scenario scenario = pipeline(system, &one_f_one_b(), 1, 1, 3, 4);
  EXPECT_NEAR(simulate(scenario, prices(scenario, tf, tb, next_to_nothing, 1'000'000'000)).si(),
              3 * 3.0 + 6 * 1e-6 + 1.5 * 2e9 / 10e9, 1e-8);
}

// With ZeRO-1 the gradients are reduce-scattered and, after the optimizer, 2-byte weights gathered:
// (n-1)/n S each, as much as the all-reduce in all. The two have (n-1) hops each.
TEST(Pipeline, ZeroOneSendsAsMuchInTwoHalves) {
  const System system = read_system("four-by-four", test_place);
  Scenario scenario = pipeline(system, &one_f_one_b(), 1, 1, 3, 4);
  scenario.plan.zero = 1;
  EXPECT_NEAR(simulate(scenario, prices(scenario, tf, tb, next_to_nothing, 1'000'000'000)).si(),
              3 * 3.0 + 2 * (3 * 1e-6 + 0.75 * 2e9 / 10e9), 1e-8);
}

// Overlapped, a bucket's reduction is concurrent with the backward pass of the next. Two buckets of
// half the parameters each, r = 1.5 x 1e9 B / 10 GB/s = 0.15 s + 6 us a bucket, tb/2 = 1 s each:
// only the second is exposed.
TEST(Pipeline, OverlapExposesTheLastBucketOnly) {
  const System system = read_system("four-by-four", test_place);
  Scenario scenario = pipeline(system, &one_f_one_b(), 1, 1, 3, 4);
  scenario.plan.dp_overlap = true;
  const auto cost = prices(scenario, tf, tb, next_to_nothing, 1'000'000'000);
  cost->stages[0].buckets = {{kernels(tf / 2), kernels(tb / 2), 500'000'000},
                             {kernels(tf / 2), kernels(tb / 2), 500'000'000}};
  EXPECT_NEAR(simulate(scenario, cost).si(), 3 * 3.0 + 0.15 + 6e-6, 1e-8);
}

// First and last stage add up their copies of a tied embedding over the network: an all-reduce of
// two ranks, (2 (n-1)/n = 1) S / 1 GB/s, after the last backward pass.
TEST(Pipeline, TiedEmbeddingIsReducedBetweenTheEnds) {
  System system = without_latency();
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 1;
  const Scenario scenario = pipeline(system, &one_f_one_b(), 2, 1, 2);
  const auto cost = prices(scenario, tf, tb, next_to_nothing);
  cost->tied_gradient_bytes = Bytes{0.5e9};
  EXPECT_NEAR(simulate(scenario, cost).si(), (2 + 1) * 3.0 + 0.5, tolerance);
}

// The slowest stage sets the pace: with stage 1 twice as slow, 1F1B of p = 2 takes
//     tf + m (2 tf + 2 tb) + tb.
TEST(Pipeline, TheSlowestStageSetsThePace) {
  const Scenario scenario = pipeline(without_latency(), &one_f_one_b(), 2, 1, 5);
  const auto cost = prices(scenario, tf, tb, next_to_nothing);
  cost->stages[1].forward = kernels(2.0 * tf);
  cost->stages[1].backward = kernels(2.0 * tb);
  EXPECT_NEAR(simulate(scenario, cost).si(), 1.0 + 5 * 6.0 + 2.0, tolerance);
}

// Two jobs of "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025
// (ByteDance-Seed/StragglerAnalysis at 8efcd7f, AR and ST), from the passes that were measured.
//
// AR: one worker of stage 0 takes F = 546.1 and B = 869.2 ms where others take f = 218.1 and
// b = 383.6. It works all the time but for the first gradient: 3 (f + b) after its first forward
// pass, while it does three more. 32 (F + B) + 3 (f + b) - 3 F = 45.46 s. Measured are 46.65.
// ST: the last stage takes 139.6 and 203.6 ms, the other three 67.3 and 143.7, 4 micro-batches:
// 3 x 0.0673 + 4 x 0.3432 + 3 x 0.1437 = 2.006 s. Measured are 2.214: what a step does after
// its passes is not among what was given.
TEST(Pipeline, StragglersOfByteDance) {
  const Scenario ar = pipeline(without_latency(), &one_f_one_b(), 4, 1, 32);
  const auto slow = prices(ar, Seconds{0.2181}, Seconds{0.3836}, next_to_nothing);
  slow->stages[0].forward = kernels(Seconds{0.5461});
  slow->stages[0].backward = kernels(Seconds{0.8692});
  const double with_a_straggler = simulate(ar, slow).si();
  EXPECT_NEAR(with_a_straggler, 32 * 1.4153 + 3 * 0.6017 - 3 * 0.5461, 1e-4);
  EXPECT_NEAR(with_a_straggler / 46.65, 1.0, 0.03);
  const Scenario st = pipeline(without_latency(), &one_f_one_b(), 4, 1, 4);
  const auto last = prices(st, Seconds{0.0673}, Seconds{0.1437}, next_to_nothing);
  last->stages[3].forward = kernels(Seconds{0.1396});
  last->stages[3].backward = kernels(Seconds{0.2036});
  const double passes = simulate(st, last).si();
  EXPECT_NEAR(passes, 3 * 0.0673 + 4 * 0.3432 + 3 * 0.1437, 1e-4);
  EXPECT_LT(passes, 2.214);
  EXPECT_NEAR(passes / 2.214, 1.0, 0.1);
}

}  // namespace
}  // namespace orrery::pipeline_test
