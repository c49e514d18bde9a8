#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/plan/plan_request.hpp"

namespace orrery {

/// What NCCL's variables in a run's environment mean here.
struct NcclSettings {
  NcclChoice allowed;  ///< NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE=0.
  /// A sentence for each other that may change a run's time: that nothing in the model depends on
  /// it, or what says the same. Those of logs, timeouts and interfaces are passed over.
  std::vector<std::string> notes;
};

/// `environment`: values by name, as `place` sets them. Errors (bad_input): an algorithm or a
/// protocol that is none of NCCL's.
NcclSettings nccl_settings(const std::map<std::string, std::string>& environment,
                           const Place& place);

}  // namespace orrery
