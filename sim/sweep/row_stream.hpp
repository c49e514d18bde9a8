#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"
#include "sim/sweep/shard_file.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// All rows that a folder's shards hold, in the order of the points, with memory that does not grow
/// with their number.
class RowStream {
 public:
  explicit RowStream(const SweepFolder& folder);

  /// The next row's line, or nothing. Errors (bad_input): a shard of another sweep; rows out of
  /// order.
  std::optional<std::string> next();
  Place place() const { return readers_[last_]->place(); }  ///< Of that row.

 private:
  std::vector<std::optional<ShardReader>> readers_;  // Row by row round the shards: see Shard.
  std::size_t next_ = 0, last_ = 0;
  std::size_t open_ = 0;
  std::int64_t point_ = -1;
};

/// Tells `action` of each row, as it is written and by its cells in `columns`.
void for_each_row(const SweepFolder& folder, const std::vector<RowColumn>& columns,
                  const std::function<void(const std::string& line, const Row& row)>& action);

}  // namespace orrery
