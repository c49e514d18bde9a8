#include "sim/search/deployment_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery::deployment_search_test {
namespace {

RequestTraffic traffic_of(Arrivals arrivals, int clients, std::int64_t requests) {
  RequestTraffic traffic;
  traffic.arrivals = arrivals;
  traffic.concurrency = clients;
  traffic.prompt = parse_length_distribution("200..600", {});
  traffic.output = parse_length_distribution("50..150", {});
  traffic.requests = requests;
  return traffic;
}

DeploymentSearchRequest request_of(ServingGoal goal) {
  DeploymentSearchRequest request;
  request.model = read_model("llama3.1-8b", {});
  for (const char* system : {"dgx-h100", "dgx-a100-80gb"})
    for (const char* engine : {"vllm", "sglang"})
      request.platforms.push_back(
          {read_system(system, {}), read_serving_engine(engine, {}), 4, system, engine});
  request.fixed = {{"kv", {"bf16", "fp8"}}};
  request.goal = goal;
  if (goal == ServingGoal::goodput) {
    request.platforms.resize(2);
    ServingLoad load;
    load.traffic = traffic_of(Arrivals::poisson, 0, 40);
    load.replay.slo = parse_slo("ttft=1000,tpot=30@p90", {});
    load.list = sample_requests(load.traffic);
    request.loads = {load};
    return request;
  }
  for (const int clients : {2, 16, 64}) {
    ServingLoad load;
    load.list = sample_requests(traffic_of(Arrivals::closed, clients, 4 * clients));
    request.loads.push_back(load);
  }
  return request;
}

struct Ranked {
  double score;
  double between;
  std::size_t point;
  std::string name;
};

bool before(const Ranked& a, const Ranked& b) {
  return std::tie(a.score, a.between, a.point) < std::tie(b.score, b.between, b.point);
}

// Every deployment under every load, by nothing but its replay.
std::vector<Ranked> all_of(const DeploymentSearchRequest& request) {
  std::vector<Ranked> all;
  Request longest;
  longest.prompt_tokens = 600;
  longest.output_tokens = 150;
  const DeploymentSpace space =
      deployment_space(request.model, request.platforms, request.fixed, longest, request.pools);
  for (const DeploymentLayout& layout : space.layouts) {
    const ServingPlatform& on = request.platforms[static_cast<std::size_t>(layout.platform)];
    const auto price = [&](const Deployment& plan) {
      return std::make_shared<const PricedServing>(
          ServingSetup{request.model, on.system, on.engine, plan});
    };
    const auto decode = price(layout.plan);
    const auto prefill = layout.pools ? price(layout.pools->prefill) : nullptr;
    const auto serve = [&](const ServingLoad& load) {
      return layout.pools ? serve_pools({*layout.pools, prefill, decode}, load)
                          : serve_requests(*decode, load, {"", ""});
    };
    const int replicas = layout.pools ? 0 : layout.plan.replicas;
    const Economics economics = read_economics(on.system.gpu.name, "");
    for (std::size_t l = 0; l < request.loads.size(); ++l) {
      const ServingLoad& load = request.loads[l];
      const auto gpus = static_cast<double>(layout.gpus());
      Ranked ranked{0.0, 0.0, all.size(),
                    on.system_word + on.engine_word + layout.flags + std::to_string(l)};
      double rate = 0.0, speed = 0.0;
      if (request.goal == ServingGoal::goodput) {
        if (const auto found = largest_rate(serve, load, replicas).at_rate) {
          rate = found->slo_share() * found->requests_per_s();
          speed = found->interactivity();
        }
      } else {
        const ServingRun run = serve_until_steady(serve, load, replicas);
        const bool kept = !load.replay.slo || run.slo_share() >= load.replay.slo->share;
        rate = kept ? run.output_tokens_per_s() : 0.0;
        speed = run.interactivity();
      }
      ranked.score = serving_score(request.goal, rate / gpus, economics);
      ranked.between = speed > 0.0 ? 1.0 / speed : 0.0;
      all.push_back(ranked);
    }
  }
  return all;
}

std::vector<std::string> names_of(const DeploymentSearchResult& result,
                                  const DeploymentSearchRequest& request) {
  std::vector<std::string> names;
  for (const FoundDeployment& found : result.found) {
    const ServingPlatform& on = request.platforms[static_cast<std::size_t>(found.layout.platform)];
    names.push_back(on.system_word + on.engine_word + found.layout.flags +
                    std::to_string(found.load));
  }
  return names;
}

std::vector<std::string> first_names(std::vector<Ranked> all, std::size_t most) {
  std::erase_if(all, [](const Ranked& one) { return std::isinf(one.score); });
  std::sort(all.begin(), all.end(), before);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) names.push_back(all[i].name);
  return names;
}

