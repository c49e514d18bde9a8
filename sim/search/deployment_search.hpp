#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/best_candidates.hpp"
#include "sim/search/deployment_space.hpp"
#include "sim/search/serving_goal.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {

struct DeploymentSearchRequest {
  Model model;
  std::vector<ServingPlatform> platforms;  ///< Each system with each engine and number of GPUs.
  std::vector<Fixed> fixed;
  /// Each deployment is replayed under each of them. All have the limits, if any.
  /// The goal goodput, which searches the rate, has one.
  std::vector<ServingLoad> loads;
  ServingGoal goal = ServingGoal::throughput;
  std::string economics;  ///< A file over the catalog's prices; "" for none.
  BestList list;  ///< A layout counts under each load; a front is of score and interactivity.
  PoolChoice pools = PoolChoice::none;
  int workers = 1;
};

/// Figures of a deployment's replay under a load.
struct DeploymentFigures {
  double output_tokens_per_s = 0.0, requests_per_s = 0.0;  ///< All GPUs together.
  double interactivity = 0.0;                              ///< 1 / median TPOT.
  double ttft_p50_s = 0.0, ttft_p99_s = 0.0, tpot_p50_s = 0.0, tpot_p99_s = 0.0;
  double slo_share = 0.0;  ///< Share of the requests that keep to the limits, if there are any.
  double kv_peak = 0.0;    ///< Largest share of the KV cache in use.
  double rate = 0.0;       ///< The largest rate that keeps to the limits, for goodput.
  std::int64_t preemptions = 0;
  bool saturated = false;
};

/// A deployment with its place in the ranking.
struct FoundDeployment {
  DeploymentLayout layout;
  std::size_t load = 0;
  DeploymentFigures figures;
  double figure = 0.0;  ///< The goal's (goal_figure()).
  TokenCost cost;
  bool tie = false;  ///< May in truth be as good as the first (serving_pair_error()).
};

struct DeploymentSearchResult {
  std::vector<FoundDeployment> found;  ///< Best first; of a front the one with the best score.
  DeploymentSpace space;               ///< Without layouts.
  /// Interactivity and tokens a second and GPU of all that were replayed and could be listed.
  std::vector<std::pair<double, double>> seen;
  std::int64_t layouts = 0;  ///< Layouts that fit.
  std::int64_t points = 0;   ///< Each under each load.
  std::int64_t replayed = 0;
  std::int64_t bounded_out = 0;  ///< Their bounds prove that they cannot be listed.
  std::int64_t too_slow = 0;     ///< Points whose iteration takes longer than the limit.
  std::int64_t missed = 0;       ///< Replayed, and too few requests kept to the limits.
  bool interrupted = false;      ///< Ctrl-C ended the search: others may be better.
  std::int64_t saturated = 0;    ///< Replayed, and their queue grew through the run.
};

struct DeploymentSearchProgress {
  std::int64_t layouts = 0, bounded = 0;
  std::int64_t points = 0, done = 0, replayed = 0;
};

/// The best deployments of all that divide and fit: what replaying every one of them would find.
/// They are replayed in the order of their bounds (ServingBound) until no other can enter the list.
/// `workers` changes nothing but the time. Errors (infeasible): none fits, or none keeps to the
/// limits, with what stands against most of them.
DeploymentSearchResult search_deployments(
    const DeploymentSearchRequest& request,
    const std::function<void(const DeploymentSearchProgress&)>& watch = {});

}  // namespace orrery
