#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/measurements/collective_kind.hpp"

namespace orrery {

/// A sweep of one collective over sizes, as nccl-tests prints it.
struct MeasuredCurve {
  struct Point {
    Bytes bytes;  ///< The whole tensor, as nccl-tests count.
    Seconds time;
  };

  std::string id;
  CollectiveKind collective{};
  int ranks = 0;
  int nodes = 0;
  std::vector<Point> points;  ///< By rising bytes.
};

/// Reads calibration/data/collectives/`name`.json, `name` being a GPU's or a system's; empty where
/// there is no such file. Errors: a table that says what cannot be meant, with its place.
std::vector<MeasuredCurve> read_collective_curves(const std::string& name);

/// One file of schema "orrery.curves/1".
std::vector<MeasuredCurve> parse_collective_curves(const JsonValue& json);

/// The points of one table: [[bytes, time_us], ...]. Errors: sizes that do not rise, times that
/// are none.
std::vector<MeasuredCurve::Point> parse_curve_points(const JsonValue& points);

}  // namespace orrery
