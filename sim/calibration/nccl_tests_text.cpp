#include <algorithm>

#include "sim/calibration/curve.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {

// nccl-tests has changed its columns many times, but has always written their names above them:
// the reader takes the header's words as the meaning of a row's words.
namespace {

using Words = std::vector<std::string_view>;

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The prefix that a launcher or a page puts before each line: "[1,0]<stdout>:" of Open MPI, "[0]"
// of Hydra, "12:" of srun --label, a host, a pod, a time, ">" of a quotation. It is learnt from
// lines that are known, and the digits in it may differ from line to line.
class LinePrefix {
 public:
  LinePrefix() = default;
  explicit LinePrefix(std::string_view prefix) : prefix_{trimmed(prefix)} {}

  std::string removed(std::string_view line) const {
    const auto length = length_in(line);
    if (!length) return std::string{line};
    const std::string_view own = line.substr(0, *length);
    std::string rest{trimmed(line.substr(*length))};
    // Hydra writes it again wherever the program flushed: "-1[0]   24410    2.75".
    if (own.starts_with('['))
      for (std::size_t at; (at = rest.find(own)) != rest.npos;) rest.replace(at, own.size(), " ");
    return rest;
  }

 private:
  // Nothing: the line does not begin with it.
  std::optional<std::size_t> length_in(std::string_view line) const {
    const auto end_of_digits = [](std::string_view text, std::size_t at) {
      while (at < text.size() && is_digits(text.substr(at, 1))) ++at;
      return at;
    };
    std::size_t i = 0, at = 0;
    while (i < prefix_.size()) {
      if (at == line.size()) return std::nullopt;
      const std::size_t digits = end_of_digits(prefix_, i), own = end_of_digits(line, at);
      if ((digits > i) != (own > at)) return std::nullopt;
      if (digits == i && prefix_[i] != line[at]) return std::nullopt;
      i = std::max(digits, i + 1);
      at = std::max(own, at + 1);
    }
    return at;
  }

  std::string prefix_;
};

// Meanings of a row's words. Columns of a half: time, algbw, busbw and an error of some kind.
struct Columns {
  struct Half {
    std::size_t time = 0, algorithm = 0, bus = 0, wrong = 0;
    bool in_place = false;
  };
  std::size_t count = 0;
  std::size_t size = 0;
  std::size_t type = 0;  ///< Same as `size`: no such column.
  std::vector<Half> halves;
  bool counts_wrong = false;  ///< Since 2.13: a count; before, the largest deviation.
  bool starts_with_timestamp = false;
  double time_unit_us = 1.0;
};

Columns columns_of(const Words& header, bool only_in_place, const Place& place) {
  Columns columns;
  std::size_t at = 0;
  for (const std::string_view word : header) {
    if (word == "timestamp") {
      columns.starts_with_timestamp = at == 0;
      ++at;  // Date and time of day.
    }
    if (word == "size" || word == "bytes") columns.size = at;
    // Version 1 printed milliseconds (its src/common.cu: deltaSec * 1.0E3).
    if (word == "bytes") columns.time_unit_us = 1e3;
    if (word == "type") columns.type = at;
    if (word == "cputime")
      fail_input(place, "has the CPU's times (option -C)", "run it again without -C");
    if (word == "time") columns.halves.push_back({at, 0, 0, 0, false});
    if (!columns.halves.empty()) {
      Columns::Half& half = columns.halves.back();
      if (word == "algbw") half.algorithm = at;
      if (word == "busbw") half.bus = at;
      if (word == "#wrong" || word == "error" || word == "res") half.wrong = at;
      columns.counts_wrong |= word == "#wrong";
    }
    ++at;
  }
  columns.count = at;
  for (std::size_t i = 0; i < columns.halves.size(); ++i)
    columns.halves[i].in_place = i > 0 || only_in_place;
  return columns;
}

// A comment without its # and its spaces, which pages take for a heading, begins with these.
bool opens_comment(const Words& words, std::size_t at) {
  const auto is = [&](std::size_t i, std::string_view word) {
    return at + i < words.size() && words[at + i] == word;
  };
  return is(0, "nThread") || (is(0, "nccl-tests") && is(1, "version")) ||
         (is(0, "Collective") && is(1, "test")) || (is(0, "Using") && is(1, "devices")) ||
         (is(0, "Rank") && (is(2, "Group") || is(2, "Pid") || (is(2, "on") && is(4, "device")))) ||
         (is(0, "timestamp") && is(1, "size")) ||
         ((is(0, "size") || is(0, "bytes")) && (is(1, "count") || is(1, "N")));
}

bool is_header(const Words& words) {
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return (has("size") || has("bytes")) && (has("time") || has("cputime")) && has("algbw") &&
         has("busbw");
}

class Reader {
 public:
  explicit Reader(const std::string& text, const std::string& file)
      : file_{file}, lines_{lines_of(text)}, last_{lines_.size()} {
    while (last_ > 0 && trimmed(lines_[last_ - 1]).empty()) --last_;
  }

