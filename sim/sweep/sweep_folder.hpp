#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"
#include "sim/sweep/shard_file.hpp"
#include "sim/sweep/sweep.hpp"

namespace orrery {

/// Hash of all other inputs of a sweep's rows: the program, the catalog and the calibration, and
/// every file that the sweep names by its path: models, systems, software, schedules, routings and
/// their traces, prices. Errors (bad_input): a file that cannot be read.
std::string fingerprint_of_inputs(const Sweep& sweep);

/// A folder that holds one sweep: sweep.json says what it is, and a file a shard holds its rows.
/// Any number of processes on any number of machines may work on different shards of it at once.
struct SweepFolder {
  std::string path;
  Sweep sweep;
  int shards = 1;
  std::int64_t points = 0;
  std::string fingerprint;  ///< The program, catalog and calibration of its rows.
  std::string simulator;    ///< Of its rows: a word of --simulator.

  /// First line of a shard's file: rows of another sweep, or of another program, have another one.
  ShardHeader header(Shard shard) const;
};

/// Reads the folder of a sweep that was begun. Errors (bad_input): there is none.
SweepFolder open_sweep_folder(const std::string& path);

/// Begins `sweep` in the folder `path`, which is made where it is missing, or goes on with it.
/// `shards` 0: as many as the folder says, else one. Errors (bad_input): the folder holds another
/// sweep, or one of another program or catalog, or in another number of shards; no point fulfils
/// the conditions.
SweepFolder begin_sweep_folder(const std::string& path, const Sweep& sweep, int shards);

/// The progress of a shard.
struct ShardState {
  Shard shard;
  std::int64_t points = 0;   ///< Its own.
  std::int64_t rows = 0;     ///< Sound rows in its file.
  std::int64_t stopped = 0;  ///< Those with PointStatus::stopped.
  bool complete = false;     ///< Nothing is left to be done.
  std::string damage;        ///< The first: "shard-00000-of-00001.jsonl: row 17 is damaged", or "".
};
/// Looks at every row. Errors (bad_input): rows of another sweep.
std::vector<ShardState> shard_states(const SweepFolder& folder);

/// "1,3,17-20", in the form of `sbatch --array`: shards that are not complete. "" if all are.
std::string missing_shards(const std::vector<ShardState>& states);

/// All rows that a folder's shards hold, in the order of the points, with memory that does not grow
/// with their number.
class RowStream {
 public:
  explicit RowStream(const SweepFolder& folder);

  /// The next row's line, or nothing. Errors (bad_input): a shard of another sweep; rows out of
  /// order.
  std::optional<std::string> next();
  Place place() const { return readers_[last_]->place(); }  ///< That row's.

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
