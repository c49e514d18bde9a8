#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// More than any scheduler has tasks in a queue.
constexpr int largest_shard_count = 1'000'000;

/// One share of a long work's pieces: those whose place among all pieces, modulo `of`, is `index`.
struct Shard {
  int index = 0;
  int of = 1;

  bool has(std::int64_t piece) const { return piece % of == index; }
  /// The number of its own `pieces`.
  std::int64_t share(std::int64_t pieces) const { return pieces / of + (index < pieces % of); }
};

/// Makes a folder, unless it is there. Errors (bad_input, at `at`): it cannot be made.
void make_folder(const std::string& path, const Place& at);

/// "1,3,17-20", in the form of `sbatch --array`: the places that are not `done`. "" if all are.
std::string places_missing(const std::vector<bool>& done);

/// Sixteen hexadecimal digits, a hash of `text` (FNV-1a, 64 bits): good against mistakes, not
/// against forgery.
std::string fingerprint_of(const std::string& text);

/// The same for all that an answer depends on: this program's file, the catalog and the
/// calibration, and every other file that `read` reads.
/// Errors (bad_input): a file that cannot be read.
std::string fingerprint_of_inputs(const std::function<void()>& read);

/// First line of a shard's file, and how many rows come after it.
struct ShardHeader {
  std::string line;  ///< An object of JSON, sealed.
  std::int64_t rows = 0;
};

/// Adds to a line of JSON what its bytes are: `{"point":3,"check":"0c1fa2..."}`.
std::string sealed(const std::string& line);
/// The line without its seal; nothing if it has none, or one of other bytes.
std::optional<std::string> unsealed(const std::string& line);

/// The seals of a shard's rows: each covers the row's place and shard as well, so that a row of
/// another shard or sweep, or one that was moved, has no valid seal.
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
