#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/progress.hpp"

namespace orrery {

/// True if stdout should be coloured: a terminal, and neither NO_COLOR nor TERM=dumb; FORCE_COLOR
/// and CLICOLOR_FORCE win (no-color.org).
bool wants_colour();

/// Reads "0,8,16-23" as numbers. Errors (bad_input) name --perfetto-ranks.
std::vector<int> parse_ranks(const std::string& text);

/// Leaves out notes and progress from now on: --quiet. Errors stay.
void silence();

/// Writes "orrery: note: " + `text` to stderr, unless silenced.
void print_note(const std::string& text);

/// A line on stderr with a command's progress, rewritten a few times a second. Nothing is shown if
/// silenced, or if stderr is no terminal, unless ORRERY_PROGRESS is "lines": then
/// "orrery: progress: ..." is written each time, for programs that read it.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();  ///< Clears the line.
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_shown() const { return shown_; }
  /// True if the line is shown and old enough to be rewritten.
  bool is_due() const;
  /// Cut to the terminal's width.
  void draw(std::string text);

 private:
  bool lines_ = false;
  bool shown_ = false;
  std::chrono::steady_clock::time_point drawn_;
};

/// Shows a command's progress on stderr while it lives, from its second second on; nothing if
/// stderr is no terminal.
class LongWork {
 public:
  LongWork();

 private:
  void draw(const Progress& progress);

  Stopwatch since_;
  StatusLine line_;
  std::vector<Progress> parts_;               ///< Outermost first.
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
