#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/document.hpp"
#include "sim/core/figures.hpp"
#include "sim/search/purchase.hpp"

namespace orrery {

/// The user's words, for commands that can be typed again.
struct PurchaseNames {
  std::string model, tokens;
  std::vector<std::string> systems;  ///< The request's order.
  std::string reliability;           ///< "": none.
};

/// "orrery estimate ...", or "orrery run ..." where failures count: a row's plan with everything
/// that is to know of it, and the same days and money.
std::string command_of(const PurchaseRow& row, const PurchaseRequest& request,
                       const PurchaseNames& names);

/// A table for a buyer: the question, a line a row, the best plan of each, what batches do, the
/// front, the answer and what it leaves out.
Document purchase_document(const Purchase& purchase, const PurchaseRequest& request,
                           const PurchaseNames& names);

/// "orrery.purchase/1" (docs/reference/json.md).
std::string purchase_json(const Purchase& purchase, const PurchaseRequest& request,
                          const PurchaseNames& names);
/// A line a row.
std::string purchase_csv(const Purchase& purchase, const PurchaseRequest& request);

std::string range_text(double low, double high);  ///< "37.5..46.2": three digits
/// The range in `unit`, which the column's heading names; "?" where it is not known.
std::string range_text(Range range, double unit);
std::string million_tokens_text(std::int64_t tokens);  ///< "16.8"
std::string days_text(double days);                    ///< "41.1", "321"

/// The unit of a column: the one in which its largest figure is at least 1.
struct ColumnUnit {
  double size = 1.0;
  std::string name;
};
/// "$M", "$k" or "$", for what `of` is of each row.
ColumnUnit money_unit(const Purchase& purchase, const std::function<Range(const PurchaseRow&)>& of);

/// The reason why a row has no plan.
std::string why_no_plan(const PurchaseRow& row);

/// Each row, as the table, JSON and CSV have it.
std::vector<Figures> figures_of(const Purchase& purchase, const PurchaseRequest& request,
                                const PurchaseChoice& choice);

}  // namespace orrery
