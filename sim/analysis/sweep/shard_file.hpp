#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/core/error.hpp"

namespace orrery {

/// One share of a sweep's points: those whose place among all points, modulo `of`, is `index`.
struct Shard {
  int index = 0;
  int of = 1;

  /// Of `points` points, how many are its own.
  std::int64_t share(std::int64_t points) const { return points / of + (index < points % of); }
};

/// Files of a shard in the sweep's folder. While it is written it has ".part" behind its name.
std::string shard_path(const std::string& folder, Shard shard);
std::string partial_shard_path(const std::string& folder, Shard shard);

/// Appends the rows of a shard, a line each, so that whatever stops this process between two
/// machine instructions leaves whole rows and at most one that is cut off.
class ShardWriter {
 public:
  /// Opens the partial file or begins it with `header`, cuts off a last line without its end, and
  /// keeps other processes from writing. Errors (bad_input): the file has another header; another
  /// process writes it; it cannot be written, and why.
  ShardWriter(const std::string& folder, Shard shard, const std::string& header);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  std::int64_t rows() const { return rows_; }
  /// The last row that was there, to be held against what is expected.
  const std::string& last_row() const { return last_row_; }

  /// Errors (bad_input): the disk is full, and the like. The file then ends with the row before.
  void append(const std::string& row);
  /// On the disk and under its final name.
  void complete();

 private:
  void read_what_is_there(const std::string& header);
  void write(const std::string& text);

  std::string path_, final_path_;
  int file_ = -1;
  std::int64_t size_ = 0;
  std::int64_t rows_ = 0;
  std::string last_row_;
};

/// Reads the rows of a shard that is complete or not, `chunk` bytes at a time, so that thousands of
/// shards can be read side by side. A last line without its end is no row.
class ShardReader {
 public:
  /// Errors (bad_input): another header; the file cannot be read.
  ShardReader(const std::string& path, const std::string& header, std::size_t chunk);

  /// The next row, or nothing.
  std::optional<std::string> next();
  Place place() const;  ///< Of the last row that was read.

 private:
  std::string path_;
  std::size_t chunk_;
  std::int64_t offset_ = 0;
  std::int64_t line_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Lines of a file that have their end.
std::int64_t count_lines(const std::string& path);

}  // namespace orrery
