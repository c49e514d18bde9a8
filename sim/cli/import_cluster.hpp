#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// `orrery import cluster`: a system from a few words, without any file.
int import_cluster(const Arguments& arguments);

}  // namespace orrery
