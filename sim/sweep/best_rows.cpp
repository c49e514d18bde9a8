#include "sim/sweep/best_rows.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {

bool less_is_better(const std::string& figure) {
  for (const std::string unit : {"_bytes", "_usd", "_kwh"})
    if (figure.ends_with(unit)) return true;
  return figure.ends_with("_s") && !figure.ends_with("per_s");
}

std::vector<ChartPoint> pareto_frontier(const std::vector<ChartPoint>& points, bool less_x,
                                        bool less_y) {
  BestCandidates<Scored> front{{BestList::Kind::front}};
  for (std::size_t i = 0; i < points.size(); ++i)
    front.offer({less_x ? points[i].x : -points[i].x, less_y ? points[i].y : -points[i].y,
                 static_cast<std::int64_t>(i)});
  std::vector<ChartPoint> frontier;
  for (const Scored& point : front.ranked())
    frontier.push_back(points[static_cast<std::size_t>(point.number)]);
  if (!less_x) std::reverse(frontier.begin(), frontier.end());
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

BestRows::BestRows(const Sweep& sweep, int keep)
    : columns_{row_columns(sweep)},
      figure_{usual_figure(sweep)},
      figure_at_{index_of(columns_, figure_)},
      status_at_{index_of(columns_, "status")},
      best_{{BestList::Kind::top, keep}} {}

void BestRows::add(const Row& row) {
  const std::string status = row[status_at_] ? row[status_at_]->text : "";
  if (status != name(PointStatus::ok)) {
    ++(status == name(PointStatus::infeasible) ? infeasible_ : failed_);
    return;
  }
  ++ok_;
  if (!row[figure_at_]) return;
  const double figure = row[figure_at_]->number;
  Best candidate;
  candidate.score = less_is_better(figure_) ? figure : -figure;
  candidate.number = static_cast<std::int64_t>(row[0]->number);
  if (!best_.may_take(candidate)) return;
  candidate.row = row;
  best_.offer(candidate);
}

const Cell& BestRows::cell(const Row& row, const std::string& column) const {
  return *row[index_of(columns_, column)];
}

bool BestRows::has(const Row& row, const std::string& column) const {
  return row[index_of(columns_, column)].has_value();
}

}  // namespace orrery
