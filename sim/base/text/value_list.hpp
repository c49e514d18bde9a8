#pragma once

#include <string>
#include <vector>

#include "sim/base/core/error.hpp"

namespace orrery {

/// How a range goes on that does not say it: "256..1024" is 256, 257, ... or 256, 512, 1024.
enum class OpenRange { counts, doubles };

/// "1,2,4" at its commas. Errors (bad_input): nothing between two of them.
std::vector<std::string> split_list(const std::string& text, const Place& at);

/// What one item of a list stands for: itself, or the values of a range of whole numbers,
/// "256..8192*2" or "8..64+8", which ends at the last value that it hits. Errors (bad_input): a
/// range without a step that goes on, that ends before it begins, or of more than 100,000 values.
std::vector<std::string> values_of_item(const std::string& item, const Place& at,
                                        OpenRange open = OpenRange::counts);

/// Both: the values of a list of items.
std::vector<std::string> parse_value_list(const std::string& text, const Place& at,
                                          OpenRange open = OpenRange::counts);

}  // namespace orrery
