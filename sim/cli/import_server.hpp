#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// `orrery import server`: the deployment that launch commands of serving engines describe.
int import_server(const Arguments& arguments);

}  // namespace orrery
