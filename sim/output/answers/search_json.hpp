#pragma once

#include "sim/output/answers/search_text.hpp"

namespace orrery {

/// orrery.search/1 (docs/SEARCH.md).
std::string search_json(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names);

}  // namespace orrery
