#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

struct Choices {
  bool wait_before_first = false;  // One forward pass more may delay the first B.
  bool skip_forwards = false;      // The next stage has enough, and B would be late.
  bool fill_short_gaps = false;    // Also if the W is longer than the gap.
};

struct Stage {
  PassLengths length;
  std::vector<Slot> order = {};
  std::vector<Seconds> forward_ends = {}, inputs_ends = {};
  int weights = 0;  // Passes so far.
  Seconds end = {};
  Seconds waited = {};  // Since its first pass.

  int forwards() const { return static_cast<int>(forward_ends.size()); }
  int inputs() const { return static_cast<int>(inputs_ends.size()); }
  int held() const { return forwards() - weights; }
  bool has_weights() const { return weights < inputs(); }
  Seconds time() const { return end - (forward_ends.front() - length.forward); }
};

class Heuristic {
 public:
  Heuristic(const std::vector<PassLengths>& lengths, int microbatches, int most_held,
            Seconds transfer, Choices choices)
      : microbatches_{microbatches}, most_held_{most_held}, transfer_{transfer}, choices_{choices} {
    for (const PassLengths& length : lengths) stages_.push_back({length});
  }

  void run() {
    warm_up();
    for (int m = 1; m < microbatches_; ++m) {
      run_forwards();
      for (int s = last(); s >= 0; --s) run_inputs(s);
    }
    for (Stage& stage : stages_)
      while (stage.weights < microbatches_) run_weights(stage);
  }

  Seconds longest() const {
    Seconds longest;
    for (const Stage& stage : stages_) longest = std::max(longest, stage.time());
    return longest;
  }
  Orders orders() && {
    Orders orders;
    for (Stage& stage : stages_) orders.push_back(std::move(stage.order));
    return orders;
  }

 private:
  int last() const { return static_cast<int>(stages_.size()) - 1; }
  Stage& at(int s) { return stages_[static_cast<std::size_t>(s)]; }
  static std::size_t index(int m) { return static_cast<std::size_t>(m); }

  // The time at which the input of the next pass of a kind is there.
  Seconds forward_due(int s) {
    return s == 0 ? Seconds{} : at(s - 1).forward_ends[index(at(s).forwards())] + transfer_;
  }
  Seconds inputs_due(int s) {
    return s == last() ? Seconds{} : at(s + 1).inputs_ends[index(at(s).inputs())] + transfer_;
  }

  void wait_and_run(Stage& stage, Seconds due, Seconds length) {
    if (due > stage.end) {
      if (stage.forwards() > 0) stage.waited += due - stage.end;
      stage.end = due;
    }
    stage.end += length;
  }
  void run_weights(Stage& stage) {
    stage.order.push_back({Pass::weight_gradient, 0, stage.weights++});
    stage.end += stage.length.weights;
  }

  // Runs W until `due`.
  void fill(Stage& stage, Seconds due) {
    while (stage.has_weights() && stage.end + stage.length.weights <= due) run_weights(stage);
    if (!stage.has_weights() || stage.end >= due) return;
    Seconds most_waited;
    for (const Stage& other : stages_) most_waited = std::max(most_waited, other.waited);
    if (choices_.fill_short_gaps || due - stage.end > most_waited - stage.waited)
      run_weights(stage);
  }

  void run_forward(int s) {
    Stage& stage = at(s);
    while (stage.held() >= most_held_) {
      assert(stage.has_weights());
      run_weights(stage);
    }
    const Seconds due = forward_due(s);
    if (s > 0) fill(stage, due);
    stage.order.push_back({Pass::forward, 0, stage.forwards()});
    wait_and_run(stage, due, stage.length.forward);
    stage.forward_ends.push_back(stage.end);
  }

  void run_inputs(int s) {
    Stage& stage = at(s);
    const Seconds due = inputs_due(s);
    if (s < last()) fill(stage, due);
    // The first stage delays no other.
    while (s == 0 && stage.forwards() == microbatches_ && stage.has_weights()) run_weights(stage);
    stage.order.push_back({Pass::backward, 0, stage.inputs(), false, true});
    wait_and_run(stage, due, stage.length.inputs);
    stage.inputs_ends.push_back(stage.end);
  }

  // Runs micro-batch 0 and, before its B, as many forward passes as time and memory allow.
  void warm_up() {
    for (int s = 0; s <= last(); ++s) run_forward(s);
    std::vector<int> more(stages_.size(), 0);
    Seconds first_inputs = at(last()).end + at(last()).length.inputs;
    for (int s = last() - 1; s >= 0; --s) {
      const Seconds length = at(s).length.forward;
      const Seconds due = first_inputs + transfer_;
      Seconds end = at(s).end;
      int& count = more[index(s)];
      while (1 + count < std::min(microbatches_, most_held_) &&
             (choices_.wait_before_first ? end < due : end + length <= due)) {
        end += length;
        ++count;
      }
      first_inputs = std::max(end, due) + at(s).length.inputs;
    }
    // A stage is one forward pass ahead of the next until none are left.
    for (std::size_t s = 1; s < more.size(); ++s)
      if (1 + more[s - 1] < microbatches_) more[s] = std::clamp(more[s - 1] - 1, 0, more[s]);
    for (int s = 0; s <= last(); ++s)
      for (int i = 0; i < more[index(s)]; ++i) run_forward(s);
    for (int s = last(); s >= 0; --s) run_inputs(s);
  }

