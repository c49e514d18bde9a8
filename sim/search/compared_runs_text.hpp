#pragma once

#include <string>
#include <vector>

#include "sim/core/document.hpp"
#include "sim/search/compared_run.hpp"

namespace orrery {

/// Whole runs of compared plans side by side, and for each but the first a sentence: which is done
/// first, or that it cannot be told.
Document compared_runs_document(const std::vector<ComparedRun>& runs);

/// The same as an array of objects for "orrery.compare/1" (docs/COMPARE.md).
std::string compared_runs_json(const std::vector<ComparedRun>& runs);

}  // namespace orrery
