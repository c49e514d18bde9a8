#pragma once

#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// A row a case (measured, predicted, signed error, peers' errors), or of kernels a row a kind of
/// them; the refused cases with their reasons, and the file's figures.
std::string validation_text(const ValidationReport& report);

/// Of several files of kernels, what all their rows of one kind are missed by; "" of fewer than
/// two.
std::string rows_of_all_text(const std::vector<ValidationReport>& reports);

/// Markdown: a row a file with the figures, then a table of every case. What
/// docs/explanation/accuracy.md shows.
std::string validation_markdown(const std::vector<ValidationReport>& reports);

/// The reports as "orrery.validation/1": per file its cases, refusals and error figures, errors as
/// fractions. Figures of a file in which no case was compared are null. `training_errors`: with
/// which nine in ten of all these steps would lie in their ranges; null for too few.
std::string validation_json(const std::vector<ValidationReport>& reports);

}  // namespace orrery
