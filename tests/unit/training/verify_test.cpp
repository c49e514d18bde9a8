#include <gtest/gtest.h>

#include <limits>

#include "sim/training/training_step.hpp"
#include "tests/support/placements.hpp"

namespace orrery::verify_test {
namespace {

// A two-stage pipeline with one micro-batch, drawn by hand, to be spoilt in each test:
//
//     forward(0) -> transfer -> forward(1) -> backward(1) -> transfer -> backward(0)
class Verify : public ::testing::Test {
 protected:
  Verify() {
    plan_.pp = 2;
    forward_[0] = add(Label::What::forward, 0);
    to_ = transfer(0, 1, 8.0);
    forward_[1] = add(Label::What::forward, 1);
    backward_[1] = add(Label::What::backward, 1);
    back_ = transfer(1, 0, 8.0);
    backward_[0] = add(Label::What::backward, 0);
  }

  static StepTask pass(Label::What what, int rep) {
    StepTask task;
    task.what = what;
    task.owner = rep;
    task.microbatch = 0;
    task.duration = Seconds{1.0};
    return task;
  }
  static StepTask sends(int from, int to, double bytes) {
    StepTask task;
    task.kind = Label::Kind::transfer;
    task.what = Label::What::transfer;
    task.stream = Stream::pipeline;
    task.owner = from;
    task.to_rep = to;
    task.microbatch = 0;
    task.flows = {{{{LinkId{0}, 1}}, Bytes{bytes}, BytesPerSecond{1.0}}};
    return task;
  }
  TaskId add(Label::What what, int rep) { return add(pass(what, rep)); }
  TaskId transfer(int from, int to, double bytes) { return add(sends(from, to, bytes)); }
  TaskId add(StepTask task) {
    const TaskId id = add_labelled(step_.graph, step_.labels, std::move(task));
    if (id.value > 0) step_.graph.depends(id, TaskId{id.value - 1});
    return id;
  }
  std::string verdict() const { return verify(step_, plan_); }

  Plan plan_;
  TrainingStep step_{nullptr, RankClasses::folded(placement_of(1, 1, 2, nodes_of(4, 4))),
                     TaskGraph{}, true};
  TaskId forward_[2], backward_[2], to_, back_;
};

TEST_F(Verify, ASoundStepHasNoFault) { EXPECT_EQ(verdict(), ""); }

TEST_F(Verify, ACircle) {
  step_.graph.depends(forward_[0], backward_[0]);
  EXPECT_EQ(verdict(), "the tasks wait for each other in a circle");
}

TEST_F(Verify, NumbersThatAreNone) {
  StepTask task = pass(Label::What::optimizer, 0);
  task.microbatch = -1;
  task.duration = Seconds{std::numeric_limits<double>::quiet_NaN()};
  add(task);
  EXPECT_EQ(verdict(),
            "task 6 (role 0, chunk 0, micro-batch -1) has a duration that is not a time");
}

TEST_F(Verify, AFlowWithoutBytes) {
  add(sends(0, 1, 0.0));
  EXPECT_EQ(verdict(), "task 6 (role 0, chunk 0, micro-batch 0) has a flow without bytes");
}

TEST_F(Verify, AFlowWithoutAWay) {
  StepTask task = sends(0, 1, 8.0);
  task.flows = {{{}, Bytes{8.0}, BytesPerSecond{1.0}}};
  add(task);
  EXPECT_EQ(verdict(), "task 6 (role 0, chunk 0, micro-batch 0) has a flow without a way");
}

TEST_F(Verify, AFlowThatStandsStill) {
  StepTask task = sends(0, 1, 8.0);
  task.flows = {{{{LinkId{0}, 1}}, Bytes{8.0}, BytesPerSecond{0.0}}};
  add(task);
  EXPECT_EQ(verdict(), "task 6 (role 0, chunk 0, micro-batch 0) has a flow that does not move");
}

TEST_F(Verify, OneTransferTooMany) {
  transfer(0, 1, 8.0);
  transfer(1, 0, 8.0);
  EXPECT_EQ(verdict(), "4 transfers between stages where the plan has 2");
}

TEST_F(Verify, OtherBytesComeBack) {
  transfer(0, 1, 8.0);
  transfer(1, 0, 4.0);
  EXPECT_EQ(verdict(), "stages send other bytes than come back");
}

TEST_F(Verify, APassTooFew) {
  plan_.microbatches = 2;
  EXPECT_EQ(verdict(), "2 passes where the plan has 4");
}

TEST_F(Verify, APassTooMany) {
  StepTask task = pass(Label::What::forward, 0);
  task.microbatch = 1;
  add(task);
  EXPECT_EQ(verdict(), "task 6 (role 0, chunk 0, micro-batch 1) is of no pass of the plan");
}

TEST_F(Verify, ATransferWithoutAReceiver) {
  transfer(0, 2, 8.0);
  EXPECT_EQ(verdict(), "task 6 (role 0, chunk 0, micro-batch 0) sends from or to no rank");
}

// Gradients of the inputs alone: those of the weights must follow, and only then.
TEST_F(Verify, WeightGradients) {
  step_.graph = TaskGraph{};
  add(Label::What::forward, 0);
  transfer(0, 1, 8.0);
  add(Label::What::forward, 1);
  add(Label::What::backward, 1);
  transfer(1, 0, 8.0);
  StepTask inputs = pass(Label::What::backward, 0);
  inputs.inputs_only = true;
  add(inputs);
  EXPECT_EQ(verdict(), "role 0 runs micro-batch 0 without its weight gradients");
  add(Label::What::weight_gradient, 0);
  EXPECT_EQ(verdict(), "");
  add(Label::What::weight_gradient, 1);
  EXPECT_EQ(verdict(), "role 1 runs micro-batch 0 with its weight gradients twice");
}

TEST_F(Verify, BackwardBeforeForward) {
  TrainingStep step{nullptr, step_.classes, TaskGraph{}, true};
  step_.graph = TaskGraph{};
  add(Label::What::backward, 0);
  add(Label::What::forward, 0);
  add(Label::What::forward, 1);
  add(Label::What::backward, 1);
  EXPECT_EQ(verdict(), "role 0 runs micro-batch 0 backward before forward, or only one of the two");
}

}  // namespace
}  // namespace orrery::verify_test