  std::vector<NcclTestsRun> runs() {
    runs_.emplace_back().place = line_place(file_, 0);
    for (at_ = 0; at_ < last_; ++at_) read_line(trimmed(lines_[at_]));
    const bool any_table = std::any_of(runs_.begin(), runs_.end(),
                                       [](const NcclTestsRun& run) { return run.has_table; });
    if (!any_table)
      fail_input({file_, ""}, "has no table of nccl-tests (no header with size, time and busbw)",
                 "give the whole output of one of its programs, such as all_reduce_perf");
    for (const NcclTestsRun& run : runs_)
      if (run.rows.empty())
        fail_input(run.place, "the run that starts here has no row of results",
                   "the log was cut off or the run failed; fetch the whole log");
    return std::move(runs_);
  }

 private:
  NcclTestsRun& run() { return runs_.back(); }
  Place here() const { return line_place(file_, at_); }

  // A run may follow the command that started it: "+ srun -N 2 ./build/all_reduce_perf -b 8".
  void take_program(const Words& words) {
    for (const std::string_view word : words) {
      const std::string name{word.substr(word.rfind('/') + 1)};
      if (!name.ends_with("_perf") || collective_of_program(name).empty()) continue;
      started_ = name;
      if (!run().has_table && run().program.empty()) run().program = name;
    }
  }

  // Every version opens its output with some of these lines; what follows a table is a new run.
  void start_run() {
    if (!run().has_table) return;
    runs_.emplace_back().place = here();
    run().program = started_;
    columns_ = {};
    only_in_place_ = false;
  }

  void read_line(std::string_view written) {
    learn_prefix(written);
    const std::string line = prefix_.removed(written);
    constexpr std::string_view version = "NCCL version ";
    if (const std::size_t at = line.find(version); at != line.npos && run().nccl.empty())
      if (const Words rest = words_of(std::string_view{line}.substr(at + version.size()));
          !rest.empty())
        run().nccl = rest[0].substr(0, rest[0].find('+'));
    if (line.find("Out of bounds values") != line.npos) {
      run().is_complete = true;
      if (line.find("FAILED") != line.npos) refuse_wrong_results(here(), 1.0);
    }
    if (line.find("Avg bus bandwidth") != line.npos) run().is_complete = true;
    const Words words = words_of(line);
    take_program(words);
    if (line.starts_with('#'))
      read_comment(words_of(std::string_view{line}.substr(1)));
    else if (opens_comment(words, 0) || line.starts_with("out-of-place"))
      read_comment(words);
    else if (run().has_table)
      read_row(words);
  }

  void learn_prefix(std::string_view line) {
    const Words words = words_of(line);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool has_sign = words[i].starts_with('#') && words[i].size() > 1;
      Words at{words.begin() + static_cast<std::ptrdiff_t>(i), words.end()};
      if (has_sign) at[0].remove_prefix(1);
      if (!opens_comment(at, 0)) continue;
      std::string_view before = trimmed(line.substr(
          0, static_cast<std::size_t>(at[0].data() - line.data()) - (has_sign ? 1 : 0)));
      if (before.ends_with('#')) before.remove_suffix(1);
      prefix_ = LinePrefix{before};
      return;
    }
  }

