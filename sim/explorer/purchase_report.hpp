#pragma once

#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/search/purchase_text.hpp"

namespace orrery {

/// A purchase as one HTML file (report_page.hpp): cost against days, days against GPUs, and what
/// `orrery buy` prints. It also holds the purchase (purchase_json); the result of each row is left
/// out of it where the file would be too large.
std::string purchase_report(const Purchase& purchase, const PurchaseRequest& request,
                            const PurchaseNames& names, const ReportAbout& about);

}  // namespace orrery
