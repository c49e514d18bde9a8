#include "sim/search/deployment_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/search/serving_bound.hpp"
#include "sim/search/serving_goal.hpp"
#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// A layout under a load, and what it cannot beat.
struct Point {
  DeploymentStanding bound;
  std::size_t load = 0;
};

// What is built once and shared by all workers, which are forked from here.
struct Ground {
  DeploymentSpace space;
  std::vector<Economics> economics;                          // By place in the request.
  std::vector<std::shared_ptr<const PricedServing>> priced;  // By layout; null: it has pools.
  std::vector<std::shared_ptr<const PricedServing>> cuts;    // By DeploymentSpace::cuts.
  std::vector<Point> points;
  std::int64_t too_slow = 0;
};

Request longest_request(const std::vector<ServingLoad>& loads) {
  RequestList longest;
  for (const ServingLoad& load : loads) longest.requests.push_back(longest_of(load.list));
  return longest_of(longest);
}

// The figure that a goal counts, a second and GPU.
double rate_of(ServingGoal goal, const DeploymentFigures& figures, std::int64_t gpus) {
  const double all = goal == ServingGoal::goodput ? figures.slo_share * figures.requests_per_s
                                                  : figures.output_tokens_per_s;
  return all / static_cast<double>(gpus);
}

void price_layouts(const DeploymentSearchRequest& request, Ground& ground) {
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ServingKernels>> kernels;
  const auto price = [&](int place, const Deployment& plan) {
    const ServingGround& on = request.grounds[static_cast<std::size_t>(place)];
    auto& shared = kernels[{on.system_word, on.engine_word}];
    if (!shared) shared = std::make_shared<const ServingKernels>(on.system.gpu, on.engine);
    return std::make_shared<const PricedServing>(
        ServingSetup{request.model, on.system, on.engine, plan}, shared);
  };
  for (const PoolCut& cut : ground.space.cuts) ground.cuts.push_back(price(cut.ground, cut.plan));
  for (const DeploymentLayout& layout : ground.space.layouts)
    ground.priced.push_back(layout.pools ? nullptr : price(layout.ground, layout.plan));
}

// What a layout cannot beat: of pools each has its own part of the work to do, all of it within the
// time that both take, and tokens after the first come out of the one that decodes.
class LayoutBound {
 public:
  LayoutBound(const Ground& ground, const DeploymentLayout& layout,
              const std::vector<std::unique_ptr<const ServingBound>>& cuts, std::size_t place,
              std::int64_t longest_prompt)
      : pools_{layout.pools} {
    if (pools_) {
      prefill_ = cuts[static_cast<std::size_t>(layout.prefill)].get();
      decode_ = cuts[static_cast<std::size_t>(layout.decode)].get();
    } else {
      alone_.emplace(*ground.priced[place], longest_prompt);
      decode_ = &*alone_;
    }
  }

  Seconds least_gap() const { return decode_->least_gap(); }
  Seconds least_span(const AskedWork& work, const ServingLoad& load) const {
    if (!pools_) return decode_->least_span(work, load);
    return std::max(
        prefill_->least_span_of_pool(work.prompts_alone(), load, pools_->prefill.replicas),
        decode_->least_span_of_pool(work.answers_alone(), load, pools_->decode.replicas));
  }

 private:
  const std::optional<PoolsPlan>& pools_;
  std::optional<ServingBound> alone_;
  const ServingBound* prefill_ = nullptr;
  const ServingBound* decode_ = nullptr;
};

void bound_points(const DeploymentSearchRequest& request, Ground& ground,
                  DeploymentSearchProgress& progress,
                  const std::function<void(const DeploymentSearchProgress&)>& watch) {
  std::vector<AskedWork> works;
  std::int64_t longest_prompt = 1;
  for (const ServingLoad& load : request.loads) {
    works.emplace_back(load.list);
    longest_prompt = std::max(longest_prompt, works.back().longest_prompt);
  }
  std::vector<std::unique_ptr<const ServingBound>> cuts;
  for (const auto& priced : ground.cuts)
    cuts.push_back(std::make_unique<const ServingBound>(*priced, longest_prompt));
  for (std::size_t i = 0; i < ground.priced.size(); ++i) {
    const DeploymentLayout& layout = ground.space.layouts[i];
    const Economics& economics = ground.economics[static_cast<std::size_t>(layout.ground)];
    const LayoutBound bound{ground, layout, cuts, i, longest_prompt};
    const auto gpus = static_cast<double>(layout.gpus());
    for (std::size_t l = 0; l < works.size(); ++l) {
      const ServingLoad& load = request.loads[l];
      // Answers of one token have nothing between tokens.
      const bool gaps = works[l].outputs > works[l].requests;
      const Seconds between = gaps ? bound.least_gap() : Seconds{};
      Point point;
      point.load = l;
      point.bound.layout = static_cast<int>(i);
      point.bound.point = static_cast<std::int64_t>(i * works.size() + l);
      point.bound.between = between.si();
      const std::optional<Slo>& slo = load.replay.slo;
      const bool slow = slo && between > slo->tpot && !works[l].one_token;
      const double amount =
          request.goal == ServingGoal::goodput ? works[l].requests : works[l].outputs;
      point.bound.score = serving_score(
          request.goal, amount / bound.least_span(works[l], load).si() / gpus, economics);
      if (slow)
        ++ground.too_slow;
      else
        ground.points.push_back(point);
    }
    ++progress.bounded;
    if (watch) watch(progress);
    if (Interruption::asked()) return;
  }
}

