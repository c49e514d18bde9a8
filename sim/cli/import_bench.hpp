#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// `orrery import bench`: what load generators measured of a server, as cases.
int import_bench(const Arguments& arguments);

}  // namespace orrery
