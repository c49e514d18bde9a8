#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/simulation.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

struct TraceOptions {
  std::vector<int> ranks = {};  ///< Whom to draw; empty: all that were simulated.
  /// Slices and arrow ends; chrome://tracing breaks near a million events (golang/go issue 11520).
  std::int64_t most_events = 500'000;
  /// Draw kernels and collectives inside the first two micro-batches' passes, if there is room.
  bool expand = false;
  /// What whoever looks at it must know: that the plan does not fit.
  std::vector<std::string> warnings = {};
};

/// A step as Chrome trace JSON, which ui.perfetto.dev, chrome://tracing and speedscope open: a
/// process a simulated rank, a thread each for compute, tensor-parallel, pipeline (by direction)
/// and data-parallel work, an arrow from each transfer to the pass that waits for it. A rank that
/// was not simulated is drawn by the one that stands for it. Times are microseconds with three
/// decimals.
/// Errors: a rank that is none of the plan's (bad_input); too many events (infeasible).
///
/// Source   "Trace Event Format" (Chromium project, 2016): event types X, M, s and f.
std::string chrome_trace(const TrainingStep& step, const Timeline& timeline,
                         const Scenario& scenario, const TraceOptions& options = {});

}  // namespace orrery
