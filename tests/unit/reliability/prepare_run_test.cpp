#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/reliability/failure_time.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::prepare_run_test {
namespace {

Scenario llama(int tp, int pp, int gpus, int zero = 1) {
  PlanRequest request = plan_request(tp, pp, 1, gpus / tp / pp * 8, 8192, "");
  request.zero = zero;
  return make_scenario(read_model("llama3-8b", test_place), read_system("dgx-h100", test_place),
                       request, gpus, test_place);
}

RunQuestion question(const std::string& profile = "default") {
  RunQuestion wanted;
  wanted.tokens = 1e12;
  wanted.reliability = read_reliability(profile, test_place);
  wanted.replicates = 200;
  return wanted;
}

double formula(const PreparedRun& run) { return expected_ettr(run); }

// 14 bytes of each parameter; a GPU saves its share of them: 8.03e9 x 14 / 64.
TEST(CheckpointSize, IsFourteenBytesAParameterSharedByAll) {
  const Scenario scenario = llama(1, 1, 64);
  const CheckpointSize size = checkpoint_size(scenario);
  const auto parameters = static_cast<double>(count_parameters(scenario.model).total);
  EXPECT_DOUBLE_EQ(size.total.si(), 14.0 * parameters);
  EXPECT_NEAR(size.a_gpu.si(), 14.0 * parameters / 64.0, 1e-3 * size.a_gpu.si());
  EXPECT_NEAR(size.a_unit.si(), 8.0 * size.a_gpu.si(), 1.0);
}

// Without ZeRO one replica saves everything.
TEST(CheckpointSize, OfAReplicaWithoutZero) {
  const Scenario scenario = llama(8, 1, 64, 0);
  const CheckpointSize size = checkpoint_size(scenario);
  EXPECT_NEAR(size.a_gpu.si(), size.total.si() / 8.0, 0.01 * size.a_gpu.si());
}

// The bytes that ranks send add up to the checkpoint, whether all save or one replica.
TEST(CheckpointSize, IsWhatItsRanksSend) {
  for (const Scenario& scenario :
       {llama(4, 2, 64), llama(2, 4, 64), llama(8, 1, 64, 0), llama(4, 4, 64, 0)}) {
    const CheckpointSize size = checkpoint_size(scenario);
    Topology topology = Topology::build(scenario.system, 64);
    const Layout layout =
        lay_out(scenario.system, Placement{scenario.plan, scenario.system}, topology, false);
    double sent = 0.0;
    for (const Writer& writer :
         writers_of(checkpoint_write(scenario, size, CheckpointTier::store, BytesPerSecond{1e9}),
                    layout.classes, topology))
      sent += writer.ranks * writer.flow.bytes.si();
    EXPECT_NEAR(sent, size.total.si(), 1e-9 * sent);
    EXPECT_EQ(size.every_replica, scenario.plan.zero > 0);
  }
}

// A copy in memory stalls the steps for the time off the GPUs alone, one in the store for longer.
TEST(CheckpointTimes, StallByTier) {
  const Scenario scenario = llama(1, 1, 64);
  const CheckpointSize size = checkpoint_size(scenario);
  const Reliability profile = read_reliability("default", test_place);
  const auto stall = [&](CheckpointTier tier) {
    return checkpoint_times(scenario, size, profile, tier, BytesPerSecond{1e9}).stall;
  };
  const Seconds copy = size.a_gpu / scenario.system.gpu.host;
  EXPECT_EQ(stall(CheckpointTier::local), copy);
  EXPECT_EQ(stall(CheckpointTier::peer), copy);
  EXPECT_EQ(stall(CheckpointTier::store), copy + Seconds{0.59});
}

// To a store of 1 GB/s it takes as long as its bytes; to a fast one as the slowest way out of a
// node.
TEST(CheckpointTimes, AreThoseOfTheSlowestWay) {
  const Scenario scenario = llama(1, 1, 64);
  const CheckpointSize size = checkpoint_size(scenario);
  const Reliability profile = read_reliability("default", test_place);
  const auto times = [&](double bytes_per_s) {
    return checkpoint_times(scenario, size, profile, CheckpointTier::store,
                            BytesPerSecond{bytes_per_s});
  };
  EXPECT_DOUBLE_EQ(times(1e9).write.si(), size.total.si() / 1e9);
  const System& system = scenario.system;
  const double node = 8.0 * system.nic.si() * system.network_efficiency;
  EXPECT_NEAR(times(1e15).write.si(),
              std::max(size.a_unit.si() / node, size.a_gpu.si() / system.gpu.host.si()), 1e-12);
}

// A node of 8 with tp 4 holds parts of two replicas, with tp 8 of one.
TEST(RunStates, CountReplicasThatLeaveTogether) {
  EXPECT_EQ(replicas_of_group(llama(4, 1, 64)), 2);
  EXPECT_EQ(replicas_of_group(llama(8, 1, 64)), 1);
  EXPECT_EQ(replicas_of_group(llama(1, 1, 64)), 8);
}

// The batch of a replica stays: 8 sequences each, however many replicas are present.
TEST(RunStates, KeepTheBatchOfAReplica) {
  const Scenario scenario = llama(8, 1, 64);
  const std::vector<AwayState> states = away_states(scenario, estimate(scenario).result.step_time);
  ASSERT_EQ(states.size(), 8u);
  for (std::size_t away = 0; away < 8; ++away)
    EXPECT_EQ(states[away].samples, static_cast<std::int64_t>(8 * (8 - away)));
  EXPECT_NEAR(states[3].step / states[0].step, 1.0, 0.05);
}

Scenario on_nvl72(const std::string& model, int gpus, const std::string& options) {
  PlanRequest request;
  request.gbs = gpus;
  read_plan(request, JsonValue::parse(options, "plan.json"));
  return make_scenario(read_model(model, test_place), read_system("gb200-nvl72", test_place),
                       request, gpus, test_place);
}

// A tray of four GPUs is repaired. With tp 4 it takes the place of any other; with tp 8 two of one
// rack are needed. 2,240 GPUs are 64 in each of 35 racks, which leaves two trays of each idle.
TEST(RunStates, RacksOfTraysThatShareNvlink) {
  const Scenario tray = on_nvl72("llama3-70b", 2304, R"({"tp": 4})");
  EXPECT_EQ(gpus_of_unit(tray), 4);
  EXPECT_EQ(racks_of(tray).island, 1);
  EXPECT_EQ(racks_of(tray).spare_islands(7), 7);
  const Racks pairs = racks_of(on_nvl72("llama3-70b", 2304, R"({"tp": 8})"));
  EXPECT_EQ(pairs.island, 2);
  EXPECT_EQ(pairs.count, 32);
  EXPECT_EQ(pairs.size, 18);
  EXPECT_EQ(pairs.surplus, 0);
  // Four spare islands: nine are in a rack.
  EXPECT_EQ(pairs.spare_islands(9), 4);
  EXPECT_EQ(pairs.spares_for(4), 8);
  EXPECT_EQ(pairs.spares_for(10), 20);
  const Scenario experts = on_nvl72("deepseek-v3", 2240, R"({"tp": 1, "ep": 64, "pp": 1})");
  EXPECT_EQ(racks_of(experts).island, 16);
  EXPECT_EQ(racks_of(experts).count, 35);
  EXPECT_EQ(racks_of(experts).surplus, 0);
  EXPECT_EQ(idle_units(experts), 70);
  // The next islands are those of another rack: one in each.
  EXPECT_EQ(racks_of(experts).spares_for(2), 18 + 16);
  EXPECT_EQ(racks_of(llama(8, 1, 64)).island, 1);
  EXPECT_EQ(idle_units(llama(8, 1, 64)), 0);
}

// Of trays that a job leaves idle, as many are rented as are away for 1 % of the time or more: 80
// GPUs on two racks of 72 leave 16, of which failures of 20 trays need two at most.
TEST(RunStates, IdleTraysAreRentedAsSparesAlone) {
  const Reliability profile = read_reliability("default", {});
  const Scenario few = on_nvl72("llama3-8b", 80, R"({"tp": 1})");
  EXPECT_EQ(idle_units(few), 16);
  EXPECT_GE(rented_idle_units(few, profile), 1);
  EXPECT_LE(rented_idle_units(few, profile), 2);
  EXPECT_EQ(spare_gpus(few, profile, 3), 4 * (3 + rented_idle_units(few, profile)));
  EXPECT_EQ(rented_idle_units(on_nvl72("llama3-8b", 72, R"({"tp": 1})"), profile), 0);
}

// Experts over 64 ranks and copies of shards over 32 leave together.
TEST(RunStates, GroupsOfReplicasShareExpertsOrShards) {
  EXPECT_EQ(replicas_of_group(on_nvl72("deepseek-v3", 2240, R"({"tp": 1, "ep": 64})")), 64);
  PlanRequest request = plan_request(2, 1, 1, 512, 8192, "");
  request.zero = 3;
  request.dp_replicate = 4;
  const Scenario copies =
      make_scenario(read_model("llama3-8b", test_place), read_system("dgx-h100", test_place),
                    request, 256, test_place);
  EXPECT_EQ(replicas_of_group(copies), 32);
  EXPECT_EQ(groups_of_job(copies), 4);
  // Each copy of all shards trains on a quarter, and stays as large.
  const std::vector<AwayState> states = away_states(copies, estimate(copies).result.step_time);
  ASSERT_EQ(states.size(), 4u);
  for (std::size_t away = 0; away < 4; ++away)
    EXPECT_EQ(states[away].samples, static_cast<std::int64_t>(128 * (4 - away)));
  request.dp_replicate = 1;
  request.gbs = 128;
  const Scenario one = make_scenario(read_model("llama3-8b", test_place),
                                     read_system("dgx-h100", test_place), request, 64, test_place);
  EXPECT_NEAR(states[3].step / estimate(one).result.step_time, 1.0, 1e-9);
}

// Steps between those that are simulated differ by little from what their own simulation says.
TEST(RunStates, StepsBetweenKnotsAreNearTheirOwn) {
  const Scenario scenario = llama(8, 2, 1024);
  const std::vector<AwayState> states = away_states(scenario, estimate(scenario).result.step_time);
  ASSERT_EQ(states.size(), 64u);
  for (const int away : {3, 6, 11, 24, 37, 50, 60}) {
    PlanRequest request = plan_again(scenario.plan);
    request.gbs = 8 * (64 - away);
    const Scenario own = make_scenario(scenario, request, 16 * (64 - away), test_place);
    const AwayState& state = states[static_cast<std::size_t>(away)];
    EXPECT_EQ(state.samples, own.plan.gbs);
    EXPECT_NEAR(state.step / estimate(own).result.step_time, 1.0, 0.01) << away;
  }
}

// Racks of which one or two trays are missing stay filled: steps without them are hardly longer,
// and fewer ranks wait for each other.
TEST(RunStates, RacksStayFilledWithoutAReplica) {
  Scenario scenario = on_nvl72("llama3-70b", 2304, R"({"tp": 8})");
  scenario.plan.wait_for_others = false;
  const Seconds whole = estimate(scenario).result.step_time;
  const std::vector<AwayState> states = away_states(scenario, whole);
  ASSERT_EQ(states.size(), 280u);  // 31 racks of nine replicas, and none.
  for (const AwayState& state : states) EXPECT_NEAR(state.step / whole, 1.0, 0.02);
}

// Llama 3 on 16,384 GPUs with eight spares where a hundred are wanted: the job goes on without the
// few of its 128 replicas for which no nodes are left, at nine tenths of its speed or more.
TEST(PreparedRun, AnElasticJobOfThousandsGoesOn) {
  PlanRequest request = plan_request(8, 16, 1, 2048, 8192, "");
  const Scenario scenario =
      make_scenario(read_model("llama3.1-405b", test_place),
                    read_system("grand-teton-h100-80gb", test_place), request, 16384, test_place);
  RunQuestion wanted = question("meta-llama3");
  wanted.tokens = 8.1e12;
  wanted.policy.elastic = true;
  wanted.reliability.month_deviation = 0.0;
  for (const int spares : {0, 8, 60}) {
    wanted.policy.spares = spares;
    const PreparedRun run = prepare_run(scenario, estimate(scenario).result.step_time, wanted);
    // With fewer than six replicas optimizer states do not fit.
    EXPECT_EQ(run.setup.phases.front().by_away.size(), 123u);
    const RunFigures figures = figures_of(finished_runs(run, wanted));
    EXPECT_GT(figures.goodput.mean, 0.9);
    EXPECT_NEAR(figures.goodput.mean / expected_shares(run).goodput, 1.0, 5e-3) << spares;
  }
}

// One GPU that is slower by x makes the step longer by x at most, and in some stage by something.
TEST(RunStates, ASlowGpuCostsAtMostWhatItLoses) {
  const Scenario scenario = llama(4, 4, 64);
  EstimateContext context{scenario.system};
  const Seconds step = step_time(scenario, context);
  for (const double slower : {0.025, 0.1, 0.5}) {
    double most = 1.0;
    for (int stage = 0; stage < 4; ++stage) {
      const double ratio = step_with_slow_gpu(scenario, stage, slower) / step;
      EXPECT_GE(ratio, 1.0 - 1e-9);
      EXPECT_LE(ratio, 1.0 + slower + 0.002);
      most = std::max(most, ratio);
    }
    EXPECT_GT(most, 1.0 + 0.4 * slower);
  }
}

// Two slow GPUs in one replica cost no less than the worse one, and no more than both alone: what
// they cost as the pipeline fills and drains adds up.
TEST(RunStates, OfTwoSlowGpusTheWorseOneDecides) {
  const Scenario scenario = llama(4, 4, 64);
  EstimateContext context{scenario.system};
  const Seconds step = step_time(scenario, context);
  Scenario both = scenario;
  double most = 1.0, sum = 1.0;
  for (const auto& [stage, slower] : {std::pair{1, 0.1}, {2, 0.06}}) {
    const double ratio = step_with_slow_gpu(scenario, stage, slower) / step;
    most = std::max(most, ratio);
    sum += ratio - 1.0;
    // Stages of 16 GPUs follow each other.
    both.system.gpu_overrides.push_back({2 * stage, 0, 1.0 / (1.0 + slower)});
  }
  EstimateContext slow{both.system};
  const double together = step_time(both, slow) / step;
  EXPECT_GE(together, most - 1e-9);
  EXPECT_LE(together, sum + 1e-9);
}

// In parallel as one after the other; convex, so that what lies between two knots is not above
// their chord, but for two ten-thousandths by which collectives that wait choose otherwise.
TEST(RunStates, SlowStatesDoNotDependOnWorkers) {
  const Scenario scenario = llama(4, 4, 64);
  const std::vector<double> slower{0.03, 0.06, 0.12};
  const auto ratios = slow_step_ratios(scenario, slower, 1);
  EXPECT_EQ(slow_step_ratios(scenario, slower, 3), ratios);
  for (const std::vector<double>& of_stage : ratios) {
    EXPECT_LE(of_stage[1], of_stage[0] + (of_stage[2] - of_stage[0]) / 3.0 + 2e-4);
    EXPECT_LE(of_stage[0], 1.0 + (of_stage[1] - 1.0) / 2.0 + 1e-4);
  }
}

// BLOOM's slow GPU, whenever it comes: to replace it saves days, and more than it does by itself no
// rule can.
TEST(TrainingRun, ReplacesSlowGpusWhereItPays) {
  const Scenario scenario = llama(4, 4, 64);
  const Seconds step = estimate(scenario).result.step_time;
  RunQuestion wanted = question("bloom");
  wanted.reliability.slow.per_gpu_day *= 20.0;
  const Economics economics = read_economics("h100-sxm", "");
  const TrainingRun stay = training_run(scenario, step, wanted, economics);
  const auto worth = std::find_if(stay.worth.begin(), stay.worth.end(), [](const Improvement& one) {
    return one.what == "slow GPUs replaced where it pays";
  });
  ASSERT_NE(worth, stay.worth.end());
  wanted.policy.evict = EvictionRule{};
  const TrainingRun leave = sampled_run(scenario, step, wanted, economics);
  EXPECT_NEAR(stay.figures.days.mean - leave.figures.days.mean, worth->days.mean, 1e-9);
  EXPECT_GT(worth->days.mean, 0.0);
  EXPECT_GT(leave.figures.evictions.mean, 1.0);
  EXPECT_EQ(stay.figures.evictions.mean, 0.0);
  EXPECT_EQ(leave.evictions.size(), 4u);
  // What steps lose to slow GPUs is paid for with them.
  EXPECT_NEAR(stay.bill.steps + stay.bill.redone + stay.bill.stopped + stay.bill.spares, 1.0,
              1e-12);
  EXPECT_LT(leave.figures.days.mean, stay.figures.days.mean);
}

// Sampled runs have the mean of the formula if rates are known and do not change.
TEST(PreparedRun, AgreesWithItsFormula) {
  const Scenario scenario = llama(8, 2, 512);
  const Seconds step = estimate(scenario).result.step_time;
  RunQuestion wanted = question();
  wanted.replicates = 2000;
  wanted.policy.spares = 1 << 16;
  wanted.reliability.spread = 1.0;
  wanted.reliability.month_deviation = 0.0;
  for (FailureCause& cause : wanted.reliability.causes) cause.per_gpu_day *= 20.0;
  const PreparedRun run = prepare_run(scenario, step, wanted);
  const RunFigures figures = figures_of(finished_runs(run, wanted));
  EXPECT_NEAR(figures.days.mean * formula(run) / (run.without_interruption().si() / 86400.0), 1.0,
              2e-3);
  EXPECT_NEAR(expected_shares(run).goodput, figures.goodput.mean, 2e-3);
  double shares = 0.0;
  for (const double share : figures.shares) shares += share;
  EXPECT_NEAR(shares, 1.0, 1e-12);
}

// Tokens determine the batch: 2e10 at 256, up to 1e11 at 1,024, the rest at 2,048. Each phase has
// steps and an interval of its own, and replicates over all of them have the mean of the formula.
TEST(PreparedRun, OfABatchThatGrowsAgreesWithItsFormula) {
  const Scenario scenario = llama(8, 2, 512);
  ASSERT_EQ(scenario.plan.gbs, 256);
  PlanRequest request = plan_request(8, 2, 1, 2048, 8192, "");
  const Scenario full =
      make_scenario(read_model("llama3-8b", test_place), read_system("dgx-h100", test_place),
                    request, 512, test_place);
  const Seconds step = estimate(full).result.step_time;
  RunQuestion wanted = question();
  wanted.tokens = 4e11;
  wanted.replicates = 2000;
  wanted.policy.ramp = parse_batch_ramp("0:256 20B:1024 100B:2048", {});
  wanted.reliability.spread = 1.0;
  wanted.reliability.month_deviation = 0.0;
  for (FailureCause& cause : wanted.reliability.causes) cause.per_gpu_day *= 50.0;
  const PreparedRun run = prepare_run(full, step, wanted);
  ASSERT_EQ(run.phases.size(), 3u);
  EXPECT_NEAR(run.phases[0].step / estimate(scenario).result.step_time, 1.0, 1e-9);
  EXPECT_EQ(run.phases[0].steps, std::ceil(2e10 / (256 * 8192)));
  EXPECT_EQ(run.phases[2].step, step);
  EXPECT_GT(run.phases[0].tiers.back().steps, run.phases[2].tiers.back().steps);
  const double plain = std::ceil(4e11 / (2048.0 * 8192.0)) * step.si();
  EXPECT_GT(run.without_interruption().si(), plain);
  const std::vector<RunTotals> runs = finished_runs(run, wanted);
  for (const RunTotals& totals : runs)
    EXPECT_NEAR(static_cast<double>(totals[RunTime::productive]) / 1e6,
                run.without_interruption().si(), 1e-6 * run.steps());
  EXPECT_NEAR(
      figures_of(runs).days.mean * formula(run) / (run.without_interruption().si() / 86400.0), 1.0,
      2e-3);
}

// Gemini 1.0 (arXiv 2312.11805) had a goodput of 85 % with periodic checkpoints in a store and of
// 97 % with copies in memory: a fifth of the loss. Neither machine nor interval is published; of
// 16,384 GPUs with the default profile and a checkpoint each hour it is a third to an eighth.
TEST(TrainingRun, CopiesInMemoryLoseAFractionOfAnHourlyStores) {
  PlanRequest request = plan_request(8, 16, 1, 2048, 8192, "");
  const Scenario scenario =
      make_scenario(read_model("llama3.1-405b", test_place),
                    read_system("grand-teton-h100-80gb", test_place), request, 16384, test_place);
  const Seconds step = estimate(scenario).result.step_time;
  const auto loss = [&](const std::string& checkpoints) {
    RunQuestion wanted = question();
    wanted.tokens = 8.1e12;
    wanted.policy.checkpoints = parse_checkpoints(checkpoints, {});
    return 1.0 - figures_of(finished_runs(prepare_run(scenario, step, wanted), wanted)).ettr.mean;
  };
  const double ratio = loss("store:1h") / loss("store:1h,peer:best");
  EXPECT_GT(ratio, 3.0);
  EXPECT_LT(ratio, 8.0);
}

// The best interval of the formula is the best of those that are tried.
TEST(PreparedRun, ChoosesTheBestInterval) {
  const Scenario scenario = llama(8, 2, 512);
  const Seconds step = estimate(scenario).result.step_time;
  RunQuestion wanted = question();
  const PreparedRun best = prepare_run(scenario, step, wanted);
  for (const double factor : {0.5, 0.8, 1.25, 2.0}) {
    wanted.policy.checkpoints.front().every = best.tiers().back().best * factor;
    EXPECT_LE(formula(prepare_run(scenario, step, wanted)), formula(best) + 1e-6);
  }
}

// Sampled runs of a known rate, with spares that run out and elastic, have the formula's ETTR:
// within 0.2 % of 60 days at 1,000 replicates, whose rates are alike.
TEST(PreparedRun, OfSparesAndElasticJobsAgreesWithItsFormula) {
  const Scenario scenario = llama(8, 2, 512);
  RunQuestion wanted = question();
  wanted.reliability.month_deviation = 0.0;
  wanted.reliability.spread = 1.0;
  wanted.replicates = 1000;
  for (FailureCause& cause : wanted.reliability.causes) {
    cause.per_gpu_day *= 3.0;
    cause.events = 0.0;
  }
  const Economics economics = read_economics("h100-sxm", "");
  const Seconds step = estimate(scenario).result.step_time;
  wanted.tokens = 60.0 * 86400.0 / step.si() * static_cast<double>(scenario.plan.gbs) * 8192.0;
  const auto check = [&](const RunPolicy& policy) {
    wanted.policy = policy;
    const TrainingRun run = sampled_run(scenario, step, wanted, economics);
    ASSERT_TRUE(run.expected_ettr);
    double steps = 0.0, all = 0.0;
    for (const RunTotals& one : run.runs) {
      steps += one.ettr() * static_cast<double>(one.total());
      all += static_cast<double>(one.total());
    }
    EXPECT_NEAR(steps / all / *run.expected_ettr, 1.0, 2e-3);
    EXPECT_NEAR(run.prepared.without_interruption().si() / 86400.0 / run.figures.days.mean /
                    expected_shares(run.prepared).goodput,
                1.0, 2e-3);
  };
  RunPolicy policy;
  policy.spares = 9;
  check(policy);
  policy.elastic = true;
  policy.spares = 2;
  check(policy);
}

// A search's factor: no spare is worse than some, elastic better than waiting, and a spare always
// the best; with one replica elastic changes nothing.
TEST(LeastTime, FallsWithSparesAndWhereAJobIsElastic) {
  const Scenario scenario = llama(8, 2, 512);
  const Reliability profile = question().reliability;
  const auto at = [&](std::optional<int> spares, bool elastic) {
    return least_time_over_steps(scenario, profile, {}, spares, elastic);
  };
  EXPECT_GT(at(0, false), at(2, false));
  EXPECT_GT(at(0, false), at(0, true));
  EXPECT_GT(at(0, true), at(2, true));
  EXPECT_GT(at(2, false), at({}, false));
  EXPECT_NEAR(at(1000, false), at({}, false), 1e-6);
  const Scenario one = llama(8, 4, 32);
  EXPECT_EQ(least_time_over_steps(one, profile, {}, 3, true),
            least_time_over_steps(one, profile, {}, 3, false));
}

// The bound of a search: no run is faster, whatever a step takes and whatever interval is chosen;
// with steps that are short against the best interval a run comes near to it.
TEST(LeastTime, IsBelowThatOfEveryStepAndInterval) {
  const Scenario scenario = llama(8, 2, 512);
  RunQuestion wanted = question();
  for (FailureCause& cause : wanted.reliability.causes) cause.per_gpu_day *= 20.0;
  wanted.policy.store = BytesPerSecond{2e9};
  const double least = least_time_over_steps(scenario, wanted.reliability, wanted.policy.store);
  double nearest = 1e9;
  for (const double step : {0.1, 1.0, 7.0, 60.0})
    for (const double minutes : {0.0, 2.0, 5.0, 10.0, 30.0}) {
      wanted.tokens = 1e9 / step;
      wanted.policy.checkpoints.front().every = Seconds{60.0 * minutes};  // 0: the best.
      const double over = 1.0 / formula(prepare_run(scenario, Seconds{step}, wanted));
      EXPECT_GE(over, least - 1e-12) << step << " " << minutes;
      nearest = std::min(nearest, over);
    }
  EXPECT_LT(nearest / least, 1.0005);
}

// 512 GPUs and two spares of 8: what is paid for adds up, spares by their number, the job by time.
TEST(TrainingRun, SaysWhatItsRentIsFor) {
  RunQuestion wanted = question();
  wanted.policy.spares = 2;
  const TrainingRun run =
      training_run(llama(8, 2, 512), Seconds{5.0}, wanted, read_economics("h100-sxm", ""));
  const RunBill& bill = run.bill;
  EXPECT_NEAR(bill.spares, 16.0 / 528.0, 1e-12);
  EXPECT_NEAR(bill.steps + bill.redone + bill.stopped + bill.spares, 1.0, 1e-12);
  EXPECT_NEAR(bill.redone, 512.0 / 528.0 * run.figures.shares[3], 1e-12);
}

// What a change saves is what the bill of a run with it lacks, spares and all, also where it costs
// more: spares that an elastic job hardly needs. Without --spares a change decides how many are
// paid for.
TEST(TrainingRun, SavedRentIsTheDifferenceOfTwoBills) {
  const Scenario scenario = llama(8, 2, 512);
  const Economics economics = read_economics("h100-sxm", "");
  int changes = 0, dearer = 0;
  const auto check = [&](const RunQuestion& wanted) {
    const TrainingRun run = training_run(scenario, Seconds{5.0}, wanted, economics);
    const auto is_saved = [&](const std::string& what, const RunQuestion& changed) {
      const auto one = std::find_if(run.worth.begin(), run.worth.end(), [&](const Improvement& of) {
        return of.what.rfind(what, 0) == 0;
      });
      ASSERT_NE(one, run.worth.end()) << what;
      const RunBill other = sampled_run(scenario, Seconds{5.0}, changed, economics).bill;
      EXPECT_NEAR(one->gpu_hours, run.bill.gpu_hours - other.gpu_hours, 1e-7 * other.gpu_hours)
          << what;
      EXPECT_NEAR(one->rent_usd.high, std::abs(run.bill.rent_usd.high - other.rent_usd.high),
                  1e-7 * other.rent_usd.high);
      const bool more = saved_rent_text(*one).find("more") != std::string::npos;
      EXPECT_EQ(more, other.rent_usd.low > run.bill.rent_usd.low);
      ++changes, dearer += more;
    };
    RunQuestion changed = wanted;
    changed.reliability.restart.base = 0.5 * changed.reliability.restart.base;
    changed.reliability.restart.each = 0.5 * changed.reliability.restart.each;
    is_saved("restarts in half the time", changed);
    changed = wanted;
    changed.policy.elastic = true;
    if (!wanted.policy.elastic) is_saved("elastic", changed);
    changed = wanted;
    changed.policy.spares = run.spares.units;
    if (wanted.policy.spares) is_saved(plural(run.spares.units, "spare") + " instead of", changed);
  };
  RunQuestion wanted = question();
  wanted.replicates = 100;
  check(wanted);
  wanted.policy.spares = 0;
  check(wanted);
  wanted.policy.elastic = true;
  check(wanted);
  EXPECT_EQ(changes, 2 + 3 + 2);
  EXPECT_GT(dearer, 0);
  EXPECT_LT(dearer, changes);
}

// More units are in repair than are kept where a job that needs all of them waits, and where it
// finds or saves before a stop what it will wait for. An elastic job meets the same failures as one
// with unlimited spares, less those of what is away.
TEST(TrainingRun, IsShortOfSparesWhereItWaits) {
  RunQuestion wanted = question();
  wanted.replicates = 100;
  for (const int spares : {0, 1, 3}) {
    wanted.policy.spares = spares;
    const TrainingRun run =
        sampled_run(llama(8, 2, 512), Seconds{5.0}, wanted, read_economics("h100-sxm", ""));
    const auto share = [&](RunTime time) {
      return run.figures.shares[static_cast<std::size_t>(time)];
    };
    EXPECT_GE(run.spares.short_of, share(RunTime::waiting) - 1e-12);
    EXPECT_LE(run.spares.short_of,
              share(RunTime::waiting) + share(RunTime::detecting) + share(RunTime::saving) + 1e-12);
    EXPECT_EQ(share(RunTime::waiting) > 0.0, run.spares.short_of > 0.0);
  }
}

// A profile with one cause in a group does not speak of all that the group's name covers.
TEST(TrainingRun, NamesTheCauseThatAGroupHasAlone) {
  const auto text_of = [](const std::string& profile) {
    RunQuestion wanted = question(profile);
    wanted.replicates = 20;
    return training_run_text(
        sampled_run(llama(8, 2, 512), Seconds{5.0}, wanted, read_economics("h100-sxm", "")));
  };
  EXPECT_NE(text_of("rsc-1").find("interrupted by failure of infrastructure 100.0 %\n"),
            std::string::npos);
  const std::string several = text_of("meta-llama3");
  EXPECT_NE(several.find("interrupted by gpu "), std::string::npos);
  EXPECT_NE(several.find("planned maintenance "), std::string::npos);
}

// Runs as long that draw the same failures need the same spares.
TEST(PaidSpares, AreThoseOfSampledRuns) {
  for (const char* const profile : {"default", "meta-llama3", "rsc-1"})
    for (const int gpus : {128, 2048}) {
      const Scenario scenario = llama(8, 2, gpus);
      RunQuestion wanted = question(profile);
      wanted.replicates = RunQuestion{}.replicates;
      const TrainingRun run =
          sampled_run(scenario, Seconds{5.0}, wanted, read_economics("h100-sxm", ""));
      const int spares =
          paid_spares(scenario, wanted.reliability, {}, Seconds{86400.0 * run.figures.days.mean});
      EXPECT_EQ(spares, run.spares.kept) << profile << ", " << gpus;
      EXPECT_EQ(paid_spares(scenario, wanted.reliability, 3, Seconds{1.0}), 3);
    }
}

Economics powers(const std::string& waiting) {
  return parse_economics(
      JsonValue::parse(R"({"schema": "orrery.economics/1", "server_watts_per_gpu": 1000, "pue": 1,
                           "switch_watts": 0, "usd_per_kwh": 0.1)" +
                           waiting + "}",
                       "mine.json"),
      read_economics("h100-sxm", ""));
}

