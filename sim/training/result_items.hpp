#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/table.hpp"
#include "sim/training/result.hpp"

namespace orrery {

// Items that the summary and the report share.

/// "matrix products", "tensor parallel", ...
std::string title(StepPart part);
/// True for useful work; all other parts are overhead.
bool is_useful(StepPart part);
/// Colours a bar.
using PaintBar = std::function<std::string(const std::string& marks, bool useful)>;
/// Parts of the critical path by phase, and their sums, without parts and phases that round to 0.
Table critical_table(const Result& result, const PaintBar& paint = nullptr);
/// Heading of critical_table().
std::string critical_head(const Result& result);

/// Name of a part of a rank's time, and the time.
using TimeItem = std::pair<std::string, Seconds>;
/// Parts of compute time, and of all other time. Together they add up to the step.
std::vector<TimeItem> compute_items(const Breakdown& breakdown);
std::vector<TimeItem> other_items(const Breakdown& breakdown);
/// Time of a GPU by part, on the busiest stage and on the idlest if they differ.
Table stage_table(const Result& result);
std::string stage_head(const Result& result);

/// Time and kept activations of the layers of each kind; empty if all are alike.
Table kinds_table(const Result& result);
std::string kinds_head();

/// "Rows of ranks", {"mean 4,096 a layer and micro-batch", ...}
using LabelledItems = std::pair<std::string, std::vector<std::string>>;
/// Effects of uneven routing; empty if it is even.
std::vector<LabelledItems> routing_items(const Result& result);

/// "0.0 % measured", "77.8 % interpolated", "22.2 % default": shares of time by provenance.
std::vector<std::string> basis_items(const Result& result);

/// "tensor 97.3 %, data 2.7 %": the link's bytes by user, without users that have none.
std::string users_text(const LinkReport& link);
/// The busiest link of each class, and its bytes by user.
Table link_table(const Result& result);

}  // namespace orrery
