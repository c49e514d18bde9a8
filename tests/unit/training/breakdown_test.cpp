#include <gtest/gtest.h>

#include "sim/training/result.hpp"
#include "tests/support/placements.hpp"

namespace orrery::breakdown_test {
namespace {

// Two stages, one micro-batch, and a timeline drawn by hand, in seconds:
//
//            0    1    2    3    4    5    6    7    8    9    10
//  stage 0   F0   ........................   B0   grad norm opt
//  stage 1        >F1  F1   B1   B1  <
//
// Which figures it should give is said at each test.
class BreakDown : public ::testing::Test {
 protected:
  BreakDown() {
    scenario_.plan.pp = 2;
    scenario_.plan.microbatches = 1;
    scenario_.software.overlap_pp = true;
    StageCost stage;
    stage.forward = lasting(1.0);
    stage.backward = lasting(1.0);
    auto cost = std::make_shared<StepCost>();
    cost->stages = {stage, stage};
    step_.cost = cost;
  }

  static PassCost lasting(double seconds) {
    PassCost cost;
    cost.segments.push_back({Seconds{seconds}, {}, {}});
    cost.compute = cost.work.at(Work::products) = Seconds{seconds};
    return cost;
  }

  StepTask& add(Label::What what, int rep, double start, double finish) {
    StepTask task;
    task.what = what;
    task.owner = rep;
    task.duration = Seconds{finish - start};
    if (what != Label::What::forward && what != Label::What::backward &&
        what != Label::What::optimizer)
      task.kind = Label::Kind::transfer;
    tasks_.push_back(task);
    timeline_.spans.push_back({Ticks::nearest(Seconds{start}), Ticks::nearest(Seconds{finish})});
    timeline_.makespan = std::max(timeline_.makespan, timeline_.spans.back().finish);
    return tasks_.back();
  }

  Breakdown of(int rep) {
    step_.graph = TaskGraph{};
    step_.labels.clear();
    for (const StepTask& task : tasks_) add_labelled(step_.graph, step_.labels, StepTask{task});
    const Breakdown parts = break_down(scenario_, step_, timeline_, {rep}).front();
    EXPECT_NEAR(parts.sum().si(), timeline_.makespan.seconds().si(), 1e-12);
    return parts;
  }

