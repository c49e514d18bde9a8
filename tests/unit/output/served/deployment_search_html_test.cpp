#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/output/served/deployment_search_text.hpp"

namespace orrery {
namespace {

TEST(DeploymentSearchHtml, HoldsTheListTheCurveAndTheJson) {
  DeploymentSearchRequest request;
  request.model = read_model("llama3.1-8b", {});
  request.grounds = {
      {read_system("dgx-h100", {}), read_serving_engine("vllm", {}), 2, "dgx-h100", "vllm"}};
  request.pareto = true;
  DeploymentSearchWords words{"llama3.1-8b", {}, {}, "prompts of <500> tokens", ""};
  for (const int clients : {1, 32}) {
    ServingLoad load;
    load.list.requests.assign(static_cast<std::size_t>(4 * clients), {Seconds{}, 500, 100});
    load.clients = static_cast<std::uint32_t>(clients);
    request.loads.push_back(load);
    words.loads.push_back(std::to_string(clients) + " clients");
    words.load_flags.push_back("--isl 500 --osl 100");
  }
  const DeploymentSearchResult result = search_deployments(request);
  const std::string page = deployment_search_html(result, request, words);
  EXPECT_NE(page.find("&lt;500&gt;"), page.npos);
  EXPECT_NE(page.find("\n  prompts of "), page.npos);  // Lines stay lines.
  EXPECT_EQ(page.find("src="), page.npos);             // Nothing is loaded from elsewhere.
  EXPECT_NE(page.find("<polyline"), page.npos);
  const std::size_t begin = page.find('\n', page.find("application/json")) + 1;
  const std::string json = page.substr(begin, page.find("</script>") - begin);
  EXPECT_EQ(nlohmann::json::parse(json),
            nlohmann::json::parse(deployment_search_json(result, request, words)));
}

}  // namespace
}  // namespace orrery
