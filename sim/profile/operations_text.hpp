#pragma once

#include <string>

#include "sim/core/table.hpp"
#include "sim/profile/step_operations.hpp"

namespace orrery {

/// Those that take 99 % of the time together, a line each, with their marks on the roofline; the
/// rest in one line. `marks`: also that of each.
Table operations_table(const OperationList& list);
/// The same as text, and by what bounds them.
std::string operations_text(const OperationList& list);
/// "compute 71.2 %, memory 20.1 %, ..." of the operations' time.
std::string bounds_text(const OperationList& list);

/// All of them, a line each.
std::string operations_csv(const OperationList& list);

}  // namespace orrery
