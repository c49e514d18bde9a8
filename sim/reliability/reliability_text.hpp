#pragma once

#include <string>

#include "sim/reliability/reliability.hpp"

namespace orrery {

/// "meta-llama3: Llama 3 405B on ..., 466 events": what failures rest on.
std::string reliability_text(const Reliability& profile);

/// Every cause with how often it interrupts a job of so many GPUs and what follows, then what
/// holds of all of them.
std::string reliability_details(const Reliability& profile, int gpus);

}  // namespace orrery
