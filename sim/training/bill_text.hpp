#pragma once

#include <string>

#include "sim/core/table.hpp"
#include "sim/training/bill.hpp"

namespace orrery {

std::string bill_head(const Bill& bill);  ///< "Training on 15T tokens, ..."
Table bill_table(const Bill& bill);       ///< Time, rent, hardware and energy, a line each.
/// Names the keys of --economics that would fill the table's gaps; "" if it has none.
std::string bill_note(const Bill& bill);
std::string bill_text(const Bill& bill);  ///< Head, table and note, a line each.

std::string tokens_text(double tokens);  ///< "15.0 trillion"
std::string dollars_text(Range usd);     ///< "$8.59 to 21.6 million"; "": not known.
std::string energy_text(Range kwh);      ///< "3.46 to 8.70 GWh"; "": not known.

}  // namespace orrery
