#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/layers/routed_loads.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Of every layer, micro-batch and group that a routed step looks at: no token is lost or made.
///
/// All       kept + dropped = tokens x experts a token, over the group.
/// Expert    visited (kept + dropped) by each token at most once.
/// Rank      computes what its experts keep, or with padding as much in every slot.
inline void expect_tokens_conserved(const Scenario& scenario) {
  const RoutedLoads loads{scenario, Placement{scenario.plan, scenario.system}.shapes(), {}};
  if (loads.even()) return;
  const RoutingShape& shape = loads.shape();
  for (int g = 0; g < loads.groups(); ++g)
    for (int m = 0; m < loads.micro_batches(); ++m)
      for (int l = 0; l < loads.layers(); ++l) {
        const RoutedBatch& batch = loads.batch(g, m, l);
        EXPECT_EQ(batch.total_kept() + batch.total_dropped(), shape.copies());
        std::vector<std::int64_t> visits = batch.dropped;
        for (std::size_t slot = 0; slot < batch.kept.size(); ++slot)
          visits[static_cast<std::size_t>(loads.expert_of(l, slot))] += batch.kept[slot];
        EXPECT_LE(*std::max_element(visits.begin(), visits.end()), shape.tokens * shape.ranks);
        EXPECT_GE(*std::min_element(visits.begin(), visits.end()), 0);
        std::size_t slot = 0;
        for (int r = 0; r < shape.ranks; ++r)
          for (const std::int64_t rows : batch.computed_by(r)) {
            EXPECT_GE(rows, batch.kept[slot]);
            EXPECT_TRUE(loads.plan().pad_to_capacity || rows == batch.kept[slot]);
            ++slot;
          }
        EXPECT_EQ(slot, batch.kept.size());
      }
}

/// Every moment of a step has one cause: on the critical path, by part and by stage, and on each
/// stage. In whole ticks of the clock but for what is rounded once or twice.
inline void expect_time_conserved(const Result& result) {
  const double step = result.step_time.si();
  EXPECT_NEAR(result.critical.parts.total().si(), step, 1e-9 * step);
  Seconds by_stage;
  for (const Seconds stage : result.critical.by_stage) {
    EXPECT_GE(stage.si(), 0.0);
    by_stage += stage;
  }
  EXPECT_NEAR(by_stage.si(), step, 1e-9 * step);
  for (std::size_t part = 0; part < step_part_count; ++part)
    for (std::size_t phase = 0; phase < step_phases; ++phase)
      EXPECT_GE(
          result.critical.parts.at(static_cast<StepPart>(part), static_cast<StepPhase>(phase)).si(),
          -1e-9 * step)
          << name(static_cast<StepPart>(part), static_cast<StepPhase>(phase));
  ASSERT_EQ(result.stages.size(), static_cast<std::size_t>(result.scenario.plan.pp));
  for (const Breakdown& stage : result.stages) {
    EXPECT_NEAR(stage.sum().si(), step, 1e-9 * step);
    EXPECT_NEAR(stage.work.total().si(), stage.compute.si(), 1e-9 * step);
    EXPECT_LE(stage.busy(), result.busiest().busy());
  }
}

/// All dispatched bytes come back, also on every link that others do not use.
inline void expect_tokens_to_come_back(const Result& result) {
  for (const LinkReport& link : result.links) {
    const double there = link.of(LinkUser::dispatch).si();
    EXPECT_NEAR(link.of(LinkUser::combine).si(), there, 1e-9 * there) << link.name;
  }
}

}  // namespace orrery
