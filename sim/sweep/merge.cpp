#include "sim/sweep/merge.hpp"

#include <filesystem>

#include "sim/core/fingerprint.hpp"
#include "sim/core/write_file.hpp"
#include "sim/sweep/database.hpp"
#include "sim/sweep/row_stream.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// RFC 4180: quotes only where they are needed. A text that a spreadsheet would take for a formula
// gets an apostrophe, by which it knows a text.
std::string csv_of(const Cell& cell) {
  const bool formula =
      cell.is_text && !cell.text.empty() && std::string_view{"=+-@\t\r"}.find(cell.text[0]) < 6;
  const std::string text = (formula ? "'" : "") + cell.text;
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string{c};
  return quoted + "\"";
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
  if (csv) {
    std::string header;
    for (const RowColumn& column : all) header += (header.empty() ? "" : ",") + column.name;
    file.append(header + "\n");
  }
  for_each_row(folder, all, [&](const std::string& line, const Row& row) {
    seen.add(row);
    file.append(csv ? csv_line(row) : line + "\n");
  });
  file.commit();
}

}  // namespace orrery
