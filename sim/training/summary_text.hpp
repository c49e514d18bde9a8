#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

struct TextStyle {
  bool colour = false;    ///< ANSI colours, for a terminal.
  bool wall_time = true;  ///< With the line that tells how long the simulation took.
  bool links = false;     ///< With a table of the busiest link of each class.
};

/// What a person reads first: the plan, how fast it is, what it needs, where the time goes and what
/// the answer rests on. About 35 lines of at most 78 columns, plain ASCII but for names. What each
/// figure means: docs/reference/output.md.
std::string summary_text(const Result& result, const TextStyle& style = {});

}  // namespace orrery
