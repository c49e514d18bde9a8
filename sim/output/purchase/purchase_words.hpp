#pragma once

#include <string>

#include "sim/analysis/buy/purchase_choice.hpp"

namespace orrery {

std::string range_text(double low, double high);  ///< "37.5 to 46.2": three digits
/// In `unit` dollars, without a sign; "?" where it is not known.
std::string money_text(Range usd, double unit);
std::string million_tokens_text(std::int64_t tokens);  ///< "16.8"
std::string days_text(double days);                    ///< "41.1", "321"

/// The unit in which the dearest row is told: 1e6, 1e3 or 1 dollars, and its sign: "$M", "$k", "$".
struct MoneyUnit {
  double usd = 1e6;
  std::string sign = "$M";
};
MoneyUnit money_unit(const Purchase& purchase, PayBy pay);

/// "gb200-nvl72, 4,096 GPUs"
std::string row_name(const PurchaseRow& row, const PurchaseRequest& request);
/// "$7.76 to 12.0 million rent"
std::string cost_text(const PurchaseRow& row, const PurchaseRequest& request);

/// What to do, in sentences that follow from the rows, each a line.
std::vector<std::string> answer_lines(const Purchase& purchase, const PurchaseRequest& request,
                                      const PurchaseChoice& choice);
/// What the figures do not hold, each a line.
std::vector<std::string> caveat_lines(const Purchase& purchase, const PurchaseRequest& request);

}  // namespace orrery
