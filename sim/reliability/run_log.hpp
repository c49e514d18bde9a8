#pragma once

#include <vector>

#include "sim/reliability/failure_draws.hpp"

namespace orrery {

enum class RunTime;

/// What a job did from one moment to another.
struct RunStretch {
  Micros from = 0, to = 0;
  RunTime as{};
};

/// When a run did what, without a gap: from 0 on, one stretch after the other. Steps are productive
/// until a failure takes them back; checkpoints that they stand for are counted with them.
class RunLog {
 public:
  void add(Micros from, Micros to, RunTime as);
  /// The last steps, so much of them, turn out to be lost.
  void take_back(Micros steps);
  const std::vector<RunStretch>& stretches() const { return stretches_; }

 private:
  std::vector<RunStretch> stretches_;
};

}  // namespace orrery
