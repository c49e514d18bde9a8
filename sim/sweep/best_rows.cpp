#include "sim/sweep/best_rows.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {

bool less_is_better(const std::string& figure) {
  for (const std::string unit : {"_bytes", "_usd", "_kwh"})
    if (figure.ends_with(unit)) return true;
  return figure.ends_with("_s") && !figure.ends_with("per_s");
}

// Sorted by the first figure, best first, a point is on the frontier if it improves on the second.
std::vector<ChartPoint> pareto_frontier(std::vector<ChartPoint> points, bool less_x, bool less_y) {
  const auto better = [](double a, double b, bool less) { return less ? a < b : a > b; };
  std::stable_sort(points.begin(), points.end(), [&](const ChartPoint& a, const ChartPoint& b) {
    return a.x != b.x ? better(a.x, b.x, less_x) : better(a.y, b.y, less_y);
  });
  std::vector<ChartPoint> frontier;
  for (const ChartPoint& point : points)
    if (frontier.empty() || better(point.y, frontier.back().y, less_y)) frontier.push_back(point);
  std::sort(frontier.begin(), frontier.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  return frontier;
}

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
