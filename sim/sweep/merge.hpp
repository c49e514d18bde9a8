#pragma once

#include <string>

#include "sim/sweep/best_rows.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// Brings the rows together in one file, whose format its name says: ".csv"; ".jsonl", a row a
/// line; ".sqlite", ".sqlite3" or ".db", a database into which rows that it does not have are
/// inserted. Errors (bad_input): another name; a database of another sweep or of a newer version;
/// a file that cannot be written. `seen` is told of each row.
void merge_rows(const SweepFolder& folder, const std::string& into, BestRows& seen);
/// Tells `seen` of each row and writes nothing.
void read_rows(const SweepFolder& folder, BestRows& seen);

/// Whether merge_rows() makes a database there, by its name.
bool is_database(const std::string& path);

}  // namespace orrery
