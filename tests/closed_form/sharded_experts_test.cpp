// Gradients and weights of models with experts: dense ones are shared by all replicas, experts by
// those ranks that hold the same.
#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/closed_form/hand_made.hpp"

namespace orrery::sharded_experts_test {
namespace {

struct SmallDegrees {
  int tp, pp, dp, ep, etp;
};

// All that fit into two nodes of four GPUs, a stage in each.
std::vector<SmallDegrees> all_degrees() {
  std::vector<SmallDegrees> all;
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2})
      for (int dp : {1, 2, 4})
        for (int ep : {1, 2, 4})
          for (int etp : {1, 2, 4})
            if (tp * dp <= 4 && etp <= tp && tp * dp % (ep * etp) == 0)
              all.push_back({tp, pp, dp, ep, etp});
  return all;
}

constexpr int micro_batches = 2;

// 2,048 channels: a layer fills a bucket of Megatron's by itself.
Scenario mixture_of(const SmallDegrees& degrees, int zero, bool overlap, int copies = 1) {
  PlanRequest request =
      plan_request(degrees.tp, degrees.pp, 1, micro_batches * degrees.dp, 64, "megatron-core");
  request.ep = degrees.ep;
  request.etp = degrees.etp;
  request.zero = zero;
  request.dp_replicate = copies;
  request.dp_overlap = overlap;
  return scenario_of(small_mixture(4, 2048, 16, 128, 4, 2, 1), without_latency(), request,
                     degrees.tp * degrees.pp * degrees.dp);
}

struct Moved {
  double weights = 0.0;
  double gradients = 0.0;
};

TrainingStep step_of(const Scenario& scenario, const Placement& placement,
                     const RankClasses& classes, const Topology& topology) {
  const CollectiveTime collectives{scenario.system};
  auto cost =
      std::make_shared<StepCost>(price_step(scenario, nullptr, collectives, placement.shapes()));
  return build_training_step(scenario, std::move(cost),
                             StepTraffic{scenario, collectives, placement.shapes()}, classes,
                             topology, true);
}

// Bytes that all ranks move together.
Moved moved_by(const Scenario& scenario) {
  const Placement placement{scenario.plan, scenario.system};
  const Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const TrainingStep step =
      step_of(scenario, placement, RankClasses::unfolded(placement), topology);
  EXPECT_EQ(verify(step, scenario.plan), "");
  Moved moved;
  for (int i = 0; i < step.graph.size(); ++i)
    for (const Flow& flow : step.graph.task(TaskId{i}).flows) {
      const Label::What what = step.label(TaskId{i}).what;
      if (what == Label::What::weights) moved.weights += flow.bytes.si();
      if (what == Label::What::gradients) moved.gradients += flow.bytes.si();
    }
  return moved;
}

// A member of a group of n that gathers B bytes, or reduces them to their owners, sends
// (n - 1) / n B of them; who reduces to all does both.
double sent(double bytes, int members) { return bytes * (members - 1) / members; }

// Weights once a step where the optimizer's shards have updated them, with ZeRO-3 in each pass: of
// the backward pass all but embedding, head and the layer before it. Gradients once a step, or with
// ZeRO-2 and 3 of one stage in each backward pass.
Moved expected_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  Moved moved;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const StageParts parts = parts_on_rank(scenario, stage);
    RankParameters all{parts.embedding.dense + parts.head.dense, 0};
    RankParameters again;
    for (std::size_t l = 0; l < parts.layers.size(); ++l) {
      all += parts.layers[l];
      if (plan.reshard && l + 1 < parts.layers.size()) again += parts.layers[l];
    }
    // Without overlap each of Megatron's two optimizers gathers all weights.
    const bool twice = !plan.dp_overlap && plan.ep > 1 && plan.zero < 3;
    const double gathers = plan.zero == 0 ? 0.0 : plan.reshard ? micro_batches : twice ? 2.0 : 1.0;
    const double reductions =
        (plan.zero == 0 ? 2.0 : 1.0) * (plan.zero >= 2 && plan.pp == 1 ? micro_batches : 1.0);
    for (GroupKind kind : {GroupKind::data, GroupKind::expert_data}) {
      const int members = kind == GroupKind::data ? plan.shard_ranks() : plan.expert_shard_ranks();
      const double ranks = plan.gpus() / plan.pp;
      moved.weights += ranks * gathers * scenario.software.weight_bytes *
                       sent(static_cast<double>(all.of(kind) + again.of(kind)), members);
      moved.gradients += ranks * reductions * scenario.software.gradient_bytes *
                         sent(static_cast<double>(all.of(kind)), members);
      // Each shard is summed over its copies: there and back.
      moved.gradients += 2.0 * ranks * reductions * scenario.software.gradient_bytes *
                         sent(static_cast<double>(all.of(kind)) / members, plan.dp_replicate);
    }
  }
  return moved;
}