// At 1 kW a GPU at work and w kW where it waits, a run of H job GPU-hours takes, in kWh,
// H (1 - standing) + w H (standing but detection) + [w, 1] H detection, and w for a spare's hour.
TEST(TrainingRun, GpusThatWaitDrawLess) {
  RunQuestion wanted = question();
  wanted.policy.spares = 2;
  wanted.replicates = 50;
  const Scenario scenario = llama(8, 2, 512);
  const auto run = [&](const std::string& waiting) {
    return sampled_run(scenario, Seconds{5.0}, wanted, powers(waiting));
  };
  const TrainingRun tenth = run(R"(, "waiting_watts_per_gpu": 100)");
  const RunFigures& figures = tenth.figures;
  const double job = 24.0 * figures.days.mean * 512.0, spare = job * 16.0 / 512.0;
  const double found = figures.shares[static_cast<std::size_t>(RunTime::detecting)];
  const double stands = tenth.bill.stopped * 528.0 / 512.0;
  ASSERT_GT(found, 0.0);
  const double low = job * (1.0 - stands + 0.1 * stands) + 0.1 * spare;
  EXPECT_NEAR(tenth.bill.energy_kwh.low / low, 1.0, 1e-12);
  EXPECT_NEAR(tenth.bill.energy_kwh.high / (low + 0.9 * job * found), 1.0, 1e-12);
  EXPECT_NEAR(tenth.bill.spares_kwh.high / (0.1 * spare), 1.0, 1e-12);
  EXPECT_NEAR(tenth.bill.energy_usd.low / (0.1 * low), 1.0, 1e-12);
  // As if they worked: every hour that is paid for.
  const RunBill alike = run(R"(, "waiting_watts_per_gpu": 1000)").bill;
  EXPECT_NEAR(alike.energy_kwh.low / alike.gpu_hours, 1.0, 1e-12);
  EXPECT_NEAR(alike.energy_kwh.high / alike.gpu_hours, 1.0, 1e-12);
  // Without the figure: between nothing and that.
  Economics silent = powers("");
  silent.waiting_watts_per_gpu = {};
  const RunBill unstated = sampled_run(scenario, Seconds{5.0}, wanted, silent).bill;
  EXPECT_NEAR(unstated.energy_kwh.low / (job * (1.0 - stands)), 1.0, 1e-12);
  EXPECT_NEAR(unstated.energy_kwh.high / unstated.gpu_hours, 1.0, 1e-12);
}

