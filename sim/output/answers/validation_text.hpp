#pragma once

#include <string>
#include <vector>

#include "sim/analysis/validate/validate.hpp"

namespace orrery {

/// A row a case (measured, predicted, signed error, peers' errors), the refused cases with their
/// reasons, and the file's figures.
std::string validation_text(const ValidationReport& report);

/// Markdown: a row a file with the figures, then a table of every case. What docs/ACCURACY.md
/// shows.
std::string validation_markdown(const std::vector<ValidationReport>& reports);

}  // namespace orrery