  void read_comment(const Words& words) {
    const auto starts = [&](std::initializer_list<std::string_view> wanted) {
      return words.size() >= wanted.size() &&
             std::equal(wanted.begin(), wanted.end(), words.begin());
    };
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (starts({"nccl-tests", "version"})) {
      start_run();
      for (const std::string_view word : words)
        if (word.starts_with("nccl-library="))
          run().nccl = nccl_version_text(std::string{word.substr(13)});
    } else if (starts({"Collective", "test", "starting:"}) && words.size() > 3) {
      start_run();
      if (run().program.empty() || !collective_of_program(std::string{words[3]}).empty())
        run().program = words[3];
    } else if (starts({"nThread"}) || starts({"Using", "devices"})) {
      start_run();
    } else if (starts({"Rank"})) {
      read_device(words);
    } else if (has("out-of-place") || has("in-place")) {
      only_in_place_ = !has("out-of-place");
    } else if (is_header(words)) {
      columns_ = columns_of(words, only_in_place_, here());
      run().has_table = true;
      run().is_version_1 = columns_.time_unit_us > 1.0;
    }
  }

  // "Rank  3 Group  0 Pid  4242 on  node17 device  3 [0000:18:00] NVIDIA H100 80GB HBM3"; version 1
  // knew neither groups nor, at first, processes.
  void read_device(const Words& words) {
    constexpr int most = 10'000'000;
    NcclTestsRun::Device device;
    std::optional<int> rank, number;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "Rank") rank = plain_integer(words[i + 1], most);
      if (words[i] == "Group") device.group = plain_integer(words[i + 1], most).value_or(0);
      if (words[i] == "on") device.host = words[i + 1];
      if (words[i] == "device") number = plain_integer(words[i + 1], most);
      if (words[i].starts_with('[') && words[i].ends_with(']')) {
        for (std::size_t j = i + 1; j < words.size(); ++j)
          device.gpu += (device.gpu.empty() ? "" : " ") + std::string{words[j]};
        break;
      }
    }
    if (!rank || !number || device.host.empty())
      fail_input(here(), "cannot read this line of a rank",
                 "it reads like '# Rank 0 Group 0 Pid 4242 on node1 device 0 [0000:18:00] NAME'");
    device.rank = *rank;
    device.device = *number;
    run().devices.push_back(std::move(device));
  }

  void read_row(const Words& words) {
    const bool is_row =
        !words.empty() && (is_digits(words[0]) ||
                           (columns_.starts_with_timestamp && is_digits(words[0].substr(0, 1))));
    if (!is_row) return;  // A line of NCCL's own log, or of the launcher.
    if (words.size() != columns_.count) refuse_odd_row(words.size());

    NcclTestsRun::Row row;
    row.place = here();
    row.bytes = number(words, columns_.size);
    if (columns_.type != columns_.size) row.type = words[columns_.type];
    for (const Columns::Half& half : columns_.halves)
      if (columns_.counts_wrong && half.wrong)
        if (const auto wrong = plain_number(words[half.wrong]))
          refuse_wrong_results(here(), *wrong);
    for (const Columns::Half& half : columns_.halves) {
      if (!plain_number(words[half.time])) continue;  // "N/A"
      row.in_place = half.in_place;
      row.time_us = number(words, half.time) * columns_.time_unit_us;
      row.algorithm_gb_s = half.algorithm ? number(words, half.algorithm) : 0.0;
      row.bus_gb_s = half.bus ? number(words, half.bus) : 0.0;
      check_row(row);
      run().rows.push_back(row);
      return;
    }
    fail_input(here(), "has no time", "remove the line, or run that size again");
  }

  [[noreturn]] void refuse_odd_row(std::size_t fields) {
    const std::string have = std::to_string(fields);
    const std::string want = std::to_string(columns_.count);
    if (at_ + 1 == last_)
      fail_input(here(),
                 "the log ends in the middle of a row (" + have + " of " + want + " fields)",
                 "it was cut off; fetch the whole log, or remove the line");
    fail_input(here(), "has " + have + " fields where the header names " + want,
               "the lines of several processes may be mixed; import the output of rank 0 alone");
  }

  double number(const Words& words, std::size_t column) const {
    if (const auto value = plain_number(words[column])) return *value;
    fail_input(here(), "'" + shown_text(std::string{words[column]}) + "' is not a number",
               "the log is damaged there; fetch it again");
  }

  std::string file_;
  std::vector<std::string_view> lines_;
  std::size_t last_;  ///< Behind the last line that is not blank.
  std::size_t at_ = 0;
  std::vector<NcclTestsRun> runs_;
  Columns columns_;
  LinePrefix prefix_;
  std::string started_;  ///< The program of the last command.
  bool only_in_place_ = false;
};

}  // namespace

