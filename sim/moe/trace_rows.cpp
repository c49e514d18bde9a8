#include "sim/moe/trace_rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "sim/core/json_value.hpp"

namespace orrery {
namespace {

// Numbers that nobody exceeds: of layers, micro-batches and ranks, and of experts.
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

}  // namespace orrery