TEST(ShardedExperts, EveryGradientAndWeightTravels) {
  int with_one_replica = 0;
  for (const SmallDegrees& degrees : all_degrees())
    for (int zero : {0, 1, 2, 3})
      for (bool overlap : {false, true}) {
        const Scenario scenario = mixture_of(degrees, zero, overlap);
        const Moved moved = moved_by(scenario);
        const Moved expected = expected_of(scenario);
        const auto what = [&] {
          return "tp " + std::to_string(degrees.tp) + " pp " + std::to_string(degrees.pp) + " dp " +
                 std::to_string(degrees.dp) + " ep " + std::to_string(degrees.ep) + " etp " +
                 std::to_string(degrees.etp) + " zero " + std::to_string(zero) +
                 (overlap ? " overlapped" : "");
        };
        EXPECT_NEAR(moved.weights, expected.weights, 1e-9 * expected.weights) << what();
        EXPECT_NEAR(moved.gradients, expected.gradients, 1e-9 * expected.gradients) << what();
        if (degrees.dp == 1 && expected.gradients > 0.0) ++with_one_replica;
      }
  EXPECT_GT(with_one_replica, 50);
}

// Of what can be cut into `copies` and leaves shards.
bool has_copies(const SmallDegrees& degrees, int copies) {
  return degrees.dp % copies == 0 && degrees.dp > copies &&
         degrees.tp * degrees.dp / (degrees.ep * degrees.etp) % copies == 0;
}

TEST(CopiesOfShards, EveryGradientAndWeightTravels) {
  int plans = 0, with_whole_experts = 0;
  for (const SmallDegrees& degrees : all_degrees())
    for (int zero : {1, 2, 3})
      for (bool overlap : {false, true}) {
        if (!has_copies(degrees, 2)) continue;
        const Scenario scenario = mixture_of(degrees, zero, overlap, 2);
        const Moved moved = moved_by(scenario);
        const Moved expected = expected_of(scenario);
        EXPECT_NEAR(moved.weights, expected.weights, 1e-9 * expected.weights);
        EXPECT_NEAR(moved.gradients, expected.gradients, 1e-9 * expected.gradients);
        ++plans;
        if (scenario.plan.expert_shard_ranks() == 1) ++with_whole_experts;
      }
  EXPECT_GT(plans, 20);
  EXPECT_GT(with_whole_experts, 5);
}

// MiCS sums over copies at the boundary of accumulation alone (DeepSpeed, runtime/zero/mics.py).
TEST(CopiesOfShards, MicsSumsThemOnce) {
  Scenario scenario = mixture_of({1, 1, 4, 2, 1}, 3, true, 2);
  const double always = moved_by(scenario).gradients;
  scenario.software.sums_copies_once = true;
  const Moved once = moved_by(scenario);
  double sums = 0.0;  // Of each of the micro-batches but the last, over the four ranks.
  for (GroupKind kind : {GroupKind::data, GroupKind::expert_data}) {
    const int members =
        kind == GroupKind::data ? scenario.plan.shard_ranks() : scenario.plan.expert_shard_ranks();
    const auto held = static_cast<double>(parameters_on_rank(scenario, 0).of(kind));
    sums +=
        (micro_batches - 1) * 2.0 * 4 * scenario.software.gradient_bytes * sent(held / members, 2);
  }
  EXPECT_NEAR(always - once.gradients, sums, 1e-9 * always);
  EXPECT_EQ(once.weights, moved_by(mixture_of({1, 1, 4, 2, 1}, 3, true, 2)).weights);
}

// Eight replicas, two to a node, in two copies: each copy is reduced over its four ranks, then the
// shards over both; without overlap all times add up.
TEST(CopiesOfShards, WithoutOverlapTimesAddUp) {
  constexpr std::int64_t dense = 40'000'000;
  PlanRequest request = plan_request(1, 1, 1, 8, 64, "megatron-core");
  request.zero = 1;
  request.dp_overlap = false;
  const auto step = [&](int copies) {
    request.dp_replicate = copies;
    const Scenario scenario =
        scenario_of(small_gpt(2, 1024, 8, 128), read_system("two-gpus", test_place), request, 8);
    auto cost = prices(scenario, Seconds{0.5}, Seconds{0.5}, {});
    cost->stages.front().parameters = {dense, 0};
    cost->stages.front().buckets.front().parameters = {dense, 0};
    return simulate(scenario, cost);
  };
  const Scenario scenario =
      scenario_of(small_gpt(2, 1024, 8, 128), read_system("two-gpus", test_place), request, 8);
  const CollectiveTime collectives{scenario.system};
  const auto time = [&](CollectiveKind kind, double bytes, const GroupShape& shape) {
    return collectives(kind, Bytes{bytes * dense}, shape).time();
  };
  const double of_gradient = scenario.software.gradient_bytes;
  const double of_weight = scenario.software.weight_bytes;
  const GroupShape all{8, 4, 2}, four{4, 2, 2}, both{2, 2, 1};
  const Seconds expected = time(CollectiveKind::reduce_scatter, of_gradient, four) +
                           time(CollectiveKind::all_reduce, of_gradient / 4, both) +
                           time(CollectiveKind::all_gather, of_weight, four) -
                           time(CollectiveKind::reduce_scatter, of_gradient, all) -
                           time(CollectiveKind::all_gather, of_weight, all);
  EXPECT_NEAR((step(2) - step(1)).si(), expected.si(), 1e-6 * step(1).si());
}

