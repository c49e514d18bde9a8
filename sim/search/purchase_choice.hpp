#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/search/purchase.hpp"

namespace orrery {

/// How a row stands to a limit, whose figure is a range: at its worst below it, in the middle, at
/// its best, or never.
enum class Meets { surely, likely, perhaps, no };
const std::string& name(Meets meets);

/// Where a row stands among the others in cost and days, which both should be low.
enum class Standing {
  unknown,  ///< No plan, or no price.
  front,    ///< No other has less of one and not more of the other, by the middles of the ranges.
  perhaps,  ///< It may in truth be on the front: no row is significantly better in both.
  beaten
};
const std::string& name(Standing standing);

struct RowChoice {
  Standing standing = Standing::unknown;
  std::optional<Meets> deadline, budget;  ///< Where there is a limit, and for it a figure.
};

/// A row that is the best within a deadline.
struct DeadlineChoice {
  double days = 0.0;
  std::optional<std::size_t> row;  ///< The cheapest that likely meets it; nothing: none does.
};

/// What a table of rows says to somebody who has to choose. Rows are numbers of Purchase::rows.
struct PurchaseChoice {
  std::vector<RowChoice> rows;        ///< Of each row.
  std::vector<std::size_t> front;     ///< By rising days.
  std::vector<std::size_t> within;    ///< That surely or likely keep to all limits, by cost.
  std::vector<std::size_t> perhaps;   ///< That may keep to them, by cost.
  std::vector<DeadlineChoice> strip;  ///< What usual deadlines leave, by rising days.
  /// Where there are limits and nothing is within: the row nearest to them.
  std::optional<std::size_t> nearest;
};
PurchaseChoice choose(const Purchase& purchase, const PurchaseRequest& request);

/// Whether row `b` takes more days than `a`, for certain (9 in 10). Failures move both alike.
bool is_slower(const PurchaseRow& a, const PurchaseRow& b);
/// Whether it costs more, for certain: on one kind of GPU the price is the same, whatever it is,
/// and GPU-time differs; on two the ranges of their costs are apart.
bool is_dearer(const PurchaseRow& a, const PurchaseRow& b, PayBy pay);

}  // namespace orrery
