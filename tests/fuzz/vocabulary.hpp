#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/entry_points.hpp"

namespace orrery {

/// Words that mean something to an entry point: names of plan keys and options, their values, names
/// of the catalog, and what stands in the entry's corpus. Sorted.
std::vector<std::string> vocabulary_of(const EntryPoint& entry);

/// The same as libFuzzer reads it after -dict=.
std::string dictionary_text(const std::vector<std::string>& words);

}  // namespace orrery
