#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/profile/kernel_text.hpp"
#include "sim/profile/step_operations.hpp"
#include "sim/profile/step_profile.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Profiles of ranks next to the predictions of `result`, for a terminal of 80 columns.
std::string profile_text(const Result& result, const std::vector<ProfiledRank>& ranks);

/// The profiles as orrery.profile/1.
std::string profile_json(const Result& result, const std::vector<ProfiledRank>& ranks);

/// orrery.kernel/1 (docs/reference/json.md): one object, or of several sizes a list.
std::string kernel_json(const KernelSweep& sweep, const KernelPricer& pricer);

/// The subject of a list of operations.
struct OperationsOf {
  std::string model, system;
  std::int64_t gpus = 1;
  std::string what;  ///< Either "training step" or "serving iteration".
};
/// orrery.roofline/1.
std::string operations_json(const OperationList& list, const OperationsOf& of);

}  // namespace orrery
