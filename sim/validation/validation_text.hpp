#pragma once

#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// A row per case (measured, predicted, signed error, peers' errors), or per kind of kernels; the
/// refused cases with their reasons, and the file's figures.
std::string validation_text(const ValidationReport& report);

/// Errors of the rows of each kind over several files of kernels; "" for fewer than two files.
std::string rows_of_all_text(const std::vector<ValidationReport>& reports);

/// How good the ranges of all these steps are, a vote a publication (RangeScore); "" without any.
std::string range_scores_text(const std::vector<ValidationReport>& reports);

/// Markdown for docs/explanation/accuracy.md: a row per file with the figures, then a table of
/// every case.
std::string validation_markdown(const std::vector<ValidationReport>& reports);

/// The reports as "orrery.validation/1": per file its cases, refusals and error figures, errors as
/// fractions. Figures of a file in which no case was compared are null. `training_errors`: the
/// error with which nine in ten of all these steps would lie in their ranges; null for too few.
std::string validation_json(const std::vector<ValidationReport>& reports);

}  // namespace orrery
