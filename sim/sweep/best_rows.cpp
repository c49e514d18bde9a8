#include "sim/sweep/best_rows.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

std::size_t index_of(const std::vector<RowColumn>& columns, const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const RowColumn& column) { return column.name == name; });
  assert(found != columns.end());
  return static_cast<std::size_t>(found - columns.begin());
}

}  // namespace

std::string usual_figure(const Sweep& sweep) {
  return sweep.memory_only ? "memory_peak_bytes" : "tokens_per_s_per_gpu";
}

BestRows::BestRows(const Sweep& sweep, std::size_t keep)
    : columns_{row_columns(sweep)},
      keep_{keep},
      figure_{usual_figure(sweep)},
      figure_at_{index_of(columns_, figure_)},
      status_at_{index_of(columns_, "status")} {}

void BestRows::add(const Row& row) {
  const std::string status = row[status_at_] ? row[status_at_]->text : "";
  if (status != name(PointStatus::ok)) {
    ++(status == name(PointStatus::infeasible) ? infeasible_ : failed_);
    return;
  }
  ++ok_;
  if (!row[figure_at_]) return;
  const auto place = std::upper_bound(best_.begin(), best_.end(), row,
                                      [&](const Row& a, const Row& b) { return is_better(a, b); });
  if (place == best_.end() && best_.size() == keep_) return;
  best_.insert(place, row);
  if (best_.size() > keep_) best_.pop_back();
}

const Cell& BestRows::cell(const Row& row, const std::string& column) const {
  return *row[index_of(columns_, column)];
}

bool BestRows::has(const Row& row, const std::string& column) const {
  return row[index_of(columns_, column)].has_value();
}

bool BestRows::is_better(const Row& a, const Row& b) const {
  const double left = a[figure_at_]->number;
  const double right = b[figure_at_]->number;
  if (left != right) return figure_ == "memory_peak_bytes" ? left < right : left > right;
  return a[0]->number < b[0]->number;
}

}  // namespace orrery
