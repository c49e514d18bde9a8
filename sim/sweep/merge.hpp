#pragma once

#include <string>
#include <vector>

#include "sim/sweep/best_rows.hpp"
#include "sim/sweep/row.hpp"
#include "sim/sweep/sweep_folder.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace orrery {

/// A sweep's rows as an SQLite database: a table `points` with the columns of the rows, `point`
/// being the key, and a table `about` with what the sweep is. Nothing of what is inserted is seen
/// by others, or stays, before commit().
class Database {
 public:
  /// Opens or makes it. Errors (bad_input): no database of a sweep; one of another sweep, which
  /// `identity` tells; one that a newer version of this program has made.
  Database(const std::string& path, const std::vector<RowColumn>& columns,
           const std::string& description, const std::string& identity);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A point that is there stays as it is.
  void insert(const Row& row);
  void commit();

 private:
  void run(const std::string& sql);
  std::string value_of(const std::string& sql);
  void check_version();
  void make_tables(const std::string& description, const std::string& identity);
  void close();
  [[noreturn]] void refuse(int error);
  [[noreturn]] void refuse_kind();

  std::string path_;
  std::vector<RowColumn> columns_;
  bool made_ = false;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

/// Brings the rows together in one file, whose name gives its format: ".csv"; ".jsonl", a row a
/// line; ".sqlite", ".sqlite3" or ".db", a database that gets the rows which it does not have.
/// Errors (bad_input): another name; a database of another sweep or of a newer version; a file that
/// cannot be written. `seen` gets each row.
void merge_rows(const SweepFolder& folder, const std::string& into, BestRows& seen);
/// Passes each row to `seen` and writes nothing.
void read_rows(const SweepFolder& folder, BestRows& seen);

/// True if merge_rows() makes a database there, by its name.
bool is_database(const std::string& path);

}  // namespace orrery