std::vector<NcclTestsRun> parse_nccl_tests_text(const std::string& text, const std::string& file) {
  return Reader{text, file}.runs();
}

// The file that nccl-tests writes with -J, since 2.17.3. Its booleans are the strings "true" and
// "false", and a figure that was not measured is a string, too. The environment that it also holds
// is ignored, as it may contain secrets.
namespace {

constexpr int most_ranks = 10'000'000;
// Above any time in us, any size in bytes and any rate in GB/s that a run can print.
constexpr double largest = 1e18;

double number_or_zero(const JsonValue& json, const std::string& key) {
  const auto found = json.find(key);
  return found && found->is_number() ? found->number(0.0, largest) : 0.0;
}

std::string text_or_empty(const JsonValue& json, const std::string& key) {
  const auto found = json.find(key);
  return found && found->is_string() ? found->text() : "";
}

NcclTestsRun::Device device_of(const JsonValue& json) {
  NcclTestsRun::Device device;
  device.rank = static_cast<int>(json.at("rank").integer(0, most_ranks));
  if (const auto group = json.find("group"))
    device.group = static_cast<int>(group->integer(0, most_ranks));
  device.host = json.at("hostname").text();
  device.device = static_cast<int>(json.at("device").integer(0, most_ranks));
  device.gpu = text_or_empty(json, "device_info");
  return device;
}

void refuse_wrong_half(const JsonValue& half) {
  const auto wrong = half.find("nwrong");
  if (wrong && wrong->is_number()) refuse_wrong_results(half.place(), wrong->number(0.0, largest));
}

NcclTestsRun::Row row_of(const JsonValue& json) {
  NcclTestsRun::Row row;
  row.place = json.place();
  row.bytes = json.at("size").number(0.0, largest);
  row.type = text_or_empty(json, "type");
  for (const char* key : {"out_of_place", "in_place"})
    if (const auto half = json.find(key)) refuse_wrong_half(*half);
  for (const char* key : {"out_of_place", "in_place"}) {
    const auto half = json.find(key);
    if (!half) continue;
    if (half->has("cpu_time"))
      half->at("cpu_time").fail("is the CPU's time (option -C)", "run it again without -C");
    row.time_us = number_or_zero(*half, "time");
    if (row.time_us == 0.0) continue;
    row.in_place = std::string{key} == "in_place";
    row.algorithm_gb_s = number_or_zero(*half, "alg_bw");
    row.bus_gb_s = number_or_zero(*half, "bus_bw");
    check_row(row);
    return row;
  }
  json.fail("has no time", "remove the entry, or run that size again");
}

}  // namespace

NcclTestsRun parse_nccl_tests_json(const std::string& text, const std::string& file) {
  const JsonValue json = JsonValue::parse(text, file);
  if (!json.is_object() || !json.has("results") || !json.has("config"))
    json.fail("is JSON, but not what nccl-tests writes with -J (no 'config' and 'results')",
              "give the file that all_reduce_perf -J FILE wrote, or its text output");
  NcclTestsRun run;
  run.place = json.place();
  run.has_table = true;
  if (const auto arguments = json.find("args"); arguments && arguments->is_array())
    if (const auto words = arguments->elements(); !words.empty() && words[0].is_string())
      run.program = words[0].text();
  if (const auto version = json.find("nccl_version"))
    run.nccl = nccl_version_text(
        version->is_string() ? version->text() : std::to_string(version->integer(0, 1 << 24)));
  if (const auto devices = json.at("config").find("devices"))
    for (const JsonValue& device : devices->elements()) run.devices.push_back(device_of(device));
  for (const JsonValue& row : json.at("results").elements()) run.rows.push_back(row_of(row));
  if (run.rows.empty())
    json.at("results").fail("the run has no row of results", "it failed; run it again");
  if (const auto bounds = json.find("out_of_bounds")) {
    run.is_complete = true;
    const auto okay = bounds->find("okay");
    const bool failed =
        okay && (okay->is_boolean() ? !okay->boolean() : text_or_empty(*bounds, "okay") == "false");
    if (failed) refuse_wrong_results(bounds->place(), 1.0);
  }
  return run;
}

}  // namespace orrery
