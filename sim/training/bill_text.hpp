#pragma once

#include <string>

#include "sim/core/table.hpp"
#include "sim/training/bill.hpp"

namespace orrery {

std::string bill_head(const Bill& bill);  ///< "Training on 15T tokens, ..."
Table bill_table(const Bill& bill);       ///< Time, rent, hardware and energy, a line each.
/// Why more GPUs are bought than used, provider_note(), and the keys of --economics that would fill
/// the table's gaps; "" if nothing is so.
std::string bill_note(const Bill& bill);
std::string bill_text(const Bill& bill);  ///< Head, table and note, a line each.

/// "14 NVLink domains of 72 GPUs are bought for 1,000, as they are sold whole. ..."; `domains` as
/// Bill has them.
std::string whole_units_text(const Hardware& hardware, int gpus, int domains);

/// rent_note() says what the rent of a cloud's machines (System::provider) is based on;
/// provider_note() adds what their purchase price means.
std::string rent_note(const std::string& provider);
std::string provider_note(const std::string& provider, bool has_own_rent);

std::string tokens_text(double tokens);  ///< "15.0 trillion"
std::string dollars_text(Range usd);     ///< "$8.59 to 21.6 million"; "": not known.
std::string energy_text(Range kwh);      ///< "3.46 to 8.70 GWh"; "": not known.

}  // namespace orrery
