#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/document.hpp"
#include "sim/search/purchase.hpp"

namespace orrery {

std::string range_text(double low, double high);  ///< "37.5..46.2": three digits
/// In `unit`, which stands elsewhere; "?" where it is not known.
std::string range_text(Range range, double unit);
std::string million_tokens_text(std::int64_t tokens);  ///< "16.8"
std::string days_text(double days);                    ///< "41.1", "321"

/// The unit of a column: the one in which its largest figure is at least 1.
struct ColumnUnit {
  double size = 1.0;
  std::string name;
};
/// "$M", "$k" or "$".
ColumnUnit money_unit(const Purchase& purchase, const std::function<Range(const PurchaseRow&)>& of);
/// "GWh", "MWh" or "kWh".
ColumnUnit energy_unit(const Purchase& purchase);

/// "gb200-nvl72, 4,096 GPUs"
std::string row_name(const PurchaseRow& row, const PurchaseRequest& request);
/// "$7.76 to 12.0 million of rent"
std::string cost_text(const PurchaseRow& row, const PurchaseRequest& request);

/// What to do, in sentences that follow from the rows, each a line.
std::vector<std::string> answer_lines(const Purchase& purchase, const PurchaseRequest& request,
                                      const PurchaseChoice& choice);
/// What the figures do not hold, each a line.
std::vector<std::string> caveat_lines(const Purchase& purchase, const PurchaseRequest& request);

/// What the user called things, for commands that can be typed again.
struct PurchaseNames {
  std::string model, tokens;
  std::vector<std::string> systems;  ///< In the request's order.
  std::string reliability;           ///< "": none.
};

/// "orrery estimate ...": a row's plan with everything that is to know of it.
std::string command_of(const PurchaseRow& row, const PurchaseRequest& request,
                       const PurchaseNames& names);

/// A table for a person who has to choose: the question, a line a row, the best plan of each, what
/// batches do, the front, the answer and what it leaves out.
Document purchase_document(const Purchase& purchase, const PurchaseRequest& request,
                           const PurchaseNames& names);

/// "orrery.purchase/1" (docs/reference/json.md).
std::string purchase_json(const Purchase& purchase, const PurchaseRequest& request,
                          const PurchaseNames& names);
/// A line a row.
std::string purchase_csv(const Purchase& purchase, const PurchaseRequest& request);

}  // namespace orrery