  Scenario scenario_;
  std::vector<StepTask> tasks_;
  Timeline timeline_;
  TrainingStep step_{nullptr, RankClasses::folded(placement_of(1, 1, 2, nodes_of(4, 4))),
                     TaskGraph{}, true};
};

// Stage 0 computes 1 + 1, updates 1; waits 0.5 for the transfer, 1 for gradients, 0.5 for the norm.
// Of the 3 seconds left the schedule explains (pp - 1) micro-batches of 1 + 1; 1 is imbalance.
TEST_F(BreakDown, EveryMomentHasOneCause) {
  add(Label::What::forward, 0, 0, 1);
  add(Label::What::backward, 0, 4.5, 5.5);
  StepTask& transfer = add(Label::What::transfer, 1, 4, 4.5);
  transfer.to_rep = 0;
  add(Label::What::gradients, 0, 5.5, 6.5);
  add(Label::What::norm, 0, 6.5, 7);
  add(Label::What::optimizer, 0, 7, 8);
  const Breakdown parts = of(0);
  EXPECT_DOUBLE_EQ(parts.compute.si(), 2.0);
  EXPECT_DOUBLE_EQ(parts.optimizer.si(), 1.0);
  EXPECT_DOUBLE_EQ(parts.pp_exposed.si(), 0.5);
  EXPECT_DOUBLE_EQ(parts.dp_exposed.si(), 1.0);
  EXPECT_DOUBLE_EQ(parts.other.si(), 0.5);
  EXPECT_DOUBLE_EQ(parts.pp_bubble.si(), 2.0);
  EXPECT_DOUBLE_EQ(parts.imbalance.si(), 1.0);
  EXPECT_DOUBLE_EQ(parts.tp_exposed.si(), 0.0);
}

// Traffic that overlaps kernels is not waited for.
TEST_F(BreakDown, WhatKernelsHideIsNotExposed) {
  add(Label::What::backward, 0, 0, 4);
  add(Label::What::gradients, 0, 1, 5);
  EXPECT_DOUBLE_EQ(of(0).dp_exposed.si(), 1.0);
}

// A contracted pass of 3 s with 2 s of kernels in it waits 1 s for its collectives.
TEST_F(BreakDown, AContractedPassHoldsItsCollectives) {
  const PassCost cost = lasting(2.0);
  add(Label::What::forward, 0, 0, 3).cost = &cost;
  const Breakdown parts = of(0);
  EXPECT_DOUBLE_EQ(parts.compute.si(), 2.0);
  EXPECT_DOUBLE_EQ(parts.tp_exposed.si(), 1.0);
}

// Where two causes overlap, data counts before a transfer, and that before tensor parallelism.
TEST_F(BreakDown, CausesThatOverlapCountOnce) {
  add(Label::What::gradients, 0, 0, 2);
  add(Label::What::transfer, 1, 1, 3).to_rep = 0;
  add(Label::What::collective, 0, 2, 4);
  const Breakdown parts = of(0);
  EXPECT_DOUBLE_EQ(parts.dp_exposed.si(), 2.0);
  EXPECT_DOUBLE_EQ(parts.pp_exposed.si(), 1.0);
  EXPECT_DOUBLE_EQ(parts.tp_exposed.si(), 1.0);
}

// The sender waits only if the software does.
TEST_F(BreakDown, ASenderWaitsWhereTransfersBlock) {
  add(Label::What::transfer, 0, 0, 1).to_rep = 1;
  EXPECT_DOUBLE_EQ(of(0).pp_exposed.si(), 0.0);
  EXPECT_DOUBLE_EQ(of(1).pp_exposed.si(), 1.0);
  scenario_.software.overlap_pp = false;
  EXPECT_DOUBLE_EQ(of(0).pp_exposed.si(), 1.0);
}

// Stage 0's gradients are no business of stage 1, but for a tied embedding's, which name both ends.
TEST_F(BreakDown, ATiedGradientConcernsBothEnds) {
  scenario_.model.tied_embeddings = true;
  StepTask& gradients = add(Label::What::gradients, 0, 0, 1);
  gradients.flows = std::vector<Flow>(2);
  EXPECT_DOUBLE_EQ(of(1).dp_exposed.si(), 0.0);
  add(Label::What::gradients, 0, 1, 3).to_rep = 1;
  EXPECT_DOUBLE_EQ(of(1).dp_exposed.si(), 2.0);
  EXPECT_DOUBLE_EQ(of(0).dp_exposed.si(), 3.0);
}

// Several ranks at once are as each alone.
TEST_F(BreakDown, RanksTogetherAreAsEachAlone) {
  add(Label::What::forward, 0, 0, 1);
  add(Label::What::transfer, 0, 1, 2).to_rep = 1;
  add(Label::What::forward, 1, 2, 4);
  const Breakdown zero = of(0);
  const Breakdown one = of(1);
  const std::vector<Breakdown> both = break_down(scenario_, step_, timeline_, {0, 1});
  EXPECT_EQ(both[0].compute, zero.compute);
  EXPECT_EQ(both[0].imbalance, zero.imbalance);
  EXPECT_EQ(both[1].compute, one.compute);
  EXPECT_EQ(both[1].pp_exposed, one.pp_exposed);
  EXPECT_DOUBLE_EQ(one.pp_exposed.si(), 1.0);
}

TEST_F(BreakDown, EachStageHasARankThatComputesTheLongest) {
  add(Label::What::forward, 0, 0, 1);
  add(Label::What::forward, 1, 1, 3);
  of(0);
  EXPECT_EQ(longest_computing_reps(step_, timeline_, 2), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace orrery::breakdown_test
