#include "sim/moe/routing_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

// Generous limits of layers, micro-batches and ranks, and of experts.
constexpr std::int64_t most = 1 << 20;
constexpr std::int64_t most_experts = 1 << 16;

constexpr std::array<const char*, 5> columns{"layer", "micro_batch", "rank", "expert", "tokens"};

struct Line {
  int number = 0;
  std::string_view text;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (!line.empty()) lines.push_back({number, line});
  }
  return lines;
}

TraceRow json_row(const Line& line, const std::string& file) {
  const JsonValue json = JsonValue::parse(std::string{line.text}, trace_place(file, line.number));
  json.allow_only({"layer", "micro_batch", "rank", "tokens"});
  const auto index = [&](const char* key) {
    return static_cast<int>(json.at(key).integer(0, most - 1));
  };
  TraceRow row{line.number, index("layer"), index("micro_batch"), index("rank"), -1, {}};
  for (const JsonValue& count : json.at("tokens").elements())
    row.tokens.push_back(static_cast<std::uint32_t>(count.integer(0, 0xffffffff)));
  if (row.tokens.empty()) json.at("tokens").fail("is empty", "give a count for each expert");
  return row;
}

TraceRow csv_row(const Line& line, const std::string& file) {
  const Place place{trace_place(file, line.number), ""};
  std::array<std::int64_t, columns.size()> values{};
  std::string_view rest = line.text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool last = i + 1 == columns.size();
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (last != (end == rest.size()))
      fail_input(place, "there are not five numbers", "write layer,micro_batch,rank,expert,tokens");
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(last ? end : end + 1);
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), values[i]);
    const std::int64_t limit = last ? 0xffffffff : (i == 3 ? most_experts : most) - 1;
    if (error != std::errc{} || stop != word.data() + word.size() || values[i] < 0 ||
        values[i] > limit)
      fail_input(
          place,
          std::string{columns[i]} + " '" + shown_text(std::string{word}) + "' is not a count",
          "write a whole number from 0 on");
  }
  const auto index = [&](std::size_t i) { return static_cast<int>(values[i]); };
  return {line.number, index(0), index(1),
          index(2),    index(3), {static_cast<std::uint32_t>(values[4])}};
}

}  // namespace

std::string trace_place(const std::string& file, int line) {
  return file + ": line " + std::to_string(line);
}

std::vector<TraceRow> parse_trace_rows(const std::string& text, const std::string& file) {
  std::vector<Line> lines = lines_of(text);
  std::vector<TraceRow> rows;
  if (lines.empty()) return rows;
  const bool json = lines.front().text.front() == '{';
  if (!json) {
    if (lines.front().text != "layer,micro_batch,rank,expert,tokens")
      fail_input({trace_place(file, lines.front().number), ""},
                 "'" + shown_text(std::string{lines.front().text}) + "' is not a routing trace",
                 "begin with layer,micro_batch,rank,expert,tokens, or write JSON lines");
    lines.erase(lines.begin());
  }
  rows.reserve(lines.size());
  for (const Line& line : lines) rows.push_back(json ? json_row(line, file) : csv_row(line, file));
  return rows;
}

