#include "sim/cli/sweep_progress.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"

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

}  // namespace

SweepProgress::SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total, bool quiet)
    : sweep_{sweep},
      best_{sweep, 1},
      there_{there},
      total_{total},
      line_{quiet},
      begin_{Clock::now()} {}

void SweepProgress::row(const std::string& line) {
  if (!line_.is_shown()) return;
  ++done_;
  best_.add(read_row(line, best_.columns(), {}));
  if (line_.is_due() || there_ + done_ == total_) draw();
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
  line_.draw(text);
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
