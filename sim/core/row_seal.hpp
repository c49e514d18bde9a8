#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orrery {

/// First line of a shard's file, and how many rows come after it.
struct ShardHeader {
  std::string line;  ///< An object of JSON, sealed.
  std::int64_t rows = 0;
};

/// Adds to a line of JSON what its bytes are: `{"point":3,"check":"0c1fa2..."}`.
std::string sealed(const std::string& line);
/// The line without its seal; nothing if it has none, or one of other bytes.
std::optional<std::string> unsealed(const std::string& line);

/// The seals of a shard's rows: each tells its place and whose row it is as well, so that a row of
/// another shard or sweep, or one that was moved, is none.
class RowSeal {
 public:
  explicit RowSeal(const ShardHeader& header);

  /// `row`: an object of JSON; `place`: among the shard's rows, from 0 on.
  std::string seal(std::int64_t place, const std::string& row) const;
  std::optional<std::string> open(std::int64_t place, const std::string& line) const;

 private:
  std::string owner_;
};

}  // namespace orrery
