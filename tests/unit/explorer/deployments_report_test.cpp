#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/explorer/reports.hpp"

namespace orrery::deployments_report_test {
namespace {

TEST(DeploymentsReport, HoldsTheListTheCurveAndTheJson) {
  DeploymentSearchRequest request;
  request.model = read_model("llama3.1-8b", {});
  request.platforms = {
      {read_system("dgx-h100", {}), read_serving_engine("vllm", {}), 2, "dgx-h100", "vllm"}};
  request.list.kind = BestList::Kind::front;
  DeploymentSearchWords words{"llama3.1-8b", {}, {}, "prompts of <500> tokens", ""};
  for (const int clients : {1, 32}) {
    ServingLoad load;
    load.list.requests.assign(static_cast<std::size_t>(4 * clients), {Seconds{}, 500, 100});
    load.list.clients = static_cast<std::uint32_t>(clients);
    request.loads.push_back(load);
    words.loads.push_back(std::to_string(clients) + " clients");
    words.load_flags.push_back("--isl 500 --osl 100");
  }
  const DeploymentSearchResult result = search_deployments(request);
  const std::string page = deployments_report(result, request, words, {"orrery serve"});
  EXPECT_NE(page.find("&lt;500&gt;"), page.npos);
  EXPECT_NE(page.find("id=\"deployments-chart\""), page.npos);
  const auto element = [&](const std::string& id) {
    const std::size_t begin = page.find('\n', page.find("id=\"" + id + "\">")) + 1;
    return page.substr(begin, page.find("</script>", begin) - begin);
  };
  const std::string json = element("result");
  EXPECT_EQ(nlohmann::json::parse(element("seen")).size(), result.seen.size());
  EXPECT_EQ(nlohmann::json::parse(json),
            nlohmann::json::parse(deployment_search_json(result, request, words)));
}

}  // namespace
}  // namespace orrery::deployments_report_test
