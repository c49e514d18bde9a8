#pragma once

#include "sim/training/result.hpp"

namespace orrery {

/// The last look at an answer before anybody sees it. Throws std::logic_error, a fault of the
/// program, at the first figure that no step can have: one that is not finite, a step that takes no
/// time or less than its lower bound, a critical path or a stage that does not add up to the step,
/// a range that does not hold it, an MFU over 1, memory that is none.
void require_sound(const Result& result);

/// The same of a step time alone.
void require_sound(Seconds step_time);

}  // namespace orrery
