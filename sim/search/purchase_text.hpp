#pragma once

#include <string>
#include <vector>

#include "sim/core/document.hpp"
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

}  // namespace orrery
