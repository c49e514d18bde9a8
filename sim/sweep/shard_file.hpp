#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/core/error.hpp"
#include "sim/core/shard.hpp"

namespace orrery {

/// Files of a shard in the sweep's folder. While it is written it has ".part" behind its name.
std::string shard_path(const std::string& folder, Shard shard);
std::string partial_shard_path(const std::string& folder, Shard shard);

/// Receives each row that is there, with its place.
using OnRow = std::function<void(std::int64_t place, const std::string& row)>;

/// The sound part of a shard's file.
struct ShardContents {
  std::int64_t rows = 0;  ///< Sound ones, from the first on.
  bool complete = false;  ///< All that the header counts.
  /// "row 17 is damaged": why no more counts, of a file that should have more. A last line of a
  /// partial file that is cut off is no damage.
  std::string damage;
};
/// Looks at every row. A file that is not there holds nothing. Errors (bad_input): rows of another
/// sweep; the file cannot be read, or is none.
ShardContents read_shard(const std::string& path, const ShardHeader& header,
                         const OnRow& on_row = {});

/// Appends the rows of a shard, a sealed line each, so that whatever stops this process between two
/// machine instructions leaves whole rows and at most one that is cut off.
class ShardWriter {
 public:
  /// Opens the partial file or begins it with `header`, cuts off what is not sound, and keeps
  /// other processes from writing. Errors (bad_input): the file has another sweep's header; another
  /// process writes it; it cannot be written, and why.
  ShardWriter(const std::string& folder, Shard shard, const ShardHeader& header,
              const OnRow& on_row = {});
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  std::int64_t rows() const { return contents_.rows; }
  /// The last row that is there, to be held against what is expected.
  const std::string& last_row() const { return last_row_; }
  const std::string& damage() const { return contents_.damage; }

  /// Errors (bad_input): the disk is full, and the like. The file then ends with the row before.
  void append(const std::string& row);
  /// Puts it on the disk under its final name.
  void complete();
  /// Takes back all that was written.
  void discard();

 private:
  void write(const std::string& text);

  std::string path_, final_path_;
  RowSeal seal_;
  int file_ = -1;
  std::int64_t size_ = 0;
  ShardContents contents_;
  std::string last_row_;
};

/// Reads the rows of a shard that is complete or not, `chunk` bytes at a time, so that thousands of
/// shards can be read side by side. A last line without its end is no row of a partial file.
class ShardReader {
 public:
  /// Errors (bad_input): another header; the file cannot be read; it is damaged.
  ShardReader(const std::string& path, const ShardHeader& header, std::size_t chunk);

  /// The next row, without its seal, or nothing. Errors (bad_input): it is damaged, or rows are
  /// missing.
  std::optional<std::string> next();
  Place place() const;  ///< The last row that was read.

 private:
  std::string path_;
  ShardHeader header_;
  RowSeal seal_;
  std::size_t chunk_;
  std::int64_t rows_ = 0;
  std::int64_t offset_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;

  std::optional<std::string> next_line();
  [[noreturn]] void refuse_damage(const std::string& what) const;
};

}  // namespace orrery
