#pragma once

#include <string>

#include "sim/result/bill.hpp"

namespace orrery {

std::string bill_head(const Bill& bill);  ///< "Training on 15T tokens, ..."
std::string bill_text(const Bill& bill);  ///< Time, rent, hardware and energy, a line each.

}  // namespace orrery
