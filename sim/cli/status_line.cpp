#include "sim/cli/status_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace orrery {
namespace {

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool wants_lines() {
  const char* progress = std::getenv("ORRERY_PROGRESS");
  return progress && std::string_view{progress} == "lines";
}

}  // namespace

StatusLine::StatusLine(bool quiet)
    : lines_{wants_lines()}, shown_{!quiet && (lines_ || ::isatty(STDERR_FILENO) == 1)} {}

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

}  // namespace orrery