TEST(CopiesOfShards, MemoryIsThatOfFewerShards) {
  for (int zero : {1, 2, 3}) {
    const auto stage = [&](int dp, int copies) {
      return memory_of(mixture_of({1, 1, dp, 1, 1}, zero, true, copies)).stages.front();
    };
    EXPECT_EQ(stage(4, 2).optimizer, stage(2, 1).optimizer);
    EXPECT_EQ(stage(4, 2).gradients, stage(2, 1).gradients);
    EXPECT_EQ(stage(4, 2).weights, stage(2, 1).weights);
    EXPECT_GT(stage(4, 2).optimizer, stage(4, 1).optimizer);
  }
}

TEST(CopiesOfShards, WhatHasNoShardsIsRefused) {
  const auto refusal = [](const SmallDegrees& degrees, int zero, int copies) {
    try {
      mixture_of(degrees, zero, true, copies);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_NE(refusal({1, 1, 4, 1, 1}, 0, 2).find("zero=0 shards nothing"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 4, 1, 1}, 3, 3).find("does not divide dp x cp = 4"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 4, 1, 1}, 3, 4).find("leaves a rank for each"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 4, 4, 1}, 3, 2).find("1 ranks that hold the same"), std::string::npos);
}

TEST(ShardedExperts, FoldedAsUnfolded) {
  for (const SmallDegrees& degrees : all_degrees())
    for (int zero : {2, 3}) {
      const Scenario scenario = mixture_of(degrees, zero, true);
      const Placement placement{scenario.plan, scenario.system};
      const Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
      const auto length = [&](const RankClasses& classes) {
        const TrainingStep step = step_of(scenario, placement, classes, topology);
        return step_window(scenario, step, execute(step.graph, topology)).length();
      };
      EXPECT_NEAR(length(RankClasses::folded(placement)) / length(RankClasses::unfolded(placement)),
                  1.0, 1e-3)
          << degrees.tp << degrees.pp << degrees.dp << degrees.ep << degrees.etp << zero;
    }
}

// Four replicas, experts shared by two: a rank's collectives come one after another, dense weights
// first, so that without overlap all times add up.
TEST(ShardedExperts, WithoutOverlapTimesAddUp) {
  constexpr int units = 4;
  constexpr std::int64_t dense = 30'000'000;
  constexpr std::int64_t experts = 50'000'000;
  const Scenario scenario = mixture_of({1, 1, 4, 2, 1}, 3, false);
  const CollectiveTime collectives{scenario.system};
  const auto both = [&](CollectiveKind kind, double bytes) {
    return collectives(kind, Bytes{bytes * dense}, {4, 1, 4}).time() +
           collectives(kind, Bytes{bytes * experts}, {2, 1, 2}).time();
  };
  const Seconds gather = both(CollectiveKind::all_gather, scenario.software.weight_bytes);
  const Seconds reduce = both(CollectiveKind::reduce_scatter, scenario.software.gradient_bytes);
  const Seconds kernel = gather;
  auto cost = prices(scenario, units * kernel, units * kernel, {});
  std::vector<Bucket>& buckets = cost->stages.front().buckets;
  buckets.clear();
  for (int u = 0; u < units; ++u) {
    const RankParameters again = u + 1 < units ? RankParameters{dense, experts} : RankParameters{};
    const RankParameters own{dense, experts};
    buckets.push_back({kernels(kernel), kernels(kernel), own, own, again});
  }
  const Seconds expected =
      micro_batches * ((2.0 * units - 1.0) * gather + units * (reduce + 2.0 * kernel));
  EXPECT_NEAR(simulate(scenario, cost) / expected, 1.0, 1e-6);
}

// What a rank holds, to the byte: shards of 4 + 8 + 4 bytes a parameter ... in `state_bytes` and
// `main_gradient_bytes`, and two layers whole.
TEST(ShardedExperts, MemoryIsOfShardsAndTwoLayers) {
  const Scenario scenario = mixture_of({1, 1, 4, 2, 1}, 3, true);
  const StageParts parts = parts_on_rank(scenario, 0);
  double sharded = static_cast<double>(parts.embedding.dense + parts.head.dense) / 4;
  for (const RankParameters& layer : parts.layers)
    sharded += static_cast<double>(layer.dense) / 4 + static_cast<double>(layer.experts) / 2;
  const double two = 2.0 * static_cast<double>(parts.layers.back().sum());
  const StageMemory memory = memory_of(scenario).stages.front();
  const Software& software = scenario.software;
  EXPECT_NEAR(memory.optimizer.si(), software.state_bytes * sharded, 1.0);
  EXPECT_NEAR(memory.weights.si(), software.held_weight_bytes * two, 1.0);
  EXPECT_NEAR(memory.gradients.si(),
              software.main_gradient_bytes * sharded + software.held_weight_bytes * two, 1.0);
}

}  // namespace
}  // namespace orrery::sharded_experts_test
