#pragma once

#include "sim/reliability/training_run.hpp"

namespace orrery {

/// What a run of so many days on average costs, with `kept` spare units.
///
/// GPUs of a job that stands, and spares, draw what `economics` says of GPUs that wait; where it
/// says nothing, between nothing and as much as at work. Until a failure is found processes wait
/// for each other in kernels that run, and draw between the two.
RunBill run_bill(const PreparedRun& run, const RunFigures& figures, int kept,
                 const Economics& economics);

}  // namespace orrery
