#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/step_range.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// What of a timeline counts as the step.
///
/// Where stages wait for each other at the step's end: all of it. Where none does
/// (Software::optimizer_post_validation), each begins its next step as soon as its own is done, and
/// steps follow each other in the time that the longest stage takes from its first forward pass to
/// its last update (Qi et al., arXiv 2401.10241, section 5.3, measure their schedules so): from
/// that stage's begin to its end.
struct StepWindow {
  Seconds start;
  Seconds finish;
  bool of_one_stage = false;

  Seconds length() const { return finish - start; }
};

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline);

/// What the window cannot be shorter than: tasks take their least times, without links that they
/// share. Of a lone stage it is the longest chain from one of its forward passes to its end, as
/// those that share links may keep it from beginning longer than from ending.
Seconds least_step_window(const Scenario& scenario, const TrainingStep& step);

/// The chain of tasks that decided when the step ended, first to last: from the last to finish
/// back, each the one for which its successor waited the longest. A task starts when the last one
/// before it ends, so that their spans follow each other without gaps and add up to the makespan.
/// Of several that ended together the one that was added first. `end`: nothing counts that finished
/// later; the makespan, or the end of a step's window.
std::vector<TaskId> deciding_path(const TaskGraph& graph, const Timeline& timeline, Seconds end);

/// A task of a step's deciding path, and how long the step waits for it: from the end of the task
/// before it to its own. Lengths add up to the window's, but for tasks that end before it begins.
struct PathTask {
  TaskId id;
  Seconds length;
};
std::vector<PathTask> path_through(const TaskGraph& graph, const Timeline& timeline,
                                   const StepWindow& window);

/// The step time by what was priced along that chain. It is the gradient of the step time: where
/// all prices of a kind rise by a small share, the step gets longer by that share of their part.
/// Adds up to the step time.
///
/// A pass that is one task counts as PassCost::decisive; where it is drawn as a chain, its kernels
/// count in the mean proportions of the pass. A flow that shares its links counts with all the time
/// that it took.
TimeByPrice time_by_price(const Plan& plan, const TrainingStep& step,
                          const std::vector<PathTask>& path, const Topology& topology);

/// The range of a step of that length, its prices being off by `errors`.
StepRange range_of(const Scenario& scenario, const TrainingStep& step, Seconds length,
                   const std::vector<PathTask>& path, const Topology& topology,
                   const PriceErrors& errors);

/// What a moment of a step is spent on. The first ones are those of Work; communication is what no
/// kernel hides.
enum class StepPart {
  products,
  expert_products,
  attention,
  streaming,
  host,
  slowed,
  tensor,
  context,
  expert,
  pipeline,  ///< Transfers between stages.
  data,      ///< Gradients and weights of replicas, a tied embedding's among them.
  optimizer,
  norm,
};
template <>
inline const std::vector<std::string> enum_words<StepPart>{
    "matrix_products", "expert_products", "attention",        "memory_bound",    "host",
    "slowed_down",     "tensor_parallel", "context_parallel", "expert_parallel", "pipeline",
    "data_parallel",   "optimizer",       "gradient_norm"};
inline constexpr std::size_t step_part_count = 13;

/// For whom: a micro-batch's passes, what a backward pass does once more, or the whole step.
enum class StepPhase { forward, backward, recomputed, once };
template <>
inline const std::vector<std::string> enum_words<StepPhase>{"forward", "backward", "recomputed",
                                                            "once"};
inline constexpr std::size_t step_phases = 4;
/// "expert_products_forward", "optimizer"
std::string name(StepPart part, StepPhase phase);

/// Where a step's time goes along its critical path: the chain of tasks of which each made the next
/// one wait, so that the whole step would be shorter if any of them were. Nobody on it is idle.
/// Adds up to the step time.
class TimeByPart {
 public:
  Seconds& at(StepPart part, StepPhase phase) { return parts_[index(part)][index(phase)]; }
  Seconds at(StepPart part, StepPhase phase) const { return parts_[index(part)][index(phase)]; }
  Seconds sum(StepPart part) const;
  Seconds total() const;
  /// `share` of what kernels do.
  void add(const TimeByWork& work, StepPhase phase, double share);
  void add(const TimeByPart& more, double share);

 private:
  template <class Enum>
  static std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
  }
  std::array<std::array<Seconds, step_phases>, step_part_count> parts_{};
};

struct CriticalParts {
  TimeByPart parts;
  std::vector<Seconds> by_stage;  ///< The same time by who spends it; a transfer's sender does.
};

/// `path`: of path_through(). A pass that is drawn in stretches counts with the mean proportions of
/// its kernels; a flow that shares its links counts with all the time that it took.
CriticalParts critical_parts(const Plan& plan, const TrainingStep& step,
                             const std::vector<PathTask>& path);

/// What a rank waits for collectives in a pass.
struct ExposedInPass {
  Seconds tensor, context, expert;

  /// The same where it is `sum` in all: what is beyond the collectives' own time is the lead of a
  /// slower member, named after the group in which it is waited for first.
  ExposedInPass adding_up_to(Seconds sum, const Plan& plan) const;
};
/// Of a rank of this speed, the collectives' own time. Looks at every stretch of the pass: to be
/// asked once for all passes of a price.
ExposedInPass exposed_in_pass(const PassCost& cost, double speed);

}  // namespace orrery
