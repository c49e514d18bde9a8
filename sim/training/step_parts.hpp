#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/layers/time_by_work.hpp"
#include "sim/training/deciding_path.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

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
inline constexpr std::size_t step_part_count = 13;
/// "expert_products"
const std::string& name(StepPart part);

/// For whom: a micro-batch's passes, what a backward pass does once more, or the whole step.
enum class StepPhase { forward, backward, recomputed, once };
inline constexpr std::size_t step_phases = 4;
const std::string& name(StepPhase phase);
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
