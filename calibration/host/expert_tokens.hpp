#pragma once

#include <cstdint>
#include <vector>

namespace orrery::calibration {

/// `tokens` dealt to `experts`, at least one each: evenly, or skewed so that the r-th expert, from
/// 1, gets a share proportional to 1 / r. They add up to `tokens`, which is no less than `experts`.
std::vector<std::int64_t> expert_tokens(std::int64_t tokens, std::int64_t experts, bool skewed);

}  // namespace orrery::calibration
