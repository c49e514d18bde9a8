#pragma once

#include <string>
#include <vector>

#include "sim/profile/step_profile.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Profiles of ranks beside what `result` says of their stages, for a terminal of 80 columns.
std::string profile_text(const Result& result, const std::vector<ProfiledRank>& ranks);

/// The same as orrery.profile/1.
std::string profile_json(const Result& result, const std::vector<ProfiledRank>& ranks);

}  // namespace orrery
