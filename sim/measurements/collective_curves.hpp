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

/// What distinguishes one collective from another.
struct CollectiveFacts {
  CollectiveKind kind;
  std::string_view name;       ///< In options and files: "all_reduce".
  std::string_view nccl_name;  ///< In NCCL_ALGO: "AllReduce". Empty: made of sends and receives.
  /// How often the tensor, less a rank's own share, passes each rank's wire: 2 where it is reduced
  /// and gathered, 1 where one of the two or an exchange happens. 0: it passes whole, in a chain.
  int passes;
  bool reduces;  ///< Sums up, as against moving.
  bool rooted;   ///< One rank has it, or gets it.
};

/// One for each kind, in the order of CollectiveKind.
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

/// The names of all, in the order of CollectiveKind.
const std::vector<std::string>& collective_names();

/// By its name, or as nccl-tests' programs are called ("alltoall", "sendrecv"); else nothing.
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