Ground prepare(const DeploymentSearchRequest& request, DeploymentSearchProgress& progress,
               const std::function<void(const DeploymentSearchProgress&)>& watch) {
  Ground ground;
  ground.space = deployment_space(request.model, request.grounds, request.fixed,
                                  longest_request(request.loads), request.pools);
  progress.layouts = static_cast<std::int64_t>(ground.space.layouts.size());
  for (const ServingGround& on : request.grounds) {
    ground.economics.push_back(read_economics(on.system.gpu.name, request.economics));
    need_prices(request.goal, ground.economics.back(), on.system.gpu.name);
  }
  price_layouts(request, ground);
  bound_points(request, ground, progress, watch);
  std::sort(ground.points.begin(), ground.points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.bound.score, a.bound.between, a.bound.point) <
           std::tie(b.bound.score, b.bound.between, b.bound.point);
  });
  progress.points = static_cast<std::int64_t>(ground.points.size());
  return ground;
}

DeploymentFigures figures_of(const ServingRun& run) {
  const ReplayCounts& counts = run.replay.counts;
  DeploymentFigures figures;
  figures.output_tokens_per_s = run.output_tokens_per_s();
  figures.requests_per_s = run.requests_per_s();
  figures.interactivity = run.interactivity();
  figures.ttft_p50_s = counts.ttft.percentile(0.5).si();
  figures.ttft_p99_s = counts.ttft.percentile(0.99).si();
  figures.tpot_p50_s = counts.tpot.percentile(0.5).si();
  figures.tpot_p99_s = counts.tpot.percentile(0.99).si();
  figures.slo_share = run.slo_share();
  figures.kv_peak = counts.totals.kv_peak;
  figures.preemptions = counts.totals.preemptions;
  figures.saturated = run.saturated;
  return figures;
}

DeploymentFigures replay(const DeploymentSearchRequest& request, const Ground& ground,
                         std::size_t place, const ServingLoad& load) {
  const DeploymentLayout& layout = ground.space.layouts[place];
  const auto serve = [&](const ServingLoad& asked) {
    if (!layout.pools) return serve_requests(*ground.priced[place], asked, {"", ""});
    return serve_pools({*layout.pools, ground.cuts[static_cast<std::size_t>(layout.prefill)],
                        ground.cuts[static_cast<std::size_t>(layout.decode)]},
                       asked);
  };
  if (request.goal != ServingGoal::goodput) return figures_of(serve(load));
  const Goodput goodput = largest_rate(serve, load);
  DeploymentFigures figures;
  if (goodput.at_rate) figures = figures_of(*goodput.at_rate);
  figures.rate = goodput.rate;
  return figures;
}

// Infinite where it must not lead: too few keep to the limits, or the queue grew.
double score_of(const DeploymentSearchRequest& request, const Ground& ground, const Point& point,
                const DeploymentFigures& figures) {
  const DeploymentLayout& layout =
      ground.space.layouts[static_cast<std::size_t>(point.bound.layout)];
  const std::optional<Slo>& slo = request.loads[point.load].replay.slo;
  if (figures.saturated || (slo && figures.slo_share < slo->share)) return never;
  return serving_score(request.goal, rate_of(request.goal, figures, layout.gpus()),
                       ground.economics[static_cast<std::size_t>(layout.ground)]);
}

[[noreturn]] void fail_empty(const DeploymentSpace& space) {
  std::string reasons;
  for (const auto& [key, refused] : space.refused)
    reasons += (reasons.empty() ? "" : "; ") + grouped(refused.count) + " by " + key + " (" +
               refused.example + ")";
  fail_infeasible({},
                  "none of the " + grouped(space.combinations) + " deployments can be: " + reasons,
                  "use more GPUs, GPUs with more memory, or fewer --fix");
}

[[noreturn]] void fail_missed(const DeploymentSearchResult& result) {
  std::vector<std::string> parts;
  if (result.too_slow > 0)
    parts.push_back(grouped(result.too_slow) + " are too slow for a token of TPOT");
  if (result.missed > 0)
    parts.push_back("of " + grouped(result.missed) + " too few requests keep to the limits");
  if (result.saturated > 0) parts.push_back(grouped(result.saturated) + " are saturated");
  std::string reasons;
  for (const std::string& part : parts) reasons += (reasons.empty() ? "" : ", ") + part;
  fail_infeasible({}, "no deployment will do: " + reasons,
                  "relax --slo, ask for less at once, or use more or faster GPUs");
}