TEST(DeploymentSearch, ListsWhatReplayingEverythingWouldRankFirst) {
  for (const ServingGoal goal :
       {ServingGoal::throughput, ServingGoal::cost, ServingGoal::energy, ServingGoal::goodput}) {
    DeploymentSearchRequest request = request_of(goal);
    request.list.kind = BestList::Kind::top;
    const std::vector<Ranked> all = all_of(request);
    for (const int top : {1, 5, 1000}) {
      request.list.most = top;
      const DeploymentSearchResult result = search_deployments(request);
      EXPECT_EQ(names_of(result, request), first_names(all, static_cast<std::size_t>(top)))
          << serving_goal_names()[static_cast<std::size_t>(goal)] << " " << top;
      EXPECT_EQ(result.points, static_cast<std::int64_t>(all.size()));
      EXPECT_EQ(result.replayed + result.bounded_out + result.too_slow, result.points);
      // Limits keep rates far below what the GPUs could do.
      if (top == 1 && goal != ServingGoal::goodput) {
        EXPECT_LT(result.replayed, result.points / 2);
      }
    }
  }
}

// Runs of steady loads are as long as they must be, and their bounds know no window.
TEST(DeploymentSearch, RanksSteadyLoadsAsReplayingEverythingWould) {
  for (const ServingGoal goal : {ServingGoal::throughput, ServingGoal::goodput}) {
    DeploymentSearchRequest request = request_of(goal);
    for (ServingLoad& load : request.loads) {
      const int clients = static_cast<int>(load.list.clients);
      load.traffic =
          traffic_of(clients > 0 ? Arrivals::closed : Arrivals::poisson, clients, 1 << 14);
      load.traffic.stationary = load.finds_length = true;
      load.part = MeasuredPart::steady;
      load.list = requests_of(load);
    }
    request.platforms.resize(1);
    request.list.kind = BestList::Kind::top;
    const DeploymentSearchResult result = search_deployments(request);
    EXPECT_EQ(names_of(result, request), first_names(all_of(request), 10))
        << serving_goal_names()[static_cast<std::size_t>(goal)];
  }
}

TEST(DeploymentSearch, OfEachLayoutTheBestLoad) {
  DeploymentSearchRequest request = request_of(ServingGoal::cost);
  std::vector<Ranked> all = all_of(request);
  std::vector<Ranked> best;  // Loads of a layout stand together.
  for (std::size_t i = 0; i < all.size(); i += 3)
    best.push_back(*std::min_element(all.begin() + static_cast<std::ptrdiff_t>(i),
                                     all.begin() + static_cast<std::ptrdiff_t>(i) + 3, before));
  for (const int top : {1, 4, 1000}) {
    request.list.most = top;
    EXPECT_EQ(names_of(search_deployments(request), request),
              first_names(best, static_cast<std::size_t>(top)));
  }
}

TEST(DeploymentSearch, TheFrontIsAllThatNoOtherBeats) {
  DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  request.list.kind = BestList::Kind::front;
  const std::vector<Ranked> all = all_of(request);
  std::vector<Ranked> front;
  for (const Ranked& one : all)
    if (std::none_of(all.begin(), all.end(), [&](const Ranked& other) {
          return before(other, one) && other.between <= one.between;
        }))
      front.push_back(one);
  EXPECT_EQ(names_of(search_deployments(request), request), first_names(front, 1000));
  EXPECT_GT(front.size(), 3u);
}

