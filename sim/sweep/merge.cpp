#include "sim/sweep/merge.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/output/write_file.hpp"
#include "sim/sweep/database.hpp"
#include "sim/sweep/fingerprint.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// RFC 4180: quotes only where they are needed.
std::string csv_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string{c};
  return quoted + "\"";
}

std::string csv_line(const Row& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i)
    line += (i == 0 ? "" : ",") + (row[i] ? csv_of(row[i]->text) : "");
  return line + "\n";
}

template <class Sink>
void for_each_row(const SweepFolder& folder, BestRows& seen, Sink sink) {
  RowStream stream{folder};
  while (const auto line = stream.next()) {
    const Row row = read_row(*line, seen.columns(), stream.place());
    seen.add(row);
    sink(*line, row);
  }
}

}  // namespace

RowStream::RowStream(const SweepFolder& folder) {
  // Chunks of all shards together stay within 64 MiB.
  const std::size_t chunk = std::clamp<std::size_t>(
      (std::size_t{64} << 20) / static_cast<std::size_t>(folder.shards), 4096, 1 << 20);
  readers_.resize(static_cast<std::size_t>(folder.shards));
  for (int i = 0; i < folder.shards; ++i) {
    const Shard shard{i, folder.shards};
    std::error_code code;
    std::string path = shard_path(folder.path, shard);
    if (!fs::exists(path, code)) path = partial_shard_path(folder.path, shard);
    if (!fs::exists(path, code)) continue;
    readers_[static_cast<std::size_t>(i)].emplace(path, folder.header(shard), chunk);
    ++open_;
  }
}

std::optional<std::string> RowStream::next() {
  while (open_ > 0) {
    const std::size_t at = next_;
    next_ = (next_ + 1) % readers_.size();
    if (!readers_[at]) continue;
    std::optional<std::string> line = readers_[at]->next();
    if (!line) {
      readers_[at].reset();
      --open_;
      continue;
    }
    last_ = at;
    const std::int64_t point = point_of_row(*line, place());
    if (point <= point_)
      fail_input(place(), "has point " + std::to_string(point) + " out of order",
                 "remove the file; its points will be computed again");
    point_ = point;
    return line;
  }
  return std::nullopt;
}

void read_rows(const SweepFolder& folder, BestRows& seen) {
  for_each_row(folder, seen, [](const std::string&, const Row&) {});
}

void merge_rows(const SweepFolder& folder, const std::string& into, BestRows& seen) {
  const std::vector<RowColumn>& all = seen.columns();
  const std::string kind = fs::path{into}.extension().string();
  if (kind == ".sqlite" || kind == ".sqlite3" || kind == ".db") {
    const std::string text = sweep_json(folder.sweep);
    Database database{into, all, text, fingerprint_of(text + folder.fingerprint)};
    for_each_row(folder, seen, [&](const std::string&, const Row& row) { database.insert(row); });
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
  for_each_row(folder, seen, [&](const std::string& line, const Row& row) {
    file.append(csv ? csv_line(row) : line + "\n");
  });
  file.commit();
}

}  // namespace orrery
