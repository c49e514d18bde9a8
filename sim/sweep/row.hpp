#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/sweep/grid.hpp"

namespace orrery {

/// The outcome of a point. A row is one line of JSON:
///
///     {"point":3,"model":"llama3-8b",...,"gbs":256,"status":"ok","step_time_s":7.04,...}
///     {"point":4,...,"status":"infeasible","reason":"tp=6 does not divide ..."}
///
/// An ok point has a reason if it was computed differently from the sweep's heading: on another
/// software than the default.
enum class PointStatus {
  ok,
  infeasible,  ///< The plan cannot run: does not divide, contradicts itself, does not fit.
  failed,      ///< No answer, and none possible: the program ended at it.
  stopped,  ///< No answer: the worker was killed, or ran out of time or memory. A later run tries
            ///< again.
};
template <>
inline const std::vector<std::string> enum_words<PointStatus>{"ok", "infeasible", "failed",
                                                              "stopped"};

/// Names and values as they stand in the row, of what is known about an ok point.
using RowFigures = std::vector<std::pair<std::string, std::string>>;

/// The line of a point, without its end.
std::string ok_row(const Grid& grid, std::int64_t point, const RowFigures& figures,
                   const std::string& reason = "");
std::string row_without_answer(const Grid& grid, std::int64_t point, PointStatus status,
                               const std::string& reason);

/// Columns of all rows of a sweep, in their order: point, the axes' keys, status, reason, figures.
struct RowColumn {
  std::string name;
  enum class Kind { whole, real, text } kind = Kind::text;
  bool is_figure = false;  ///< A result of the point, not one of its keys.
};
std::vector<RowColumn> row_columns(const Sweep& sweep);

/// One cell: nothing if the row does not have the column.
struct Cell {
  bool is_text = false;
  double number = 0.0;
  std::string text;  ///< The text in the row, also of a number.
};
using Row = std::vector<std::optional<Cell>>;

/// The cells of a line, by column. Errors (bad_input): a line that is no row, `at` says where.
Row read_row(const std::string& line, const std::vector<RowColumn>& columns, const Place& at);
/// True if the status of a row that this program wrote is `stopped`.
bool is_stopped(const std::string& line);
/// Its point alone.
std::int64_t point_of_row(const std::string& line, const Place& at);

}  // namespace orrery
