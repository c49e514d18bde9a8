#pragma once

#include <string>
#include <vector>

#include "sim/profile/step_profile.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Profiles of ranks next to the predictions of `result`, for a terminal of 80 columns.
std::string profile_text(const Result& result, const std::vector<ProfiledRank>& ranks);

/// The profiles as orrery.profile/1.
std::string profile_json(const Result& result, const std::vector<ProfiledRank>& ranks);

}  // namespace orrery
