#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/table.hpp"
#include "sim/training/result.hpp"

namespace orrery {

// What the summary and the report both say of a result.

/// "matrix products", "tensor parallel", ...
std::string title(StepPart part);
/// Whether it is what the step is there for; all else keeps a GPU from it.
bool is_useful(StepPart part);
/// How a bar is coloured.
using PaintBar = std::function<std::string(const std::string& marks, bool useful)>;
/// Parts of the critical path by phase, and their sums. Parts that round to nothing are left out,
/// and so is a phase that has none.
Table critical_table(const Result& result, const PaintBar& paint = nullptr);
/// What critical_table() is headed by.
std::string critical_head(const Result& result);

/// A rank's time of one kind, by its name.
using TimeItem = std::pair<std::string, Seconds>;
/// What it computes; and all else. Both together add up to the step.
std::vector<TimeItem> compute_items(const Breakdown& breakdown);
std::vector<TimeItem> other_items(const Breakdown& breakdown);
/// Where the time of a GPU goes on the busiest stage and on the idlest, where there are two.
Table stage_table(const Result& result);
std::string stage_head(const Result& result);

/// "Rows of ranks", {"mean 4,096 a layer and micro-batch", ...}
using LabelledItems = std::pair<std::string, std::vector<std::string>>;
/// What uneven routing does; nothing where it is even.
std::vector<LabelledItems> routing_items(const Result& result);

/// "0.0 % measured", "77.8 % interpolated", "22.2 % default": what its times rest on.
std::vector<std::string> basis_items(const Result& result);

/// "tensor 97.3 %, data 2.7 %": who uses the link, without those who do not.
std::string users_text(const LinkReport& link);
/// The busiest link of each class, and who uses it.
Table link_table(const Result& result);

}  // namespace orrery
