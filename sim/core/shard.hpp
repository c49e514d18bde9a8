#pragma once

#include <cstdint>
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
  /// Of `pieces`, how many are its own.
  std::int64_t share(std::int64_t pieces) const { return pieces / of + (index < pieces % of); }
};

/// Makes a folder, unless it is there. Errors (bad_input, at `said`): it cannot be made.
void make_folder(const std::string& path, const Place& said);

/// "1,3,17-20", as `sbatch --array` takes it: the places that are not `done`. "" if all are.
std::string places_missing(const std::vector<bool>& done);

}  // namespace orrery
