#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/document.hpp"
#include "sim/search/comparison.hpp"

namespace orrery {

/// A plan and what its GPUs cost by the hour, where that is known.
struct PricedPlan {
  ComparedPlan plan;
  std::optional<Range> rent_usd_per_gpu_hour;
};

/// "A", "B", ...: what the columns are called.
std::string plan_label(std::size_t index);

/// The plans side by side with their differences from the first, and for each of them a sentence:
/// which is faster, or that the difference is not significant.
Document compare_document(const std::vector<PricedPlan>& plans);

/// The same as "orrery.compare/1" (docs/reference/json.md). `runs`: JSON of the times of whole
/// runs; "": without them.
std::string compare_json(const std::vector<PricedPlan>& plans, const std::string& runs = "");

/// Whole runs of compared plans side by side, and for each but the first a sentence: which is done
/// first, or that the difference is not significant.
Document compared_runs_document(const std::vector<ComparedRun>& runs);

/// The same as an array of objects for "orrery.compare/1" (docs/reference/json.md).
std::string compared_runs_json(const std::vector<ComparedRun>& runs);

}  // namespace orrery
