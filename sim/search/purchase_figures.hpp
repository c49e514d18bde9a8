#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/figures.hpp"
#include "sim/search/purchase.hpp"

namespace orrery {

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
