#pragma once

#include <chrono>
#include <string>

namespace orrery {

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

}  // namespace orrery
