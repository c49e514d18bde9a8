#include "sim/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "sim/core/error.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

int parse_rank(std::string_view text, const std::string& whole) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 0)
    fail_input({"", "--perfetto-ranks"}, "'" + whole + "' is not a list of ranks",
               "write it like 0,8,16-23");
  return rank;
}

}  // namespace

bool wants_colour() {
  if (set("FORCE_COLOR") || set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  if (set("NO_COLOR") || (terminal && std::string_view{terminal} == "dumb")) return false;
  return isatty(STDOUT_FILENO) == 1;
}

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& part : split(text, ",")) {
    const std::size_t dash = part.find('-');
    const int first = parse_rank(part.substr(0, dash), text);
    const int last = dash == part.npos ? first : parse_rank(part.substr(dash + 1), text);
    constexpr int most = 1 << 20;
    if (last < first || last - first > most)
      fail_input({"", "--perfetto-ranks"}, "'" + part + "' is not a range",
                 "write the smaller rank first");
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

namespace {

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool silent = false;  // For the process, which runs one command.

bool wants_lines() {
  const char* progress = std::getenv("ORRERY_PROGRESS");
  return progress && std::string_view{progress} == "lines";
}

}  // namespace

void silence() { silent = true; }

void print_note(const std::string& text) {
  if (!silent) std::cerr << "orrery: note: " << text << "\n";
}

StatusLine::StatusLine()
    : lines_{wants_lines()}, shown_{!silent && (lines_ || ::isatty(STDERR_FILENO) == 1)} {}

StatusLine::~StatusLine() {
  if (shown_ && !lines_) std::fputs("\r\033[K", stderr);
}

bool StatusLine::is_due() const {
  constexpr std::chrono::milliseconds often{200};
  return shown_ && std::chrono::steady_clock::now() - drawn_ >= often;
}

void StatusLine::draw(std::string text) {
  if (!shown_) return;
  drawn_ = std::chrono::steady_clock::now();
  if (lines_) {
    std::fprintf(stderr, "orrery: progress: %s\n", text.c_str());
    std::fflush(stderr);
    return;
  }
  text.resize(std::min(text.size(), terminal_columns() - 1));
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
}

namespace {

const char* name(Progress::Of kind) {
  switch (kind) {
    case Progress::Of::plans:
      return "plans";
    case Progress::Of::cases:
      return "cases";
    case Progress::Of::sizes:
      return "sizes";
    case Progress::Of::keys:
      return "keys";
    case Progress::Of::tasks:
      return "tasks";
    case Progress::Of::flows:
      return "flows";
  }
  return "";
}

}  // namespace

std::string progress_text(const std::vector<Progress>& parts) {
  std::string text;
  for (const Progress& part : parts)
    text += (text.empty() ? "" : ", ") + grouped(static_cast<std::int64_t>(part.done)) + " of " +
            grouped(static_cast<std::int64_t>(part.all)) + " " + name(part.of);
  return text;
}

LongWork::LongWork() {
  if (line_.is_shown()) listener_.emplace([this](const Progress& progress) { draw(progress); });
}

void LongWork::draw(const Progress& progress) {
  // Inner work begins anew with each piece of the outer.
  std::erase_if(parts_, [&](const Progress& part) { return part.of >= progress.of; });
  parts_.push_back(progress);
  // Many flows that share links end together, after a long computation without reports.
  constexpr std::size_t many_flows = 5'000;
  const bool is_slow = progress.of == Progress::Of::flows && progress.all >= many_flows;
  constexpr Seconds soon{1.0};
  if ((is_slow || since_.passed() >= soon) && line_.is_due()) line_.draw(progress_text(parts_));
}

}  // namespace orrery
