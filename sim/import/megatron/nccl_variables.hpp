#pragma once

#include <map>
#include <string>
#include <vector>

namespace orrery {

/// What NCCL's variables in a run's environment mean here: which option says the same, or that
/// nothing in the model depends on it. A sentence for each that may change a plan's time; those of
/// logs, timeouts and interfaces are passed over. `environment`: values by name.
std::vector<std::string> told_by_nccl(const std::map<std::string, std::string>& environment);

}  // namespace orrery
