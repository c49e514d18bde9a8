#include "sim/analysis/sweep/run_shard.hpp"

#include <filesystem>

#include "sim/base/workers/interruption.hpp"

namespace orrery {
namespace {

// The points of a shard one after the other.
class Share {
 public:
  Share(const Grid& grid, Shard shard) : grid_{grid}, shard_{shard} {}

  std::optional<std::int64_t> next() {
    for (; number_ < grid_.combinations(); ++number_) {
      if (!grid_.is_point(number_)) continue;
      if (place_++ % shard_.of == shard_.index) return number_++;
    }
    return std::nullopt;
  }

 private:
  const Grid& grid_;
  Shard shard_;
  std::int64_t number_ = 0;
  std::int64_t place_ = 0;  // Among all points.
};

}  // namespace

void run_shard(const SweepFolder& folder, Shard shard, const Grid& grid, PointEvaluator& evaluator,
               int workers, const WorkerLimits& limits,
               const std::function<void(const std::string& row)>& on_row) {
  std::error_code code;
  if (std::filesystem::exists(shard_path(folder.path, shard), code)) return;
  ShardWriter writer{folder.path, shard, folder.header(shard)};
  Share share{grid, shard};

  std::optional<std::int64_t> last;
  for (std::int64_t row = 0; row < writer.rows(); ++row) last = share.next();
  const Place at{partial_shard_path(folder.path, shard), ""};
  if (writer.rows() > shard.share(folder.points) ||
      (last && point_of_row(writer.last_row(), at) != *last))
    fail_input(at, "does not hold the rows that this sweep has there",
               "remove the file; its points will be computed again");

  run_tasks(
      workers, limits, [&] { return share.next(); }, std::ref(evaluator),
      [&](const Outcome& outcome) {
        const std::string row =
            outcome.failure.empty()
                ? outcome.bytes
                : row_without_answer(grid, outcome.task, PointStatus::failed, outcome.failure);
        writer.append(row);
        on_row(row);
        return true;
      });
  if (!Interruption::asked()) writer.complete();
}

}  // namespace orrery
