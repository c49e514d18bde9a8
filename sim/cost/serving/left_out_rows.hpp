#pragma once

#include <vector>

#include "sim/input/machine/system.hpp"
#include "sim/input/measured/serving_table.hpp"

namespace orrery {

/// How far a table misses every fourth of its rows, picked by a hash of its sizes, when they are
/// all left out at once and predicted from the others: predicted / measured - 1.
std::vector<double> left_out_errors(const ServingTable& table, const Gpu& gpu);

}  // namespace orrery
