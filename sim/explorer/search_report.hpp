#pragma once

#include "sim/explorer/report_page.hpp"
#include "sim/search/search_text.hpp"

namespace orrery {

/// A search as one HTML file (report_page.hpp): the list as a table, its proof, plans by step and
/// memory and, with bills, by days and rent, and a command for each plan. It also holds the search
/// object (search_json).
std::string search_report(const SearchResult& result, const SearchRequest& request,
                          const SearchNames& names, const ReportAbout& about);

}  // namespace orrery
