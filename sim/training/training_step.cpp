#include "sim/training/training_step.hpp"

#include <cassert>

#include "sim/training/step_draft.hpp"
#include "sim/training/verify.hpp"

namespace orrery {

TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const StepTraffic& traffic, const Cast& cast,
                                 const Topology& topology, Contraction contraction) {
  StepDraft draft{scenario, *cost, traffic, cast, topology};
  add_passes(draft, contraction);
  add_mirror_weights(draft);
  add_weight_prefetch(draft);
  add_shard_traffic(draft);
  add_transfers(draft);
  add_gradient_reduction(draft);
  add_mirror_gradients(draft);
  add_closing(draft);
  TrainingStep step{std::move(cost),
                    cast,
                    std::move(draft.graph),
                    contraction.quiet,
                    std::move(draft.overlapped),
                    std::move(draft.labels)};
  // Where indices are checked, in every test, so is every graph: a twentieth of an estimate's time.
#ifdef _GLIBCXX_ASSERTIONS
  assert(verify(step, scenario.plan).empty());
#endif
  return step;
}

namespace {

const StageCost& stage_of(const Plan& plan, const TrainingStep& step, TaskId id, int chunk,
                          int microbatch) {
  const int owner = step.graph.task(id).owner;
  const Role& role = step.cast.roles()[static_cast<std::size_t>(owner)];
  return step.cost->stage(plan.virtual_stage(role.at.stage, chunk),
                          step.cast.placement().draw(role.rank), microbatch);
}

}  // namespace

const PassCost& pass_of(const Plan& plan, const TrainingStep& step, TaskId id) {
  const Label& label = step.label(id);
  const StageCost& stage = stage_of(plan, step, id, label.chunk, label.microbatch);
  if (label.what == Label::What::forward) return stage.forward;
  if (label.what == Label::What::weight_gradient) return stage.weight_gradient;
  return label.inputs_only ? stage.input_gradient : stage.backward;
}

const PassCost& pass_beside(const Plan& plan, const TrainingStep& step, TaskId id) {
  const Label& label = step.label(id);
  return stage_of(plan, step, id, label.with_chunk, label.with_microbatch).backward;
}

}  // namespace orrery