TEST(TrainingRun, SameSeedSameAnswer) {
  const Scenario scenario = llama(8, 2, 512);
  const RunQuestion wanted = question();
  const Economics economics = read_economics("h100-sxm", "");
  const TrainingRun one = training_run(scenario, Seconds{5.0}, wanted, economics);
  const TrainingRun other = training_run(scenario, Seconds{5.0}, wanted, economics);
  EXPECT_EQ(one.figures.days_of, other.figures.days_of);
  RunQuestion reseeded = wanted;
  reseeded.seed = 2;
  EXPECT_NE(one.figures.days_of,
            training_run(scenario, Seconds{5.0}, reseeded, economics).figures.days_of);
}

// 466 in 54 days, of which the profile was made, are within nine in ten of what it draws.
TEST(TrainingRun, OfLlama3HoldsItsInterruptions) {
  const Reliability profile = read_reliability("meta-llama3", test_place);
  FailureDistribution distribution;
  for (const FailureCause& cause : profile.causes)
    distribution.per_day.push_back(cause.per_day(16384));
  distribution.error.events = profile.events();
  distribution.repair_us = {1e9, 1e10};
  std::vector<double> counts;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    FailureDraws draws{distribution, 1, i};
    double count = 0.0;
    while (draws.next().at < 54 * 86'400'000'000) count += 1.0;
    counts.push_back(count);
  }
  // Poisson and the rate's own error: 466 +- 1.645 sqrt(2 x 466) = 50.
  const ChanceRange range = chance_range(counts);
  EXPECT_NEAR(range.mean, 466.0, 4.0);
  EXPECT_NEAR(range.low, 416.0, 5.0);
  EXPECT_NEAR(range.high, 516.0, 5.0);
}

