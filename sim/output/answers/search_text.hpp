#pragma once

#include <string>
#include <vector>

#include "sim/analysis/search/search.hpp"

namespace orrery {

/// What the user called model and systems, for commands that can be typed again.
struct SearchNames {
  std::string model;
  std::vector<std::string> systems;  ///< In the request's order.
};

/// "orrery estimate ...": runs a found plan again.
std::string command_of(const Found& found, const SearchRequest& request, const SearchNames& names);

/// The ranking as a person reads it: a line a plan, then what was searched and the first command.
std::string search_text(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names);

}  // namespace orrery
