#pragma once

#include <optional>
#include <vector>

#include "sim/cli/status_line.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/stopwatch.hpp"

namespace orrery {

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

/// "3 of 69 cases, 12,000 of 369,857 tasks".
std::string progress_text(const std::vector<Progress>& parts);

}  // namespace orrery
