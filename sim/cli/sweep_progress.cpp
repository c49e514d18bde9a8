#include "sim/cli/sweep_progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sim/output/number_text.hpp"

namespace orrery {
namespace {

// "12 s", "3 min 20 s", "5 h 10 min"
std::string time_left(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e9));
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  if (whole < 60) return text(whole) + " s";
  if (whole < 3600) return text(whole / 60) + " min " + text(whole % 60) + " s";
  return grouped(whole / 3600) + " h " + text(whole / 60 % 60) + " min";
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

SweepProgress::SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total, bool quiet)
    : sweep_{sweep},
      best_{sweep, 1},
      there_{there},
      total_{total},
      shown_{!quiet && ::isatty(STDERR_FILENO) == 1},
      begin_{Clock::now()} {}

SweepProgress::~SweepProgress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void SweepProgress::row(const std::string& line) {
  if (!shown_) return;
  ++done_;
  best_.add(read_row(line, best_.columns(), {}));
  const Clock::time_point now = Clock::now();
  constexpr std::chrono::milliseconds often{200};
  if (now - drawn_ < often && there_ + done_ < total_) return;
  drawn_ = now;
  draw();
}

void SweepProgress::draw() {
  const std::int64_t rows = there_ + done_;
  const double share = static_cast<double>(rows) / static_cast<double>(total_);
  const double seconds =
      std::max(1e-3, std::chrono::duration<double>(Clock::now() - begin_).count());
  const double rate = static_cast<double>(done_) / seconds;
  std::string text = "[" + bar(share, 20) + std::string(20 - bar(share, 20).size(), '.') + "] " +
                     grouped(rows) + " of " + grouped(total_) + "  " +
                     fixed(rate, rate < 10.0 ? 1 : 0) + "/s  " +
                     time_left(static_cast<double>(total_ - rows) / rate) + " left";
  if (!best_.best().empty()) {
    const Row& row = best_.best().front();
    const double figure = best_.cell(row, best_.figure()).number;
    text += best_.figure() == "memory_peak_bytes" ? "  best " + bytes_text(Bytes{figure})
                                                  : "  best " + fixed(figure, 1) + " tokens/s/GPU";
    text += ": " + varied_keys(sweep_, best_, row);
  }
  text.resize(std::min(text.size(), terminal_columns() - 1));
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
}

std::string varied_keys(const Sweep& sweep, const BestRows& rows, const Row& row) {
  std::string text;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.values.size() > 1)
        text += (text.empty() ? "" : ", ") + axis.key + " " + rows.cell(row, axis.key).text;
  return text;
}

}  // namespace orrery
