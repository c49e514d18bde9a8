#pragma once

#include <string>
#include <vector>

#include "sim/profile/step_profile.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// A step of one rank as it was predicted and as a trace shows it, row by row. Both columns add up
/// to the step, to the nanosecond.
struct ProfiledRank {
  struct Row {
    std::string what;
    std::int64_t predicted_ns = 0, measured_ns = 0;
  };
  std::string file;
  std::string gpu;
  std::int64_t rank = -1, ranks = 0;  ///< As the trace says; -1, 0: it does not.
  int stage = 0;                      ///< Of the plan, with which it is compared.
  StepProfile profile;
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< What a reader should know before believing the rows.

  std::int64_t predicted_ns() const;
};

/// Of what the stage's rank does by `result`. A trace cannot tell a kernel that a collective slows
/// down from one that is slow, nor waiting within a collective from its transfer: predicted, these
/// are rows of their own where the trace has none, and what they are compared with says so.
ProfiledRank profile_against_plan(const KinetoTrace& trace, StepProfile profile,
                                  const Result& result, int stage);

}  // namespace orrery
