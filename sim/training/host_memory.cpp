#include "sim/training/host_memory.hpp"

#include <cmath>
#include <string>

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

// Peaks of whole processes over their tasks, with timeline, labels and flows: 240 to 310 bytes a
// task in steps of 0.8 to 16 million tasks, one rank and 2,048, contracted and drawn.
constexpr Bytes of_a_task{300.0};

double passes(const Plan& plan) {
  const double kinds = plan.splits_backward() ? 3.0 : 2.0;
  return kinds * plan.microbatches_of_chunk() * plan.chunks();
}

}  // namespace

double least_tasks(const Plan& plan, int ranks) { return passes(plan) * ranks; }

double expected_tasks(const Plan& plan, int ranks, const StepCost& cost,
                      const Contraction& contraction) {
  const double least = least_tasks(plan, ranks);
  const double stages = static_cast<double>(cost.stages.size());
  // All stages but the last send forward, all but the first backward.
  const double transfers =
      2.0 * plan.microbatches_of_chunk() * plan.chunks() * ranks * (stages - 1.0) / stages;
  if (contraction.quiet && contraction.overlapped) return least + transfers;
  double in_both = 0.0;  // Of a virtual stage, on the average.
  for (const StageCost& stage : cost.stages)
    in_both +=
        static_cast<double>(tasks_in(stage.forward.segments) + tasks_in(stage.backward.segments));
  in_both /= stages;
  if (!contraction.quiet) return least * in_both / 2.0 + transfers;
  // The first forward and the last backward pass of each chunk are drawn.
  return least + transfers + in_both * plan.chunks() * ranks;
}

void require_host_memory(double tasks, Bytes most) {
  const Bytes needed = tasks * of_a_task;
  if (most <= Bytes{} || needed <= most) return;
  fail_infeasible({},
                  "a simulation of about " + std::to_string(std::llround(tasks / 1e6)) +
                      " million" + " tasks needs some " + gigabytes_text(needed) +
                      " of this machine's memory, and may take " + gigabytes_text(most),
                  "simulate fewer ranks (without --unfolded and --expanded) or micro-batches, or "
                  "say --host-memory '" +
                      gigabytes_text(1.2 * needed) + "'");
}

}  // namespace orrery