// Of a pair that strikes a fleet, a job on half of it has both in a quarter of all cases, one in
// two quarters; of those on all of it nothing changes.
TEST(RunFailures, APartOfAFleetIsStruckByItsShareOfABatch) {
  EXPECT_EQ(batches_of_part({0.0, 8.0}, 0.5), (std::vector<double>{4.0, 2.0}));
  EXPECT_EQ(batches_of_part({3.0, 8.0, 1.0}, 1.0), (std::vector<double>{3.0, 8.0, 1.0}));
  const Reliability profile = read_reliability("stepfun", test_place);
  EXPECT_NEAR(distribution_of(profile, 3200).mean_batch(), 313.0 / 199.0, 1e-12);
  EXPECT_NEAR(distribution_of(profile, 8).mean_batch(), 1.0, 0.01);
}

// The first half of StepFun's trace (InfiniteHBD-Trace at 7aacdc8): of 400 servers 26 and 32 are in
// repair in 90 and 99 % of the time, and 11.65 on average. Fleets in service with its counts,
// repairs, months and batches contain that within their 90 % intervals, on average within 20 % of
// both and 5 % of the mean; without batches on average a quarter less; fleets at one rate, of which
// Poisson's distribution holds, have 14 .. 22 where the trace has 32.
TEST(SpareNeed, OfStepfunsServersNeedsMonthsAndBatches) {
  Reliability profile = read_reliability("stepfun", test_place);
  const auto range_of = [&](double share) {
    ReplicateSetup setup;
    setup.phases = {{174 * 86'400 + 42'336, {{1'000'000, 1}}, {1}, {0}}};
    setup.tiers = {{}};
    setup.causes = causes_of(profile, {CheckpointRule{}});
    for (ReplicateCause& cause : setup.causes) cause.detect_low = cause.detect_high = 0;
    setup.spares = 1'000'000;
    std::vector<double> away;
    FailureDistribution distribution = distribution_of(profile, 3200);
    distribution.before = static_cast<Micros>(distribution.repair_us.back());
    for (const RunTotals& run : run_replicates(setup, distribution, 1, 1000))
      away.push_back(units_away({&run, 1}, share));
    return chance_range(away);
  };
  for (const auto& [share, published] : {std::pair{0.9, 26.0}, {0.99, 32.0}}) {
    EXPECT_LE(range_of(share).low, published) << share;
    EXPECT_GE(range_of(share).high, published) << share;
    EXPECT_NEAR(range_of(share).mean / published, 1.0, 0.2) << share;
  }
  profile.batches.clear();
  EXPECT_LT(range_of(0.99).mean, 0.8 * 32.0);
  profile.month_deviation = 0.0;
  EXPECT_LT(range_of(0.99).high, 32.0);
}

}  // namespace
}  // namespace orrery::prepare_run_test
