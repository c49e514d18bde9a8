#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

struct TextStyle {
  bool colour = false;  ///< ANSI colours, for a terminal.
  bool links = false;   ///< A table of the busiest link of each class.
  /// Where the times come from, how other runs turned out, the busiest link, and what was simulated.
  bool verbose = false;
  bool wall_time = true;  ///< verbose: how long the simulation took.
};

/// What a person reads first: the verdict, the plan, how fast it is, what it needs and where the
/// time goes. About 35 lines of at most 78 columns, plain ASCII but for names. What each figure
/// means: docs/reference/output.md.
std::string summary_text(const Result& result, const TextStyle& style = {});

}  // namespace orrery
