#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/requests/read_requests.hpp"

namespace orrery {
namespace {

// The columns that are read of each form: time, prompt, answer.
struct Columns {
  RequestFormat format;
  std::string_view time, prompt, answer;
};
constexpr std::array<Columns, 3> forms{
    {{RequestFormat::azure, "TIMESTAMP", "ContextTokens", "GeneratedTokens"},
     {RequestFormat::burstgpt, "Timestamp", "Request tokens", "Response tokens"},
     {RequestFormat::lengths, "", "input_length", "output_length"}}};

constexpr std::size_t absent = static_cast<std::size_t>(-1);

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::size_t column_of(const std::vector<std::string_view>& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (header[i] == name) return i;
  return absent;
}

// Rows of a CSV are many: their fields are looked at without being stored.
struct Row {
  std::string_view time, prompt, answer;
};

class RowReader {
 public:
  RowReader(const Columns& columns, std::string_view header, const std::string& file)
      : columns_{columns}, file_{file} {
    const std::vector<std::string_view> names = fields_of(header);
    time_ = columns.time.empty() ? absent : column_of(names, columns.time);
    prompt_ = column_of(names, columns.prompt);
    answer_ = column_of(names, columns.answer);
    for (const auto& [place, name] :
         {std::pair{time_, columns.time}, {prompt_, columns.prompt}, {answer_, columns.answer}})
      if (place == absent && !name.empty())
        fail_input(line_place(file, 0), "the column '" + std::string{name} + "' is missing",
                   "give the trace with its first line as it was published");
    last_ = std::max(prompt_, answer_);
    if (time_ != absent) last_ = std::max(last_, time_);
  }

  bool has_times() const { return time_ != absent; }

  // False of a request without an answer.
  bool read(std::string_view line, std::size_t index, Request& request) const {
    Row row;
    for (std::size_t field = 0; field <= last_; ++field) {
      const std::size_t comma = line.find(',');
      if (comma == line.npos && field < last_)
        fail_input(line_place(file_, index),
                   "has " + std::to_string(field + 1) + " fields, fewer than the first line names",
                   "the file was cut, or is another one");
      const std::string_view text = trimmed(line.substr(0, comma));
      if (field == time_) row.time = text;
      if (field == prompt_) row.prompt = text;
      if (field == answer_) row.answer = text;
      if (comma != line.npos) line.remove_prefix(comma + 1);
    }
    const std::uint32_t answer = length_of(row.answer, columns_.answer, index);
    // BurstGPT logs requests that failed with an answer of no tokens (github.com/HPMLL/BurstGPT).
    if (answer == 0 && columns_.format == RequestFormat::burstgpt) return false;
    request.output_tokens = nonzero(answer, columns_.answer, index);
    request.prompt_tokens =
        nonzero(length_of(row.prompt, columns_.prompt, index), columns_.prompt, index);
    if (has_times()) request.arrival = Seconds{time_of(row.time, index)};
    return true;
  }

 private:
  std::uint32_t length_of(std::string_view text, std::string_view column, std::size_t index) const {
    std::uint32_t length = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc{} || rest != text.data() + text.size() || length > most_request_tokens)
      fail_input(line_place(file_, index),
                 std::string{column} + " '" + shown_text(std::string{text}) +
                     "' is not a number of tokens",
                 "write a whole number up to 16777216");
    return length;
  }

  std::uint32_t nonzero(std::uint32_t length, std::string_view column, std::size_t index) const {
    if (length == 0)
      fail_input(line_place(file_, index), std::string{column} + " is 0",
                 "a request has a prompt and an answer of at least one token; leave it out");
    return length;
  }

  double time_of(std::string_view text, std::size_t index) const {
    double time = std::numeric_limits<double>::quiet_NaN();
    if (columns_.format == RequestFormat::azure) {
      time = seconds_of_timestamp(text);
    } else {
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), time);
      if (error != std::errc{} || rest != text.data() + text.size())
        time = std::numeric_limits<double>::quiet_NaN();
    }
    if (!std::isfinite(time))
      fail_input(
          line_place(file_, index),
          std::string{columns_.time} + " '" + shown_text(std::string{text}) + "' is not a time",
          columns_.format == RequestFormat::azure ? "write like 2023-11-16 18:15:46.6805900"
                                                  : "write the seconds since the trace began");
    if (time < 0.0)
      fail_input(line_place(file_, index),
                 std::string{columns_.time} + " " + std::string{text} + " is negative",
                 "write the seconds since the trace began");
    return time;
  }

  const Columns& columns_;
  const std::string& file_;
  std::size_t time_ = absent, prompt_ = absent, answer_ = absent, last_ = 0;
};

}  // namespace

RequestFormat csv_format(std::string_view header) {
  const std::vector<std::string_view> names = fields_of(header);
  for (const Columns& form : forms)
    if (column_of(names, form.prompt) != absent) return form.format;
  return RequestFormat::lines;
}

RequestTrace parse_csv_requests(const std::string& text, const std::string& file,
                                RequestFormat format) {
  const Columns* columns = forms.data();
  while (columns->format != format) ++columns;
  std::string_view left = text;
  const auto next_line = [&] {
    const std::size_t end = std::min(left.find('\n'), left.size());
    const std::string_view line = trimmed(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    return line;
  };
  std::string_view header = next_line();
  if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);  // A byte order mark.
  const RowReader reader{*columns, header, file};
  RequestTrace trace;
  trace.format = format;
  trace.has_times = reader.has_times();
  for (std::size_t index = 1; !left.empty(); ++index) {
    const std::string_view line = next_line();
    if (line.empty()) continue;
    Request request;
    if (reader.read(line, index, request))
      trace.list.requests.push_back(request);
    else
      ++trace.list.failed;
  }
  return trace;
}

}  // namespace orrery
