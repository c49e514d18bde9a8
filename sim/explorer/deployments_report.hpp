#pragma once

#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/search/deployment_search_text.hpp"

namespace orrery {

/// Deployments that were searched as one HTML file (report_page.hpp): a user's speed against tokens
/// a second and GPU, and what `orrery serve --search` prints. It also holds the search
/// (deployment_search_json).
std::string deployments_report(const DeploymentSearchResult& result,
                               const DeploymentSearchRequest& request,
                               const DeploymentSearchWords& words, const ReportAbout& about);

}  // namespace orrery
