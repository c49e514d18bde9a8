#pragma once

#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/serving_table.hpp"

namespace orrery {

/// A row that a table was made to predict, and what it says.
struct LeftOutRow {
  std::size_t row = 0;  ///< Of the table.
  Seconds measured, predicted;
};

/// Every fourth of a table's rows, picked by a hash of its sizes: all of them left out at once and
/// predicted from the others. None where no other row is left.
std::vector<LeftOutRow> left_out_rows(const ServingTable& table, const Gpu& gpu);
/// How far they are missed: predicted / measured - 1.
std::vector<double> left_out_errors(const ServingTable& table, const Gpu& gpu);

}  // namespace orrery
