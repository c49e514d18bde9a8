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

/// The part of a timeline that counts as the step.
///
/// If stages wait for each other at the step's end, it is the whole timeline. If none does
/// (Software::optimizer_post_validation), each stage begins its next step as soon as its own is
/// done, and the step time is that of the longest stage, from its first forward pass to its last
/// update (measured so by Qi et al., arXiv 2401.10241, section 5.3).
struct StepWindow {
  Seconds start;
  Seconds finish;
  bool of_one_stage = false;

  Seconds length() const { return finish - start; }
};

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline);

/// Lower bound of the window, with isolated task times and no shared links. If a single stage is
/// the window, the bound is its longest chain from one of its forward passes to its end, because
/// shared links may delay its begin by more than its end.
Seconds least_step_window(const Scenario& scenario, const TrainingStep& step);

/// The critical path of the simulated step, first task to last: it is traced back from the last
/// task to finish, each time to the predecessor that finished last. A task starts when its last
/// predecessor ends, so that the spans have no gaps and add up to the makespan. Ties go to the task
/// that was added first. `end`: tasks that finished later do not count; the makespan, or the end
/// of a step's window.
std::vector<TaskId> deciding_path(const TaskGraph& graph, const Timeline& timeline, Seconds end);

/// A task of the critical path, and its time on it, from the end of the task before it to its own.
/// Lengths add up to the window's; tasks that end before it begins are left out.
struct PathTask {
  TaskId id;
  Seconds length;
};
std::vector<PathTask> path_through(const TaskGraph& graph, const Timeline& timeline,
                                   const StepWindow& window);

/// The step time by cost model along the critical path: the gradient of the step time. If all costs
/// of a kind rise by a small share, the step gets longer by that share of their part. Adds up to
/// the step time.
///
/// A contracted pass counts as PassCost::decisive; the kernels of an expanded pass count in the
/// mean proportions of the pass. A flow counts with all its time, including contention.
TimeByPrice time_by_price(const Plan& plan, const TrainingStep& step,
                          const std::vector<PathTask>& path, const Topology& topology);

/// The prediction interval of a step of that length, given the errors of the cost model.
StepRange range_of(const Scenario& scenario, const TrainingStep& step, Seconds length,
                   const std::vector<PathTask>& path, const Topology& topology,
                   const PriceErrors& errors);

/// Uses of time in a step. The first ones are those of Work; communication is the exposed part.
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
  waiting,  ///< For other ranks of a large cluster, at the end of the step.
};
template <>
inline const std::vector<std::string> enum_words<StepPart>{
    "matrix_products", "expert_products", "attention",        "memory_bound",      "host",
    "slowed_down",     "tensor_parallel", "context_parallel", "expert_parallel",   "pipeline",
    "data_parallel",   "optimizer",       "gradient_norm",    "waiting_for_others"};
inline constexpr std::size_t step_part_count = 14;

/// Passes of micro-batches, their recomputation, or work done once for the whole step.
enum class StepPhase { forward, backward, recomputed, once };
template <>
inline const std::vector<std::string> enum_words<StepPhase>{"forward", "backward", "recomputed",
                                                            "once"};
inline constexpr std::size_t step_phases = 4;
/// "expert_products_forward", "optimizer"
std::string name(StepPart part, StepPhase phase);

/// Time along a step's critical path by use: the step would be shorter if any of its tasks were.
/// There is no idle time on it. Adds up to the step time.
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
  std::vector<Seconds> by_stage;  ///< The same time by stage; transfers count for the sender.
};

/// `path`: result of path_through(). An expanded pass counts with the mean proportions of its
/// kernels, a flow with all its time, including contention.
CriticalParts critical_parts(const Plan& plan, const TrainingStep& step,
                             const std::vector<PathTask>& path);

/// Exposed time of collectives in a pass.
struct ExposedInPass {
  Seconds tensor, context, expert;

  /// The same, extended to `sum`: time beyond the collectives' own is the wait for a slower member,
  /// which counts for the group that waits first.
  ExposedInPass adding_up_to(Seconds sum, const Plan& plan) const;
};
/// Time of the collectives alone, for a rank of this speed. It scans every segment of the pass:
/// compute it once for all passes of equal cost.
ExposedInPass exposed_in_pass(const PassCost& cost, double speed);

}  // namespace orrery
