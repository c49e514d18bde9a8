#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/simulation.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

struct TraceOptions {
  std::vector<int> ranks = {};  ///< Ranks to show; empty: all that were simulated.
  /// Slices and arrow ends; chrome://tracing breaks near a million events (golang/go issue 11520).
  std::int64_t most_events = 500'000;
  /// Show kernels and collectives inside the first two micro-batches' passes, if they fit.
  bool expand = false;
  /// Warnings for readers of the trace, such as a plan that does not fit.
  std::vector<std::string> warnings = {};
};

/// A step as Chrome trace JSON, which ui.perfetto.dev, chrome://tracing and speedscope open. Each
/// simulated rank is a process, with a thread each for compute, tensor-parallel, pipeline (by
/// direction) and data-parallel work; an arrow leads from each transfer to the pass that waits for
/// it. A rank that was not simulated is shown by its representative. Times are microseconds with
/// three decimals. Errors: a rank outside the plan (bad_input); too many events (infeasible).
///
/// Source   "Trace Event Format" (Chromium project, 2016): event types X, M, s and f.
std::string chrome_trace(const TrainingStep& step, const Timeline& timeline,
                         const Scenario& scenario, const TraceOptions& options = {});

}  // namespace orrery