// Their figures differ by less than such pairs were off.
bool is_tie(const FoundDeployment& one, const FoundDeployment& best,
            const DeploymentSearchRequest& request) {
  const ServingGround& a = request.grounds[static_cast<std::size_t>(one.layout.ground)];
  const ServingGround& b = request.grounds[static_cast<std::size_t>(best.layout.ground)];
  const bool alike = a.system_word == b.system_word && a.engine_word == b.engine_word;
  return std::abs(std::log(one.figure / best.figure)) <= serving_pair_error(alike, request.model);
}

static_assert(std::is_trivially_copyable_v<DeploymentFigures>);

}  // namespace

DeploymentSearchResult search_deployments(
    const DeploymentSearchRequest& request,
    const std::function<void(const DeploymentSearchProgress&)>& watch) {
  DeploymentSearchProgress progress;
  const Ground ground = prepare(request, progress, watch);
  if (ground.space.layouts.empty() && !Interruption::asked()) fail_empty(ground.space);
  DeploymentSearchResult result;
  result.too_slow = ground.too_slow;
  result.layouts = static_cast<std::int64_t>(ground.space.layouts.size());
  result.points = result.layouts * static_cast<std::int64_t>(request.loads.size());

  using Kind = DeploymentLeaders::Kind;
  DeploymentLeaders leaders{request.pareto         ? Kind::front
                            : request.all_settings ? Kind::top
                                                   : Kind::layouts,
                            request.top};
  std::map<std::int64_t, std::pair<const Point*, DeploymentFigures>> known;  // Of leaders, once.
  std::size_t next = 0;
  run_tasks(
      request.workers, {},
      [&]() -> std::optional<std::int64_t> {
        // What is passed over here is passed over below as well: leaders only get better.
        while (next < ground.points.size() && !leaders.may_take(ground.points[next].bound)) ++next;
        return next < ground.points.size() ? std::optional{static_cast<std::int64_t>(next++)}
                                           : std::nullopt;
      },
      [&](std::int64_t task) {
        const Point& point = ground.points[static_cast<std::size_t>(task)];
        const DeploymentFigures figures =
            replay(request, ground, static_cast<std::size_t>(point.bound.layout),
                   request.loads[point.load]);
        Answer answer;
        answer.bytes.assign(reinterpret_cast<const char*>(&figures), sizeof figures);
        return answer;
      },
      [&](const Outcome& outcome) {
        const Point& point = ground.points[static_cast<std::size_t>(outcome.task)];
        progress.done = outcome.task + 1;
        // Workers are ahead: this one was asked for before the leaders were known.
        if (!leaders.may_take(point.bound)) return true;
        if (!outcome.failure.empty())
          throw std::runtime_error{"a worker of the search at deployment " +
                                   std::to_string(point.bound.point) + ": " + outcome.failure};
        DeploymentFigures figures;
        std::memcpy(&figures, outcome.bytes.data(), sizeof figures);
        progress.replayed = ++result.replayed;
        DeploymentStanding standing = point.bound;
        standing.score = score_of(request, ground, point, figures);
        standing.between = figures.interactivity > 0.0 ? 1.0 / figures.interactivity : 0.0;
        result.saturated += figures.saturated ? 1 : 0;
        result.missed += standing.score == never && !figures.saturated ? 1 : 0;
        leaders.offer(standing);
        if (standing.score < never)
          result.seen.emplace_back(
              figures.interactivity,
              figures.output_tokens_per_s /
                  static_cast<double>(
                      ground.space.layouts[static_cast<std::size_t>(point.bound.layout)].gpus()));
        known[standing.point] = {&point, figures};
        if (watch) watch(progress);
        return true;
      });
  result.interrupted = Interruption::asked();
  result.bounded_out = result.points - result.too_slow - result.replayed;

  for (const DeploymentStanding& leader : leaders.ranked()) {
    const auto& [point, figures] = known.at(leader.point);
    const DeploymentLayout& layout = ground.space.layouts[static_cast<std::size_t>(leader.layout)];
    const Economics& economics = ground.economics[static_cast<std::size_t>(layout.ground)];
    const std::int64_t gpus = layout.gpus();
    result.found.push_back(
        {layout, point->load, figures,
         goal_figure(request.goal, rate_of(request.goal, figures, gpus), economics),
         token_cost(figures.output_tokens_per_s, static_cast<double>(gpus), economics)});
  }
  if (!request.pareto)
    for (FoundDeployment& one : result.found) one.tie = is_tie(one, result.found.front(), request);
  result.space = ground.space;
  result.space.layouts.clear();
  result.space.cuts.clear();
  if (result.found.empty() && !result.interrupted) fail_missed(result);
  return result;
}

}  // namespace orrery
