#include "sim/training/step_parts.hpp"

#include <cassert>
#include <map>
#include <utility>

namespace orrery {

const std::string& name(StepPart part) {
  static const std::array<std::string, step_part_count> names{
      "matrix_products", "expert_products", "attention",        "memory_bound",    "host",
      "slowed_down",     "tensor_parallel", "context_parallel", "expert_parallel", "pipeline",
      "data_parallel",   "optimizer",       "gradient_norm"};
  return names[static_cast<std::size_t>(part)];
}

const std::string& name(StepPhase phase) {
  static const std::array<std::string, step_phases> names{"forward", "backward", "recomputed",
                                                          "once"};
  return names[static_cast<std::size_t>(phase)];
}

std::string name(StepPart part, StepPhase phase) {
  return phase == StepPhase::once ? name(part) : name(part) + "_" + name(phase);
}

Seconds TimeByPart::sum(StepPart part) const {
  Seconds sum;
  for (const Seconds time : parts_[index(part)]) sum += time;
  return sum;
}

Seconds TimeByPart::total() const {
  Seconds total;
  for (std::size_t part = 0; part < step_part_count; ++part)
    total += sum(static_cast<StepPart>(part));
  return total;
}

void TimeByPart::add(const TimeByWork& work, StepPhase phase, double share) {
  for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
    parts_[kind][index(phase)] += share * work.at(static_cast<Work>(kind));
}

void TimeByPart::add(const TimeByPart& more, double share) {
  for (std::size_t part = 0; part < step_part_count; ++part)
    for (std::size_t phase = 0; phase < step_phases; ++phase)
      parts_[part][phase] += share * more.parts_[part][phase];
}

ExposedInPass exposed_in_pass(const PassCost& cost, double speed) {
  return {cost.exposed(GroupKind::tensor, speed), cost.exposed(GroupKind::context, speed),
          cost.exposed(GroupKind::expert, speed) + cost.exposed(GroupKind::expert_tensor, speed)};
}

ExposedInPass ExposedInPass::adding_up_to(Seconds sum, const Plan& plan) const {
  ExposedInPass all = *this;
  (plan.tp > 1   ? all.tensor
   : plan.cp > 1 ? all.context
   : plan.ep > 1 ? all.expert
                 : all.tensor) += sum - tensor - context - expert;
  return all;
}

namespace {

StepPart part_of(GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return StepPart::tensor;
    case GroupKind::context:
      return StepPart::context;
    default:
      return StepPart::expert;
  }
}

StepPhase phase_of(bool backward) { return backward ? StepPhase::backward : StepPhase::forward; }

// Sums up what the tasks of a path do.
class Sum {
 public:
  Sum(const Plan& plan, const TrainingStep& step) : plan_{plan}, step_{step} {}

  void add(TaskId id, Seconds length) {
    const Label& label = step_.label(id);
    switch (label.what) {
      case Label::What::forward:
      case Label::What::backward:
      case Label::What::weight_gradient: {
        const TimeByPart& parts =
            label.cost || step_.graph.task(id).chain ? of_pass(id) : of_kernels(id);
        assert(parts.total() > Seconds{});
        parts_.add(parts, length / parts.total());
        return;
      }
      case Label::What::collective:
        return add(part_of(label.group), phase_of(label.backward), length);
      case Label::What::transfer:
        return add(StepPart::pipeline, phase_of(label.backward), length);
      case Label::What::gradients:
      case Label::What::weights:
        return add(StepPart::data, StepPhase::once, length);
      case Label::What::optimizer:
        return add(StepPart::optimizer, StepPhase::once, length);
      case Label::What::norm:
        return add(StepPart::norm, StepPhase::once, length);
    }
  }
  const TimeByPart& parts() const { return parts_; }

 private:
  void add(StepPart part, StepPhase phase, Seconds length) { parts_.at(part, phase) += length; }

  static void add_kernels(const PassCost& pass, bool forward, double share, TimeByPart& parts) {
    parts.add(pass.work, phase_of(!forward), share);
    parts.add(pass.recomputed, StepPhase::recomputed, share);
    parts.add(pass.recomputed, phase_of(!forward), -share);
  }

  // A stretch of a pass's kernels: all of them, as no stretch knows its own.
  const TimeByPart& of_kernels(TaskId id) {
    const PassCost& pass = pass_of(plan_, step_, id);
    const auto [known, fresh] = kernels_.try_emplace(&pass);
    if (fresh) add_kernels(pass, step_.label(id).what == Label::What::forward, 1.0, known->second);
    return known->second;
  }

  // One task of a pass, or of two that run together.
  const TimeByPart& of_pass(TaskId id) {
    const Label& label = step_.label(id);
    const int owner = step_.graph.task(id).owner;
    const PassCost& cost = label.cost ? *label.cost : pass_of(plan_, step_, id);
    const auto [known, fresh] = passes_.try_emplace({&cost, owner});
    TimeByPart& parts = known->second;
    if (!fresh) return parts;
    const bool forward = label.what == Label::What::forward;
    const Role& role = step_.cast.roles()[static_cast<std::size_t>(owner)];
    const double share = 1.0 / role.speed;
    if (label.with_microbatch >= 0) {
      const PassCost& backward = pass_beside(plan_, step_, id);
      parts.add(cost.work, StepPhase::forward, share);  // With what both lose to each other.
      parts.add(backward.work, StepPhase::forward, -share);
      add_kernels(backward, false, share, parts);
    } else {
      add_kernels(cost, forward, share, parts);
    }
    const Seconds exposed = cost.time(role.pace) - share * cost.compute;
    const ExposedInPass waits = exposed_in_pass(cost, role.speed).adding_up_to(exposed, plan_);
    parts.at(StepPart::tensor, phase_of(!forward)) += waits.tensor;
    parts.at(StepPart::context, phase_of(!forward)) += waits.context;
    parts.at(StepPart::expert, phase_of(!forward)) += waits.expert;
    return parts;
  }

  const Plan& plan_;
  const TrainingStep& step_;
  TimeByPart parts_;
  std::map<const PassCost*, TimeByPart> kernels_;
  std::map<std::pair<const PassCost*, int>, TimeByPart> passes_;
};

}  // namespace

CriticalParts critical_parts(const Plan& plan, const TrainingStep& step,
                             const std::vector<PathTask>& path) {
  Sum sum{plan, step};
  CriticalParts critical;
  critical.by_stage.resize(static_cast<std::size_t>(plan.pp));
  for (const auto& [id, length] : path) {
    const int owner = step.graph.task(id).owner;
    const int stage = step.cast.roles()[static_cast<std::size_t>(owner)].at.stage;
    sum.add(id, length);
    critical.by_stage[static_cast<std::size_t>(stage)] += length;
  }
  critical.parts = sum.parts();
  return critical;
}

}  // namespace orrery
