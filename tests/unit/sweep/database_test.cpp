#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "sim/sweep/merge.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::database_test {
namespace {

namespace fs = std::filesystem;

const std::vector<RowColumn> columns{{"point", RowColumn::Kind::whole},
                                     {"model", RowColumn::Kind::text},
                                     {"step_time_s", RowColumn::Kind::real}};

Row row_of(double point, const std::string& model, std::optional<double> time) {
  Row row(3);
  row[0] = Cell{false, point, ""};
  row[1] = Cell{true, 0.0, model};
  if (time) row[2] = Cell{false, *time, ""};
  return row;
}

// "0|m|1.5;..." as SQLite's own shell has it.
std::string dump(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string text;
  const auto add = [](void* into, int count, char** values, char**) {
    for (int i = 0; i < count; ++i)
      *static_cast<std::string*>(into) +=
          (i > 0 ? "|" : "") + std::string{values[i] ? values[i] : "NULL"};
    *static_cast<std::string*>(into) += ";";
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), add, &text, nullptr), SQLITE_OK);
  sqlite3_close(database);
  return text;
}

class Databases : public testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "rows.sqlite").string(); }

  std::string refusal(const std::string& identity) {
    return error_text([&] { (Database{path(), columns, "{}", identity}); });
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Databases, RowsAreThereOnceHoweverOftenTheyAreInserted) {
  for (int times = 0; times < 2; ++times) {
    Database database{path(), columns, "{}", "sweep"};
    database.insert(row_of(0, "it's", 1.5));
    database.insert(row_of(0, "another", 2.5));
    if (times == 1) database.insert(row_of(7, "m", std::nullopt));
    database.commit();
  }
  EXPECT_EQ(dump(path(), "SELECT * FROM points ORDER BY point"), "0|it's|1.5;7|m|NULL;");
  EXPECT_EQ(dump(path(),
                 "SELECT typeof(point), typeof(model), typeof(step_time_s) FROM points "
                 "WHERE point = 0"),
            "integer|text|real;");
  EXPECT_EQ(dump(path(), "SELECT * FROM about WHERE key != 'orrery_version'"),
            "identity|sweep;sweep|{};");
}

TEST_F(Databases, NothingStaysWithoutCommit) {
  { Database{path(), columns, "{}", "sweep"}.insert(row_of(0, "m", 1.0)); }
  EXPECT_FALSE(fs::exists(path()));
  {
    Database database{path(), columns, "{}", "sweep"};
    database.commit();
  }
  { Database{path(), columns, "{}", "sweep"}.insert(row_of(0, "m", 1.0)); }
  EXPECT_EQ(dump(path(), "SELECT count(*) FROM points"), "0;");
}

TEST_F(Databases, RefusesWhatIsNotItsOwn) {
  Database{path(), columns, "{}", "sweep"}.commit();
  EXPECT_EQ(refusal("another"),
            path() + ": holds another sweep; name another file, or remove this one");
  dump(path(), "PRAGMA user_version = 2");
  EXPECT_EQ(refusal("sweep"), path() +
                                  ": is a database of version 2, newer than 1, which this program "
                                  "knows; use the newer orrery, or name another file");
  fs::remove(path());
  dump(path(), "CREATE TABLE theirs (x)");
  EXPECT_EQ(refusal("sweep"), path() + ": is not a database of a sweep; name another file");
  EXPECT_EQ(dump(path(), "SELECT name FROM sqlite_master"), "theirs;");
  std::ofstream{path()} << "{\"this is\": \"something else, and longer than a header\"}";
  EXPECT_EQ(refusal("sweep"), path() + ": is not a database of a sweep; name another file");
  fs::remove(path());
  fs::create_directory(path());
  EXPECT_EQ(refusal("sweep"), path() +
                                  ": cannot be written: unable to open database file; check path, "
                                  "permissions and who else has it open");
}

}  // namespace
}  // namespace orrery::database_test
