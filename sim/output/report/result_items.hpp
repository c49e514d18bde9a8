#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/text/table.hpp"
#include "sim/work/result/result.hpp"

namespace orrery {

// What the summary and the report both say of a result.

/// One kind of a breakdown's time, by its name. `useful`: work that the step is there for.
struct TimeItem {
  std::string what;
  Seconds time;
  bool useful;
};
/// All kinds, also those that take no time; they add up to the step.
std::vector<TimeItem> time_items(const Breakdown& breakdown);

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
