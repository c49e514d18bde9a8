#include "sim/training/training_step.hpp"

#include <cassert>
#include <cmath>

#include "sim/training/step_draft.hpp"

namespace orrery {

TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const StepTraffic& traffic, const RankClasses& classes,
                                 const Topology& topology, Contraction contraction) {
  StepDraft draft{scenario, *cost, traffic, classes, topology};
  add_passes(draft, contraction);
  add_mirror_weights(draft);
  add_weight_prefetch(draft);
  add_shard_traffic(draft);
  add_transfers(draft);
  add_gradient_reduction(draft);
  add_mirror_gradients(draft);
  add_closing(draft);
  TrainingStep step{std::move(cost),
                    classes,
                    std::move(draft.graph),
                    contraction.quiet,
                    std::move(draft.overlapped),
                    std::move(draft.labels)};
  // Builds with checked indices, as in tests, verify every graph in 5 % of an estimate's time.
#ifdef _GLIBCXX_ASSERTIONS
  assert(verify(step, scenario.plan).empty());
#endif
  return step;
}

namespace {

const StageCost& stage_of(const Plan& plan, const TrainingStep& step, TaskId id, int chunk,
                          int microbatch) {
  const int owner = step.graph.task(id).owner;
  const RankClass& rep = step.classes.reps()[static_cast<std::size_t>(owner)];
  return step.cost->stage(plan.virtual_stage(rep.at.stage, chunk),
                          step.classes.placement().draw(rep.rank), microbatch);
}

}  // namespace

const PassCost& pass_of(const Plan& plan, const TrainingStep& step, TaskId id) {
  const Label& label = step.label(id);
  const StageCost& stage = stage_of(plan, step, id, label.chunk, label.microbatch);
  if (label.what == Label::What::forward) return stage.forward;
  if (label.what == Label::What::weight_gradient) return stage.weight_gradient;
  return label.inputs_only ? stage.input_gradient : stage.backward;
}

const PassCost& overlapped_pass(const Plan& plan, const TrainingStep& step, TaskId id) {
  const Label& label = step.label(id);
  return stage_of(plan, step, id, label.with_chunk, label.with_microbatch).backward;
}

namespace {

std::string describe(TaskId id, const TrainingStep& step) {
  const Label& label = step.label(id);
  return "task " + std::to_string(id.value) + " (role " +
         std::to_string(step.graph.task(id).owner) + ", chunk " + std::to_string(label.chunk) +
         ", micro-batch " + std::to_string(label.microbatch) + ")";
}

std::string check_numbers(TaskId id, const TrainingStep& step) {
  const Task& task = step.graph.task(id);
  if (!std::isfinite(task.duration.si()) || task.duration < Seconds{})
    return describe(id, step) + " has a duration that is not a time";
  if (step.label(id).kind != Label::Kind::transfer && !task.flows.empty())
    return describe(id, step) + " computes and sends at once";
  for (const Flow& flow : task.flows) {
    if (!std::isfinite(flow.bytes.si()) || flow.bytes.si() <= 0.0)
      return describe(id, step) + " has a flow without bytes";
    if (!std::isfinite(flow.rate.si()) || flow.rate.si() <= 0.0)
      return describe(id, step) + " has a flow that does not move";
    if (flow.route.empty()) return describe(id, step) + " has a flow without a way";
    for (const LinkUse& use : flow.route)
      if (use.times < 1) return describe(id, step) + " uses a link less than once";
  }
  return "";
}

// A topological order of the tasks; incomplete if there is a cycle.
std::vector<TaskId> in_some_order(const TaskGraph& graph) {
  std::vector<int> waits(static_cast<std::size_t>(graph.size()));
  std::vector<TaskId> order;
  order.reserve(waits.size());
  for (int id = 0; id < graph.size(); ++id) {
    waits[static_cast<std::size_t>(id)] = graph.waits_for(TaskId{id});
    if (graph.waits_for(TaskId{id}) == 0) order.push_back(TaskId{id});
  }
  for (std::size_t next = 0; next < order.size(); ++next)
    graph.for_each_successor(order[next], [&](TaskId after) {
      if (--waits[static_cast<std::size_t>(after.value)] == 0) order.push_back(after);
    });
  return order;
}

// Checks that every representative runs the forward and backward passes of all its chunks and
// micro-batches. Passes are indexed by number: a map would take longer than the rest.
class Passes {
 public:
  Passes(const TrainingStep& step, const Plan& plan)
      : step_{step},
        chunks_{static_cast<std::size_t>(plan.chunks())},
        microbatches_{static_cast<std::size_t>(plan.microbatches)},
        expected_{step.classes.reps().size() * chunks_ *
                  static_cast<std::size_t>(plan.microbatches_of_chunk())},
        passes_(step.classes.reps().size() * chunks_ * microbatches_) {}

