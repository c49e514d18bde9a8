#pragma once

#include <string>
#include <vector>

#include "sim/sweep/row.hpp"

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

}  // namespace orrery
