// An SQLite file that lies where a merge is to write: whatever its bytes are, it is refused or gets
// the rows, and is then a database that SQLite finds nothing wrong with.
#include <optional>

#include "sim/sweep/merge.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

const std::vector<RowColumn>& columns() {
  static const std::vector<RowColumn> all{{"point", RowColumn::Kind::whole},
                                          {"model"},
                                          {"status"},
                                          {"step_time_s", RowColumn::Kind::real, true}};
  return all;
}

Row row_of(int point) {
  const std::string number = std::to_string(point);
  return {Cell{false, 1.0 * point, number}, Cell{true, 0.0, "llama3-8b"}, Cell{true, 0.0, "ok"},
          Cell{false, 0.5, "0.5"}};
}

bool fuzz_merge_database(const std::string& text) {
  return with_file("merged.sqlite", text, [](const std::string& path) {
    const auto merge = [&] {
      Database database{path, columns(), "a sweep", "its identity"};
      for (int point = 0; point < 3; ++point) database.insert(row_of(point));
      database.commit();
    };
    merge();
    merge();  // A second merge finds what the first one wrote.
  });
}

}  // namespace

std::vector<EntryPoint> database_entries() {
  return {{"merge_database", fuzz_merge_database, Shape::bytes}};
}

}  // namespace orrery
