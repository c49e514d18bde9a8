#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_recv
};

/// Properties that distinguish collectives.
struct CollectiveFacts {
  CollectiveKind kind;
  std::string_view name;       ///< The name in options and files: "all_reduce".
  std::string_view nccl_name;  ///< In NCCL_ALGO: "AllReduce". Empty: made of sends and receives.
  /// The number of times that the tensor, less a rank's own share, passes each rank's wire: 2 if it
  /// is reduced and gathered, 1 for one of the two or an exchange; 0: it passes whole.
  int passes;
  bool reduces;  ///< Sums data up instead of only moving them.
  bool rooted;   ///< One rank has the data, or gets them.
};

/// One entry for each kind, in the order of CollectiveKind.
inline constexpr std::array collective_facts{
    CollectiveFacts{CollectiveKind::all_reduce, "all_reduce", "AllReduce", 2, true, false},
    CollectiveFacts{CollectiveKind::all_gather, "all_gather", "AllGather", 1, false, false},
    CollectiveFacts{CollectiveKind::reduce_scatter, "reduce_scatter", "ReduceScatter", 1, true,
                    false},
    CollectiveFacts{CollectiveKind::all_to_all, "all_to_all", "", 1, false, false},
    CollectiveFacts{CollectiveKind::broadcast, "broadcast", "Broadcast", 0, false, true},
    CollectiveFacts{CollectiveKind::reduce, "reduce", "Reduce", 0, true, true},
    CollectiveFacts{CollectiveKind::send_recv, "send_recv", "", 0, false, false},
};
constexpr std::size_t collective_kinds = collective_facts.size();

constexpr const CollectiveFacts& facts(CollectiveKind kind) {
  return collective_facts[static_cast<std::size_t>(kind)];
}
constexpr std::string_view name(CollectiveKind kind) { return facts(kind).name; }

/// The names of all kinds, in the order of CollectiveKind.
const std::vector<std::string>& collective_names();

/// The kind with that name, or with that name of nccl-tests' programs ("alltoall", "sendrecv").
std::optional<CollectiveKind> collective_named(std::string_view word);

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
  std::vector<Point> points;  ///< Sorted by bytes.
};

/// Reads calibration/data/collectives/`name`.json for a GPU or a system; empty if there is no such
/// file. Errors: an invalid table, with its place.
std::vector<MeasuredCurve> read_collective_curves(const std::string& name);

/// One file of schema "orrery.curves/1".
std::vector<MeasuredCurve> parse_collective_curves(const JsonValue& json);

/// The points of one table: [[bytes, time_us], ...]. Errors: sizes that do not rise, invalid times.
std::vector<MeasuredCurve::Point> parse_curve_points(const JsonValue& points);

}  // namespace orrery
