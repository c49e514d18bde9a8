#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/best_candidates.hpp"
#include "sim/core/chart.hpp"
#include "sim/sweep/row.hpp"

namespace orrery {

/// True if less of a figure is better, by the unit in its name: of times, bytes, money, energy.
bool less_is_better(const std::string& figure);

/// The points that no other beats in one figure without losing in the other, by rising x. Of equal
/// ones the first.
std::vector<ChartPoint> pareto_frontier(const std::vector<ChartPoint>& points, bool less_x,
                                        bool less_y);

/// The default figure that plans are ranked by: tokens_per_s_per_gpu, or memory_peak_bytes in a
/// sweep of memory alone.
std::string usual_figure(const Sweep& sweep);

/// Rows counted by what came of them, and the best of those that are ok.
class BestRows {
 public:
  /// `keep`: how many of the best. The best have the most tokens/s/GPU, or of a sweep of memory
  /// alone the least memory; of equal ones the first point is the better.
  BestRows(const Sweep& sweep, int keep);

  void add(const Row& row);

  std::int64_t ok() const { return ok_; }
  std::int64_t infeasible() const { return infeasible_; }
  std::int64_t failed() const { return failed_; }
  std::int64_t rows() const { return ok_ + infeasible_ + failed_; }
  struct Best : Scored {
    Row row;
  };
  const std::vector<Best>& best() const { return best_.ranked(); }  ///< Best first.

  /// The figure that rows are ranked by: "tokens_per_s_per_gpu" or "memory_peak_bytes".
  const std::string& figure() const { return figure_; }
  const std::vector<RowColumn>& columns() const { return columns_; }
  const Cell& cell(const Row& row, const std::string& column) const;
  bool has(const Row& row, const std::string& column) const;  ///< A cell, which may be empty.

 private:
  std::vector<RowColumn> columns_;
  std::string figure_;
  std::size_t figure_at_ = 0, status_at_ = 0;
  BestCandidates<Best> best_;
  std::int64_t ok_ = 0, infeasible_ = 0, failed_ = 0;
};

}  // namespace orrery
