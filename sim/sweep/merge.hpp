#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/best_rows.hpp"
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

/// Brings the rows together in one file, whose format its name says: ".csv"; ".jsonl", a row a
/// line; ".sqlite", ".sqlite3" or ".db", a database into which rows that it does not have are
/// inserted. Errors (bad_input): another name; a database of another sweep or of a newer version;
/// a file that cannot be written. `seen` is told of each row.
void merge_rows(const SweepFolder& folder, const std::string& into, BestRows& seen);
/// Tells `seen` of each row and writes nothing.
void read_rows(const SweepFolder& folder, BestRows& seen);

}  // namespace orrery
