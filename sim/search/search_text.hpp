#pragma once

#include <string>
#include <vector>

#include "sim/core/table.hpp"
#include "sim/search/search.hpp"

namespace orrery {

/// The user's names of model and systems, for commands that can be typed again.
struct SearchNames {
  std::string model;
  std::vector<std::string> systems;  ///< The request's order.
  std::string calibration;           ///< Holds for all systems; "": none.
};

/// "orrery estimate ...": runs a found plan again.
std::string command_of(const Found& found, const SearchRequest& request, const SearchNames& names);

// The parts of search_text():
/// The request, but for keys fixed to several values: "gpt3-175b on ...\n  global batch ...".
std::string search_heading(const SearchResult& result, const SearchRequest& request);
Table search_table(const SearchResult& result, const SearchRequest& request);  ///< A line a plan.
/// How many plans there are, why no other is in the list, and what `=` means.
std::string search_notes(const SearchResult& result, const SearchRequest& request);

/// The ranking as a person reads it: a line a plan, then what was searched and the first command.
std::string search_text(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names, TextWidth width = TextWidth::terminal);

/// orrery.search/1 (docs/reference/json.md).
std::string search_json(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names);

/// What may be faster and is not tried unless it is fixed, a sentence; "": nothing.
std::string not_tried(const Model& model, const std::vector<Fixed>& fixed);

}  // namespace orrery
