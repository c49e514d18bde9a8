#pragma once

#include <string>

#include "sim/base/text/table.hpp"
#include "sim/work/result/bill.hpp"

namespace orrery {

std::string bill_head(const Bill& bill);  ///< "Training on 15T tokens, ..."
Table bill_table(const Bill& bill);       ///< Time, rent, hardware and energy, a line each.

}  // namespace orrery
