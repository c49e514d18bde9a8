#include "sim/sweep/merge.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/field.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {
namespace {

// The tables' layout. A newer one may mean something else by the same names.
constexpr int version = 1;
constexpr int application = 0x4f525259;  // "ORRY": `file` and others know it by this.

const char* affinity(RowColumn::Kind kind) {
  switch (kind) {
    case RowColumn::Kind::whole:
      return "INTEGER";
    case RowColumn::Kind::real:
      return "REAL";
    default:
      return "TEXT";
  }
}

std::string quoted(const std::string& text, char quote) {
  std::string all(1, quote);
  for (const char c : text) all += c == quote ? std::string(2, quote) : std::string{c};
  return all + quote;
}

}  // namespace

Database::Database(const std::string& path, const std::vector<RowColumn>& columns,
                   const std::string& description, const std::string& identity)
    : path_{path}, columns_{columns} {
  std::error_code code;
  made_ = !std::filesystem::exists(path, code);
  try {
    const int error = sqlite3_open_v2(path.c_str(), &database_,
                                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    if (error != SQLITE_OK) refuse(error);
    sqlite3_busy_timeout(database_, 60'000);
    run("BEGIN IMMEDIATE");
    if (value_of("SELECT count(*) FROM sqlite_master") == "0") {
      make_tables(description, identity);
    } else {
      check_version();
      if (value_of("SELECT value FROM about WHERE key = 'identity'") != identity)
        fail_input({path_, ""}, "holds another sweep", "name another file, or remove this one");
      // A later run may have found the answer of a point that the machine stopped.
      if (std::any_of(columns_.begin(), columns_.end(),
                      [](const RowColumn& column) { return column.name == "status"; }))
        run("DELETE FROM points WHERE status = 'stopped'");
    }
    std::string places;
    for (std::size_t i = 0; i < columns.size(); ++i) places += i == 0 ? "?" : ", ?";
    const std::string sql = "INSERT OR IGNORE INTO points VALUES (" + places + ")";
    if (const int failure = sqlite3_prepare_v2(database_, sql.c_str(), -1, &insert_, nullptr))
      refuse(failure);
  } catch (...) {
    close();
    throw;
  }
}

Database::~Database() { close(); }

void Database::close() {
  sqlite3_finalize(insert_);
  // Rolls back what was not committed.
  sqlite3_close(database_);
  const bool empty = database_ && made_;
  insert_ = nullptr;
  database_ = nullptr;
  std::error_code ignored;
  if (empty) std::filesystem::remove(path_, ignored);
}

void Database::check_version() {
  if (value_of("PRAGMA application_id") != std::to_string(application)) refuse_kind();
  const std::string found = value_of("PRAGMA user_version");
  if (found != std::to_string(version))
    fail_input({path_, ""},
               "is a database of version " + found + ", newer than " + std::to_string(version) +
                   ", which this program knows",
               "use the newer orrery, or name another file");
}

void Database::make_tables(const std::string& description, const std::string& identity) {
  run("PRAGMA application_id = " + std::to_string(application));
  run("PRAGMA user_version = " + std::to_string(version));
  run("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID");
  run("INSERT INTO about VALUES ('identity', " + quoted(identity, '\'') + "), ('sweep', " +
      quoted(description, '\'') + "), ('orrery_version', '" ORRERY_VERSION "')");
  std::string list;
  for (const RowColumn& column : columns_)
    list += (list.empty() ? "" : ", ") + quoted(column.name, '"') + " " + affinity(column.kind) +
            (list.empty() ? " PRIMARY KEY" : "");
  run("CREATE TABLE points (" + list + ")");
}

void Database::insert(const Row& row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (!row[i])
      sqlite3_bind_null(insert_, at);
    else if (row[i]->is_text)
      sqlite3_bind_text(insert_, at, row[i]->text.c_str(), static_cast<int>(row[i]->text.size()),
                        SQLITE_TRANSIENT);
    else if (columns_[i].kind == RowColumn::Kind::whole)
      sqlite3_bind_int64(insert_, at, static_cast<sqlite3_int64>(row[i]->number));
    else
      sqlite3_bind_double(insert_, at, row[i]->number);
  }
  if (const int error = sqlite3_step(insert_); error != SQLITE_DONE) refuse(error);
  sqlite3_reset(insert_);
}

void Database::commit() {
  run("COMMIT");
  made_ = false;
}

void Database::run(const std::string& sql) {
  if (const int error = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr))
    refuse(error);
}

std::string Database::value_of(const std::string& sql) {
  std::string value;
  const auto keep = [](void* into, int, char** values, char**) {
    *static_cast<std::string*>(into) = values[0] ? values[0] : "";
    return 0;
  };
  if (const int error = sqlite3_exec(database_, sql.c_str(), keep, &value, nullptr)) refuse(error);
  return value;
}

void Database::refuse_kind() {
  fail_input({path_, ""}, "is not a database of a sweep", "name another file");
}

void Database::refuse(int error) {
  if (error == SQLITE_NOTADB) refuse_kind();
  fail_input({path_, ""}, "cannot be written: " + std::string{sqlite3_errstr(error)},
             error == SQLITE_FULL ? "make room and run the same command again"
                                  : "check path, permissions and who else has it open");
}

namespace {

namespace fs = std::filesystem;

std::string csv_of(const Cell& cell) {
  return cell.is_text ? csv_text(cell.text) : csv_cell(cell.text);
}

std::string csv_line(const Row& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i)
    line += (i == 0 ? "" : ",") + (row[i] ? csv_of(*row[i]) : "");
  return line + "\n";
}

}  // namespace

void read_rows(const SweepFolder& folder, BestRows& seen) {
  for_each_row(folder, seen.columns(), [&](const std::string&, const Row& row) { seen.add(row); });
}

bool is_database(const std::string& path) {
  const std::string kind = fs::path{path}.extension().string();
  return kind == ".sqlite" || kind == ".sqlite3" || kind == ".db";
}

void merge_rows(const SweepFolder& folder, const std::string& into, BestRows& seen) {
  const std::vector<RowColumn>& all = seen.columns();
  const std::string kind = fs::path{into}.extension().string();
  if (is_database(into)) {
    const std::string text = sweep_json(folder.sweep);
    Database database{into, all, text, fingerprint_of(text + folder.fingerprint)};
    for_each_row(folder, all, [&](const std::string&, const Row& row) {
      seen.add(row);
      database.insert(row);
    });
    return database.commit();
  }
  if (kind != ".csv" && kind != ".jsonl")
    fail_input({into, ""}, "has a name that does not say its format",
               "end it in .sqlite, .csv or .jsonl");
  FileWriter file{into};
  const bool csv = kind == ".csv";
  if (csv) file.append(joined(names_of(all), ",") + "\n");
  for_each_row(folder, all, [&](const std::string& line, const Row& row) {
    seen.add(row);
    file.append(csv ? csv_line(row) : line + "\n");
  });
  file.commit();
}

}  // namespace orrery
