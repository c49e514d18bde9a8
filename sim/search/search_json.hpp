#pragma once

#include "sim/search/search_text.hpp"

namespace orrery {

/// orrery.search/1 (docs/SEARCH.md).
std::string search_json(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names);

}  // namespace orrery
