#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

struct TextStyle {
  bool colour = false;  ///< ANSI colours, for a terminal.
  bool links = false;   ///< Include a table of the busiest link of each class.
  /// Include provenance, the errors of published runs, the busiest link, and what was simulated.
  bool verbose = false;
  bool wall_time = true;  ///< Include the simulation's wall time, if verbose.
};

/// Summary of a result: the verdict, the plan, its speed and memory, and the time by part. About 35
/// lines of at most 78 columns, plain ASCII but for names; docs/reference/output.md explains each
/// figure.
std::string summary_text(const Result& result, const TextStyle& style = {});

}  // namespace orrery