namespace {

// 4 GiB: DeepSeek-V3's 58 layers on 64 ranks for 1,000 micro-batches.
constexpr double most_counts = 1 << 30;

std::string row_name(int layer, int micro_batch, int rank) {
  return "layer " + std::to_string(layer) + ", micro-batch " + std::to_string(micro_batch) +
         ", rank " + std::to_string(rank);
}

void require(int found, int wanted, const char* what, const char* whose, const Place& place) {
  if (wanted > 0 && found != wanted)
    fail_input(
        place,
        std::to_string(found) + " " + what + ", but " + whose + " has " + std::to_string(wanted),
        "trace the run that is estimated");
}

// Each size is one more than the largest number in the trace.
void measure(RoutingTrace& trace, const std::vector<TraceRow>& rows) {
  for (const TraceRow& row : rows) {
    trace.layers = std::max(trace.layers, row.layer + 1);
    trace.micro_batches = std::max(trace.micro_batches, row.micro_batch + 1);
    trace.ranks = std::max(trace.ranks, row.rank + 1);
    const int experts = row.expert < 0 ? static_cast<int>(row.tokens.size()) : row.expert + 1;
    if (row.expert < 0 && &row != &rows.front() && experts != trace.experts)
      fail_input({trace_place(trace.file, row.line), ""},
                 "counts for " + std::to_string(experts) + " experts, but the first line has " +
                     std::to_string(trace.experts),
                 "give every line as many");
    trace.experts = std::max(trace.experts, experts);
  }
}

// No rank may send a token that it does not have, or a token to more experts than it visits.
void check_row(const RoutingTrace& trace, int layer, int micro_batch, int rank, int line,
               const TraceExpectation& expected) {
  if (expected.tokens <= 0) return;
  const Place place{trace_place(trace.file, line), ""};
  std::int64_t sum = 0;
  for (const std::uint32_t count : trace.of(layer, micro_batch, rank)) {
    sum += count;
    if (count > expected.tokens)
      fail_input(place,
                 row_name(layer, micro_batch, rank) + ": " + std::to_string(count) +
                     " tokens for one expert, but a rank has " + std::to_string(expected.tokens) +
                     " in a micro-batch",
                 "trace the batch that is estimated");
  }
  if (expected.per_token > 0 && sum != expected.tokens * expected.per_token)
    fail_input(place,
               row_name(layer, micro_batch, rank) + ": the counts sum to " + std::to_string(sum) +
                   ", but " + std::to_string(expected.tokens) + " tokens with " +
                   std::to_string(expected.per_token) + " experts each are " +
                   std::to_string(expected.tokens * expected.per_token),
               "trace what the router chose, before anything is dropped");
}

// A line describes one cell: a layer, micro-batch and rank.
std::int64_t cell_of(const RoutingTrace& trace, const TraceRow& row) {
  return (static_cast<std::int64_t>(row.layer) * trace.micro_batches + row.micro_batch) *
             trace.ranks +
         row.rank;
}

// Every cell must have a line; this is checked before memory for all cells is allocated.
void require_all_cells(const RoutingTrace& trace, const std::vector<TraceRow>& rows) {
  std::vector<std::int64_t> cells;
  cells.reserve(rows.size());
  for (const TraceRow& row : rows) cells.push_back(cell_of(trace, row));
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  std::int64_t missing = 0;
  for (const std::int64_t cell : cells)
    if (cell == missing) ++missing;
  const auto all = static_cast<std::int64_t>(trace.layers) * trace.micro_batches * trace.ranks;
  if (missing == all) return;
  const auto of_rank = static_cast<int>(missing % trace.ranks);
  const auto of_batch = static_cast<int>(missing / trace.ranks % trace.micro_batches);
  const auto of_layer = static_cast<int>(missing / trace.ranks / trace.micro_batches);
  fail_input({trace_place(trace.file, rows.back().line), ""},
             "the trace ends without " + row_name(of_layer, of_batch, of_rank),
             "number layers, micro-batches and ranks from 0, and give a line for each");
}

// Stores the counts of all lines; returns the line of each cell.
std::vector<int> fill(RoutingTrace& trace, const std::vector<TraceRow>& rows) {
  const auto experts = static_cast<std::size_t>(trace.experts);
  const auto cells = static_cast<std::size_t>(trace.layers * trace.micro_batches * trace.ranks);
  trace.counts.assign(cells * experts, 0u);
  std::vector<int> line_of(cells, 0);
  std::vector<bool> seen(rows.front().expert < 0 ? 0 : cells * experts, false);
  for (const TraceRow& row : rows) {
    const auto cell = static_cast<std::size_t>(cell_of(trace, row));
    const std::size_t at = cell * experts + static_cast<std::size_t>(std::max(0, row.expert));
    if (row.expert < 0 ? line_of[cell] > 0 : seen[at])
      fail_input({trace_place(trace.file, row.line), ""},
                 row_name(row.layer, row.micro_batch, row.rank) +
                     (row.expert < 0 ? "" : ", expert " + std::to_string(row.expert)) +
                     " is there twice",
                 "keep one of them");
    if (row.expert >= 0) seen[at] = true;
    line_of[cell] = row.line;
    std::copy(row.tokens.begin(), row.tokens.end(),
              trace.counts.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return line_of;
}

}  // namespace

std::vector<double> RoutingTrace::totals(int layer) const {
  std::vector<double> sum(static_cast<std::size_t>(experts), 0.0);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch)
    for (int rank = 0; rank < ranks; ++rank) {
      const auto row = of(layer, micro_batch, rank);
      for (std::size_t e = 0; e < row.size(); ++e) sum[e] += row[e];
    }
  return sum;
}

RoutingTrace parse_trace(const std::string& text, const std::string& file,
                         const TraceExpectation& expected) {
  const std::vector<TraceRow> rows = parse_trace_rows(text, file);
  const Place whole{file, ""};
  if (rows.empty()) fail_input(whole, "the trace is empty", "give a line for each rank's counts");
  RoutingTrace trace;
  trace.file = file;
  measure(trace, rows);
  if (rows.front().expert >= 0 && expected.experts > trace.experts)
    trace.experts = expected.experts;  // CSV: the last experts may have no token at all.
  require(trace.experts, expected.experts, "experts", "the model", whole);
  require(trace.ranks, expected.ranks, "ranks", "the expert-parallel group", whole);
  require(trace.layers, expected.layers, "layers with experts", "the model", whole);
  require_all_cells(trace, rows);
  const double cells = static_cast<double>(trace.layers) * trace.micro_batches * trace.ranks;
  if (cells * trace.experts > most_counts)
    fail_input(whole, "holds over 2^30 counts", "trace fewer micro-batches");

  const std::vector<int> line_of = fill(trace, rows);
  std::size_t cell = 0;
  for (int layer = 0; layer < trace.layers; ++layer)
    for (int micro_batch = 0; micro_batch < trace.micro_batches; ++micro_batch)
      for (int rank = 0; rank < trace.ranks; ++rank, ++cell)
        check_row(trace, layer, micro_batch, rank, line_of[cell], expected);
  return trace;
}

RoutingTrace read_trace(const std::string& path, const TraceExpectation& expected) {
  constexpr std::uintmax_t longest = std::uintmax_t{1} << 30;
  std::error_code code;
  const std::uintmax_t length = std::filesystem::file_size(path, code);
  if (!std::filesystem::exists(path, code))
    fail_input({path, ""}, "cannot be read", "name a routing trace");
  if (!code && length > longest)
    fail_input({path, ""}, "is not a file of at most 1 GiB", "trace fewer micro-batches");
  return parse_trace(read_input_file(path), path, expected);
}

}  // namespace orrery
