#pragma once

#include <string>

#include "sim/core/document.hpp"
#include "sim/sweep/best_rows.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// The number of points, and the best of them: at most `shown` lines.
Document sweep_document(const Sweep& sweep, const BestRows& rows, std::size_t shown);

/// The rows that `rows` keeps, for charts (docs/guides/explorer.md):
std::string sweep_rows_json(const Sweep& sweep, const BestRows& rows);

/// The chart of a sweep. Keys and figures are columns of the rows.
struct PlotRequest {
  enum class Kind { line, heat, pareto } kind = Kind::line;
  std::string x;       ///< A key; of a Pareto chart a figure. "": the first key that varies.
  std::string y;       ///< A figure; of a heat map a key. "": the usual one of its kind.
  std::string by;      ///< Line: a key whose values have a line each. "": the next that varies.
  std::string figure;  ///< Heat map: what is coloured. "": tokens_per_s_per_gpu.
};

/// The sweep's rows as an SVG document. It plots the best of several ok rows on one place: the
/// smallest time or memory, the largest of all other figures. Errors (bad_input): no such column;
/// nothing that varies; no row that is ok.
std::string plot_svg(const SweepFolder& folder, const PlotRequest& request);

}  // namespace orrery
