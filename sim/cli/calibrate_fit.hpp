#pragma once

#include "sim/cli/command.hpp"

namespace orrery {

/// `orrery calibrate fit` and `show`, given the words after their names.
int calibrate_fit(const Arguments& arguments);
int calibrate_show(const Arguments& arguments);

}  // namespace orrery
