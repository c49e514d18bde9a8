#pragma once

#include <string>

#include "sim/serving/serving_run.hpp"

namespace orrery {

/// A replay as Chrome trace JSON, which ui.perfetto.dev opens: a process for each replica with its
/// iterations, in which equal ones that follow each other are one slice; and a slice for each
/// request with its wait, its prompt and its answer. Requires a run that kept its times
/// (ServingLoad). Times are microseconds with three decimals, from the first request sent.
/// Errors (infeasible): more events than viewers bear.
///
/// Source   "Trace Event Format" (Chromium project, 2016): event types X, M, b and e.
std::string replay_trace(const ServingRun& run, const Place& at);

}  // namespace orrery