  void run_forwards() {
    // All stages before one that skips skip as well.
    bool wanted = true;
    std::vector<int> runs;
    for (int s = last(); s >= 0; --s) {
      if (at(s).forwards() == microbatches_) continue;
      wanted = wanted && !skips(s);
      if (wanted) runs.push_back(s);
    }
    for (auto s = runs.rbegin(); s != runs.rend(); ++s) run_forward(*s);
  }

  bool skips(int s) {
    if (!choices_.skip_forwards || s == last() || at(s).forwards() < at(s + 1).forwards() + 2)
      return false;
    const Stage& stage = at(s);
    const Stage& next = at(s + 1);
    // The time of the next stage's B at this stage, if a forward pass runs there first.
    const Seconds due = next.end + next.length.forward + next.length.inputs + transfer_;
    if (stage.end >= due) return true;
    const int to_free = std::max(0, stage.held() + 1 - most_held_);
    if (stage.end + stage.length.forward + to_free * stage.length.weights <= due) return false;
    Seconds most_waited;
    for (const Stage& other : stages_) most_waited = std::max(most_waited, other.waited);
    return due - stage.end <= most_waited - stage.waited;
  }

  const int microbatches_;
  const int most_held_;
  const Seconds transfer_;
  const Choices choices_;
  std::vector<Stage> stages_;
};

// The heuristic of Qi et al. (arXiv 2401.10241, section 3.1: ZB-1p and ZB-2p, where no stage holds
// more than p or 2 p micro-batches). As many forward passes as fit run before the first B; then
// each stage has a forward pass and a B in turn, and a W in gaps as long as one, in gaps that would
// make it the stage with the longest wait, or if memory is full. Three choices that the heuristic
// leaves open are tried both ways; the best is the one whose longest stage is the shortest.
class ZeroBubble final : public Schedule {
 public:
  // `held` is the number of micro-batches that a stage may hold, for each stage of the pipeline.
  ZeroBubble(std::string name, int held) : Schedule{std::move(name)}, held_{held} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>& lengths,
                Seconds transfer) const override {
    assert(static_cast<int>(lengths.size()) == pipeline.stages && pipeline.microbatches >= 1);
    const int most_held = held_ * pipeline.stages;
    std::optional<Heuristic> best;
    for (bool wait : {true, false})
      for (bool skip : {true, false})
        for (bool fill : {true, false}) {
          Heuristic tried{lengths, pipeline.microbatches, most_held, transfer, {wait, skip, fill}};
          tried.run();
          if (!best || tried.longest() < best->longest()) best.emplace(std::move(tried));
        }
    return std::move(*best).orders();
  }

  Held held(const Pipeline& pipeline, int) const override {
    return {std::min(pipeline.microbatches, held_ * pipeline.stages)};
  }

  bool follows_lengths() const override { return true; }
  bool splits_backward() const override { return true; }

 private:
  const int held_;
};

}  // namespace

const Schedule& zb_1p() {
  static const ZeroBubble schedule{"zb-1p", 1};
  return schedule;
}

const Schedule& zb_2p() {
  static const ZeroBubble schedule{"zb-2p", 2};
  return schedule;
}

namespace {

// Each backward pass is split in two: gradients of the inputs (the paper's B), which the stage
// before waits for, and gradients of the weights (W), which no stage waits for (Qi et al., Zero
// Bubble Pipeline Parallelism, ICLR 2024, arXiv 2401.10241, section 2). Later stages put off more
// of their W, so that all hold equally many micro-batches. The lengths of the three are f, b and w:
//
//     zb-h1   min(m, p) held; idle (p - 1)(f + b - w), from the step's begin to its end
//     zb-h2   min(m, 2 p - 1) held; idle (p - 1)(f + b - 2 w), from a stage's first pass to its
//             last one, with m >= 2 p - 1 and w <= b, 2 w <= f + b
class ZeroBubbleByHand final : public Schedule {
 public:
  // Each W is delayed by `rounds` trips of a forward pass down the pipeline and a gradient back.
  ZeroBubbleByHand(std::string name, int rounds) : Schedule{std::move(name)}, rounds_{rounds} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    Orders orders;
    for (int s = 0; s < pipeline.stages; ++s)
      orders.push_back(
          order_of(pipeline.microbatches, rounds_ * (pipeline.stages - 1 - s) + 1, rounds_ * s));
    return orders;
  }

  Held held(const Pipeline& pipeline, int) const override {
    return {std::min(pipeline.microbatches, rounds_ * (pipeline.stages - 1) + 1)};
  }

  bool splits_backward() const override { return true; }

 private:
  // 1F1B with `warmup` forward passes first; W follows its B, but for `put_off` of them.
  static std::vector<Slot> order_of(int microbatches, int warmup, int put_off) {
    assert(microbatches >= 1 && warmup >= 1);
    std::vector<Slot> order;
    order.reserve(3 * static_cast<std::size_t>(microbatches));
    int forward = 0;
    int weights = 0;
    while (forward < std::min(warmup, microbatches)) order.push_back({Pass::forward, 0, forward++});
    for (int m = 0; m < microbatches; ++m) {
      order.push_back({Pass::backward, 0, m, false, true});
      if (m + 1 - weights > put_off) order.push_back({Pass::weight_gradient, 0, weights++});
      if (forward < microbatches) order.push_back({Pass::forward, 0, forward++});
    }
    while (weights < microbatches) order.push_back({Pass::weight_gradient, 0, weights++});
    return order;
  }

  const int rounds_;
};

}  // namespace

const Schedule& zb_h1() {
  static const ZeroBubbleByHand schedule{"zb-h1", 1};
  return schedule;
}

const Schedule& zb_h2() {
  static const ZeroBubbleByHand schedule{"zb-h2", 2};
  return schedule;
}

}  // namespace orrery