TEST(DeploymentSearch, LimitsLeaveOutDeploymentsThatMissThem) {
  DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  for (ServingLoad& load : request.loads) load.replay.slo = parse_slo("ttft=300,tpot=12@p90", {});
  request.list.kind = BestList::Kind::top;
  const DeploymentSearchResult result = search_deployments(request);
  EXPECT_EQ(names_of(result, request), first_names(all_of(request), 10));
  EXPECT_GT(result.missed + result.too_slow, 0);
  for (const FoundDeployment& found : result.found) EXPECT_GE(found.figures.slo_share, 0.9);
}

// Of 4 GPUs and replicas of 1 or 2: 3P1D, 2P2D and 1P3D of one, 2P1D of one and two, 1P2D of two
// and one, 1P1D of two; in each of two formats.
TEST(DeploymentSearch, TriesAllPoolsThatUseAllGpus) {
  const DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  Request longest;
  longest.prompt_tokens = 600;
  longest.output_tokens = 150;
  const auto count = [&](PoolChoice pools) {
    return deployment_space(request.model, {request.platforms.front()}, request.fixed, longest,
                            pools)
        .layouts.size();
  };
  const std::size_t alone = count(PoolChoice::none);
  EXPECT_EQ(count(PoolChoice::only), 12u);
  EXPECT_EQ(count(PoolChoice::all), alone + 12u);
}

TEST(DeploymentSearch, WithPoolsTooItListsWhatReplayingEverythingWould) {
  for (const ServingGoal goal : {ServingGoal::throughput, ServingGoal::goodput}) {
    DeploymentSearchRequest request = request_of(goal);
    request.platforms.resize(2);
    request.pools = PoolChoice::all;
    request.list.kind = BestList::Kind::top;
    const std::vector<Ranked> all = all_of(request);
    for (const int top : {1, 7, 1000}) {
      request.list.most = top;
      const DeploymentSearchResult result = search_deployments(request);
      EXPECT_EQ(names_of(result, request), first_names(all, static_cast<std::size_t>(top)))
          << serving_goal_names()[static_cast<std::size_t>(goal)] << " " << top;
      EXPECT_EQ(result.replayed + result.bounded_out + result.too_slow, result.points);
    }
  }
}

// Drafts too: the bound takes whole tokens for what a step brings.
TEST(DeploymentSearch, WithDraftsItListsWhatReplayingEverythingWould) {
  DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  request.platforms.resize(1);
  request.loads.erase(request.loads.begin());
  request.fixed = {{"speculate", {"none", "eagle3:1@0.65", "ngram:4@0.9/0.8/0.7/0.6"}}};
  request.pools = PoolChoice::all;
  request.list.kind = BestList::Kind::top;
  const std::vector<Ranked> all = all_of(request);
  for (const int top : {1, 5, 1000}) {
    request.list.most = top;
    EXPECT_EQ(names_of(search_deployments(request), request),
              first_names(all, static_cast<std::size_t>(top)));
  }
}

TEST(DeploymentSearch, TheFrontMayHavePools) {
  DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  request.platforms.resize(2);
  request.list.kind = BestList::Kind::front;
  request.pools = PoolChoice::all;
  const std::vector<Ranked> all = all_of(request);
  std::vector<Ranked> front;
  for (const Ranked& one : all)
    if (std::none_of(all.begin(), all.end(), [&](const Ranked& other) {
          return before(other, one) && other.between <= one.between;
        }))
      front.push_back(one);
  const DeploymentSearchResult result = search_deployments(request);
  EXPECT_EQ(names_of(result, request), first_names(front, 1000));
  EXPECT_TRUE(std::any_of(result.found.begin(), result.found.end(),
                          [](const auto& found) { return found.layout.pools.has_value(); }));
}

TEST(DeploymentSearch, WorkersChangeNothing) {
  DeploymentSearchRequest request = request_of(ServingGoal::throughput);
  const DeploymentSearchResult one = search_deployments(request);
  request.workers = 4;
  const DeploymentSearchResult four = search_deployments(request);
  EXPECT_EQ(names_of(one, request), names_of(four, request));
  EXPECT_EQ(one.replayed, four.replayed);
}

}  // namespace
}  // namespace orrery::deployment_search_test
