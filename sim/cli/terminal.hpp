#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/progress.hpp"

namespace orrery {

/// Whether stdout should be coloured: a terminal, and neither NO_COLOR nor TERM=dumb; FORCE_COLOR
/// and CLICOLOR_FORCE win (no-color.org).
bool wants_colour();

/// "0,8,16-23" as numbers. Errors (bad_input) name --trace-ranks.
std::vector<int> parse_ranks(const std::string& text);

/// A line on stderr that says how far a command is, drawn over itself a few times a second. Nothing
/// where stderr is no terminal, unless ORRERY_PROGRESS is "lines": then "orrery: progress: ..." is
/// written each time, for programs that read it.
class StatusLine {
 public:
  explicit StatusLine(bool quiet = false);
  ~StatusLine();  ///< Clears the line.
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_shown() const { return shown_; }
  /// Whether the line is shown and old enough to be drawn again.
  bool is_due() const;
  /// Cut to the terminal's width.
  void draw(std::string text);

 private:
  bool lines_ = false;
  bool shown_ = false;
  std::chrono::steady_clock::time_point drawn_;
};

/// While it lives, a line on stderr says how far a command is, from its second second on; nothing
/// where stderr is no terminal.
class LongWork {
 public:
  LongWork();

 private:
  void draw(const Progress& progress);

  Stopwatch since_;
  StatusLine line_;
  std::vector<Progress> parts_;               ///< What it is at, and in it what that is at.
  std::optional<ProgressListener> listener_;  ///< Only where there is a line.
};

/// The result of `work`, with such a line while it runs.
template <class Work>
auto long_work(Work&& work) {
  const LongWork line;
  return work();
}

/// "3 of 69 cases, 12,000 of 369,857 tasks".
std::string progress_text(const std::vector<Progress>& parts);

}  // namespace orrery
