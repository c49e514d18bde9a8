#pragma once

#include "sim/cli/command.hpp"

namespace orrery {

/// orrery calibrate step: the training steps of a record, predicted.
int calibrate_step(const Arguments& arguments);

}  // namespace orrery
