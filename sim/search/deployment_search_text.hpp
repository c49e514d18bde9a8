#pragma once

#include <string>
#include <vector>

#include "sim/core/document.hpp"
#include "sim/search/deployment_search.hpp"

namespace orrery {

/// The request in the user's words.
struct DeploymentSearchWords {
  std::string model;
  std::vector<std::string> loads;       ///< Headings: "256 clients".
  std::vector<std::string> load_flags;  ///< Flags of `orrery serve`: "--isl 1024 ...".
  std::string requests;                 ///< "prompts of 1024 tokens, answers of 1024".
  std::string limits;                   ///< Value of --slo; "": none.
};

Document deployment_search_document(const DeploymentSearchResult& result,
                                    const DeploymentSearchRequest& request,
                                    const DeploymentSearchWords& words);
/// orrery.serving_search/1 (docs/reference/json.md).
std::string deployment_search_json(const DeploymentSearchResult& result,
                                   const DeploymentSearchRequest& request,
                                   const DeploymentSearchWords& words);
/// A line for each that was found, with the columns of its first.
std::string deployment_search_csv(const DeploymentSearchResult& result,
                                  const DeploymentSearchRequest& request,
                                  const DeploymentSearchWords& words);

/// "dgx-h100 vllm tp2 x4 kv=fp8": what distinguishes it from the others.
std::string name_of(const FoundDeployment& found, const DeploymentSearchRequest& request);
/// The command that shows one of them in full.
std::string command_of(const FoundDeployment& found, const DeploymentSearchRequest& request,
                       const DeploymentSearchWords& words);

}  // namespace orrery