  /// Adds the next task in topological order.
  std::string see(TaskId id) {
    const Task& task = step_.graph.task(id);
    const Label& label = step_.label(id);
    ++position_;
    if (task.stream != Stream::compute || label.microbatch < 0) return "";
    Pass* own = pass(task.owner, label.chunk, label.microbatch);
    if (!own) return describe(id, step_) + " is of no pass of the plan";
    if (label.what == Label::What::forward) own->last_forward = position_;
    if (label.what == Label::What::backward && own->first_backward < 0) {
      own->first_backward = position_;
      own->inputs_only = label.inputs_only;
    }
    if (label.what == Label::What::weight_gradient) {
      if (own->first_backward < 0) return describe(id, step_) + " comes before its inputs'";
      own->weights = true;
    }
    if (label.cost && label.with_microbatch >= 0) {
      Pass* other = pass(task.owner, label.with_chunk, label.with_microbatch);
      if (!other) return describe(id, step_) + " runs with no pass of the plan";
      other->first_backward = position_;
    }
    return "";
  }

  std::string first_problem() const {
    if (met_ != expected_)
      return std::to_string(met_) + " passes where the plan has " + std::to_string(expected_);
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const Pass& one = passes_[i];
      if (!one.met) continue;
      if (one.last_forward < 0 || one.first_backward < 0 || one.last_forward > one.first_backward)
        return name(i) + " backward before forward, or only one of the two";
      if (one.inputs_only != one.weights)
        return name(i) +
               (one.weights ? " with its weight gradients twice" : " without its weight gradients");
    }
    return "";
  }

 private:
  struct Pass {
    bool met = false, inputs_only = false, weights = false;
    int last_forward = -1, first_backward = -1;  // Positions in the order.
  };

  Pass* pass(int rep, int chunk, int microbatch) {
    const auto c = static_cast<std::size_t>(chunk), m = static_cast<std::size_t>(microbatch);
    const std::size_t index = (static_cast<std::size_t>(rep) * chunks_ + c) * microbatches_ + m;
    if (rep < 0 || c >= chunks_ || m >= microbatches_ || index >= passes_.size()) return nullptr;
    met_ += passes_[index].met ? 0 : 1;
    passes_[index].met = true;
    return &passes_[index];
  }
  std::string name(std::size_t pass) const {
    return "role " + std::to_string(pass / microbatches_ / chunks_) + " runs micro-batch " +
           std::to_string(pass % microbatches_);
  }

  const TrainingStep& step_;
  std::size_t chunks_, microbatches_, expected_;
  std::vector<Pass> passes_;
  std::size_t met_ = 0;
  int position_ = 0;
};

// Checks that a stage receives m tensors for each chunk and direction, except at the two ends of
// the pipeline and between consecutive virtual stages on one rank.
class Transfers {
 public:
  explicit Transfers(const TrainingStep& step) : step_{step}, sent_(step.classes.reps().size()) {}

  std::string see(TaskId id) {
    const Label& label = step_.label(id);
    if (label.what != Label::What::transfer) return "";
    const Task& task = step_.graph.task(id);
    if (!is_rep(task.owner) || !is_rep(label.to_rep))
      return describe(id, step_) + " sends from or to no rank";
    ++count_;
    for (const Flow& flow : task.flows) add(task.owner, label.to_rep, flow.bytes);
    return "";
  }

  std::string first_problem(const Plan& plan) const {
    for (int from = 0; is_rep(from); ++from)
      for (const auto& [to, there] : sent_[static_cast<std::size_t>(from)]) {
        const Bytes back = sent(to, from);
        if (back <= Bytes{}) return "gradients do not come back to role " + std::to_string(from);
        // In interleaved schedules the last stage also feeds the first: pairs are not symmetric.
        if (plan.vpp == 1 && there != back) return "stages send other bytes than come back";
      }
    std::int64_t sends = 0;
    for (int v = 0; v < plan.virtual_stages(); ++v) sends += plan.sends_on(v);
    const std::int64_t expected =
        2 * sends * plan.microbatches * (static_cast<std::int64_t>(sent_.size()) / plan.pp);
    if (count_ == expected) return "";
    return std::to_string(count_) + " transfers between stages where the plan has " +
           std::to_string(expected);
  }

 private:
  bool is_rep(int number) const { return 0 <= number && number < static_cast<int>(sent_.size()); }
  void add(int from, int to, Bytes bytes) {
    auto& receivers = sent_[static_cast<std::size_t>(from)];
    for (auto& [receiver, sum] : receivers)
      if (receiver == to) {
        sum += bytes;
        return;
      }
    receivers.emplace_back(to, bytes);
  }
  Bytes sent(int from, int to) const {
    for (const auto& [receiver, sum] : sent_[static_cast<std::size_t>(from)])
      if (receiver == to) return sum;
    return {};
  }

  const TrainingStep& step_;
  std::vector<std::vector<std::pair<int, Bytes>>>
      sent_;  // Bytes from each representative to a few others.
  std::int64_t count_ = 0;
};

}  // namespace

std::string verify(const TrainingStep& step, const Plan& plan) {
  const std::vector<TaskId> order = in_some_order(step.graph);
  if (order.size() != static_cast<std::size_t>(step.graph.size()))
    return "the tasks wait for each other in a circle";
  Passes passes{step, plan};
  Transfers transfers{step};
  for (TaskId id : order) {
    if (std::string problem = check_numbers(id, step); !problem.empty()) return problem;
    if (std::string problem = transfers.see(id); !problem.empty()) return problem;
    if (std::string problem = passes.see(id); !problem.empty()) return problem;
  }
  if (std::string problem = passes.first_problem(); !problem.empty()) return problem;
  return transfers.first_problem(plan);
}

}  // namespace orrery
