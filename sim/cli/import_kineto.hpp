#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// `orrery import kineto`: kernels of PyTorch's traces, as a record for orrery calibrate fit.
int import_kineto(const Arguments& arguments);

}  // namespace orrery
