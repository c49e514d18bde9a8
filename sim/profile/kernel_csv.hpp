#pragma once

#include <string>
#include <vector>

#include "sim/profile/kernel_pricer.hpp"

namespace orrery {

/// Columns with their units in their names, and a line of one operation (RFC 4180).
std::string operation_csv_header();
std::string operation_csv_line(const OperationPrice& operation);

/// One operation at several sizes: `key` first, then the figures by itself and in training.
std::string kernel_csv(const std::vector<KernelAnswer>& answers, const std::string& key);

}  // namespace orrery
