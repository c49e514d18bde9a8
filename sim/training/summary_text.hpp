#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

struct TextStyle {
  bool colour = false;    ///< ANSI colours, for a terminal.
  bool wall_time = true;  ///< Include the simulation's wall time.
  bool links = false;     ///< Include a table of the busiest link of each class.
};

/// Summary of a result: the plan, its speed and memory, the time by part, and the provenance of the
/// prediction. About 35 lines of at most 78 columns, plain ASCII but for names;
/// docs/reference/output.md explains each figure.
std::string summary_text(const Result& result, const TextStyle& style = {});

}  // namespace orrery
