#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace orrery {

// A plan in a line of a table.

std::string brief_degrees(const Plan& plan);   ///< "tp8 pp4 vpp2 dp32 mbs1"
std::string brief_switches(const Plan& plan);  ///< "sp zero1 dp-overlap": what is turned on.
/// Whether one of the two tells it.
bool is_brief_key(const std::string& key);

}  // namespace orrery
