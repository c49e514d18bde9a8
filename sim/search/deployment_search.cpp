#include "sim/search/deployment_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/search/best_first.hpp"
#include "sim/search/serving_bound.hpp"
#include "sim/search/serving_goal.hpp"
#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// The requests of a window may be a little shorter on average than all that the bound counts.
constexpr double window_margin = 1.1;

// A layout under a load. Its second objective is the time between two tokens.
struct DeploymentPoint : Scored {
  std::uint32_t load = 0;
  DeploymentFigures figures;  // Once it is replayed.

  std::string name() const { return "deployment " + std::to_string(number); }
};

// Built once and shared by all workers, which are forked from here.
struct DeploymentContext {
  DeploymentSpace space;
  std::vector<Economics> economics;                          // Places of the request.
  std::vector<std::shared_ptr<const PricedServing>> priced;  // Each layout's; null: pools.
  std::vector<std::shared_ptr<const PricedServing>> cuts;    // DeploymentSpace::cuts.
  std::vector<DeploymentPoint> points;
  std::int64_t too_slow = 0;
};

// The work of a load's requests, and the longest of them.
struct LoadWork {
  RequestWork work;
  Request longest;
};

// Of a load whose length is found: of as many requests as it may have, with their whole answers.
LoadWork work_of(const ServingLoad& load) {
  if (!load.finds_length) return {RequestWork{load.list}, longest_of(load.list)};
  ServingLoad longest = load;
  longest.traffic.requests = most_sampled;
  longest.traffic.stationary = false;
  const RequestList list = requests_of(longest);
  return {RequestWork{list}, longest_of(list)};
}

// True if two loads whose length is found draw the same prompts and answers.
bool have_equal_requests(const ServingLoad& a, const ServingLoad& b) {
  return a.finds_length && b.finds_length && a.lengths == b.lengths &&
         a.traffic.prompt == b.traffic.prompt && a.traffic.output == b.traffic.output &&
         a.traffic.prefix == b.traffic.prefix && a.traffic.seed == b.traffic.seed;
}

std::vector<LoadWork> works_of(const std::vector<ServingLoad>& loads) {
  std::vector<LoadWork> works;
  for (std::size_t l = 0; l < loads.size(); ++l)
    works.push_back(l > 0 && have_equal_requests(loads[l - 1], loads[l]) ? works.back()
                                                                         : work_of(loads[l]));
  return works;
}

Request longest_of(const std::vector<LoadWork>& works) {
  RequestList list;
  for (const LoadWork& one : works) list.requests.push_back(one.longest);
  return longest_of(list);
}

// The figure that a goal counts, a second and GPU.
double rate_of(ServingGoal goal, const DeploymentFigures& figures, std::int64_t gpus) {
  const double all = goal == ServingGoal::goodput ? figures.slo_share * figures.requests_per_s
                                                  : figures.output_tokens_per_s;
  return all / static_cast<double>(gpus);
}

void price_layouts(const DeploymentSearchRequest& request, DeploymentContext& context) {
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ServingKernels>> kernels;
  const auto price = [&](int place, const Deployment& plan) {
    const ServingPlatform& on = request.platforms[static_cast<std::size_t>(place)];
    auto& shared = kernels[{on.system_word, on.engine_word}];
    if (!shared) shared = std::make_shared<const ServingKernels>(on.system.gpu, on.engine);
    return std::make_shared<const PricedServing>(
        ServingSetup{request.model, on.system, on.engine, plan}, shared);
  };
  for (const PoolCut& cut : context.space.cuts)
    context.cuts.push_back(price(cut.platform, cut.plan));
  for (const DeploymentLayout& layout : context.space.layouts)
    context.priced.push_back(layout.pools ? nullptr : price(layout.platform, layout.plan));
}

// Lower bounds of a layout. Each of two pools has its own part of the work to do, all of it within
// the time that both take, and tokens after the first come out of the one that decodes.
class LayoutBound {
 public:
  LayoutBound(const DeploymentContext& context, const DeploymentLayout& layout,
              const std::vector<std::unique_ptr<const ServingBound>>& cuts, std::size_t place,
              std::int64_t longest_prompt)
      : pools_{layout.pools} {
    if (pools_) {
      prefill_ = cuts[static_cast<std::size_t>(layout.prefill)].get();
      decode_ = cuts[static_cast<std::size_t>(layout.decode)].get();
    } else {
      alone_.emplace(*context.priced[place], longest_prompt);
      decode_ = &*alone_;
    }
  }

  Seconds least_gap() const { return decode_->least_gap(); }
  Seconds least_span(const RequestWork& work, const ServingLoad& load) const {
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

void bound_points(const DeploymentSearchRequest& request, const std::vector<LoadWork>& works,
                  DeploymentContext& context, DeploymentSearchProgress& progress,
                  const std::function<void(const DeploymentSearchProgress&)>& watch) {
  std::int64_t longest_prompt = 1;
  for (const LoadWork& one : works)
    longest_prompt = std::max(longest_prompt, one.work.longest_prompt);
  std::vector<std::unique_ptr<const ServingBound>> cuts;
  for (const auto& priced : context.cuts)
    cuts.push_back(std::make_unique<const ServingBound>(*priced, longest_prompt));
  for (std::size_t i = 0; i < context.priced.size(); ++i) {
    const DeploymentLayout& layout = context.space.layouts[i];
    const Economics& economics = context.economics[static_cast<std::size_t>(layout.platform)];
    const LayoutBound bound{context, layout, cuts, i, longest_prompt};
    const auto gpus = static_cast<double>(layout.gpus());
    for (std::size_t l = 0; l < works.size(); ++l) {
      const ServingLoad& load = request.loads[l];
      const RequestWork& work = works[l].work;
      // Answers of one token have nothing between tokens.
      const bool gaps = work.outputs > work.requests;
      const Seconds between = gaps ? bound.least_gap() : Seconds{};
      if (load.replay.slo && between > load.replay.slo->tpot && !work.one_token) {
        ++context.too_slow;
        continue;
      }
      const double amount = request.goal == ServingGoal::goodput ? work.requests : work.outputs;
      DeploymentPoint& point = context.points.emplace_back();
      point.load = static_cast<std::uint32_t>(l);
      point.layout = static_cast<std::int32_t>(i);
      point.number = static_cast<std::int64_t>(i * works.size() + l);
      point.second = between.si();
      const double margin = load.part == MeasuredPart::steady ? window_margin : 1.0;
      point.score = serving_score(
          request.goal, margin * amount / bound.least_span(work, load).si() / gpus, economics);
    }
    ++progress.bounded;
    if (watch) watch(progress);
    if (Interruption::requested()) return;
  }
}

DeploymentContext prepare(const DeploymentSearchRequest& request,
                          DeploymentSearchProgress& progress,
                          const std::function<void(const DeploymentSearchProgress&)>& watch) {
  DeploymentContext context;
  const std::vector<LoadWork> works = works_of(request.loads);
  context.space = deployment_space(request.model, request.platforms, request.fixed,
                                   longest_of(works), request.pools);
  progress.layouts = static_cast<std::int64_t>(context.space.layouts.size());
  std::vector<PricedMachine> machines;
  for (const ServingPlatform& on : request.platforms) machines.emplace_back(on.system);
  for (const ServingPlatform& on : request.platforms) {
    context.economics.push_back(read_economics(on.system, request.economics, machines));
    need_prices(request.goal, context.economics.back(), on.system.gpu.name);
  }
  price_layouts(request, context);
  bound_points(request, works, context, progress, watch);
  std::sort(context.points.begin(), context.points.end(),
            [](const auto& a, const auto& b) { return a.ranks_before(b); });
  progress.points = static_cast<std::int64_t>(context.points.size());
  return context;
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

DeploymentFigures replay(const DeploymentSearchRequest& request, const DeploymentContext& context,
                         std::size_t place, const ServingLoad& load) {
  const DeploymentLayout& layout = context.space.layouts[place];
  const auto serve = [&](const ServingLoad& requested) {
    if (!layout.pools) return serve_requests(*context.priced[place], requested, {"", ""});
    return serve_pools({*layout.pools, context.cuts[static_cast<std::size_t>(layout.prefill)],
                        context.cuts[static_cast<std::size_t>(layout.decode)]},
                       requested);
  };
  const int replicas = layout.pools ? 0 : layout.plan.replicas;
  if (request.goal != ServingGoal::goodput)
    return figures_of(serve_until_steady(serve, load, replicas));
  const Goodput goodput = largest_rate(serve, load, replicas);
  DeploymentFigures figures;
  if (goodput.at_rate) figures = figures_of(*goodput.at_rate);
  figures.rate = goodput.rate;
  return figures;
}

// The score is infinite where too few requests keep to the limits, or the queue grew.
DeploymentPoint replayed(const DeploymentSearchRequest& request, const DeploymentContext& context,
                         DeploymentPoint point) {
  const auto place = static_cast<std::size_t>(point.layout);
  const ServingLoad& load = request.loads[point.load];
  const DeploymentLayout& layout = context.space.layouts[place];
  const DeploymentFigures& figures = point.figures = replay(request, context, place, load);
  const bool misses = load.replay.slo && figures.slo_share < load.replay.slo->share;
  point.score = figures.saturated || misses
                    ? never
                    : serving_score(request.goal, rate_of(request.goal, figures, layout.gpus()),
                                    context.economics[static_cast<std::size_t>(layout.platform)]);
  point.second = figures.interactivity > 0.0 ? 1.0 / figures.interactivity : 0.0;
  return point;
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
  if (result.saturated > 0) parts.push_back(grouped(result.saturated) + " are overloaded");
  std::string reasons;
  for (const std::string& part : parts) reasons += (reasons.empty() ? "" : ", ") + part;
  fail_infeasible({}, "no deployment will do: " + reasons,
                  "relax --slo, ask for less at once, or use more or faster GPUs");
}

// Their figures differ by less than such pairs were off.
bool is_tie(const FoundDeployment& one, const FoundDeployment& best,
            const DeploymentSearchRequest& request) {
  const ServingPlatform& a = request.platforms[static_cast<std::size_t>(one.layout.platform)];
  const ServingPlatform& b = request.platforms[static_cast<std::size_t>(best.layout.platform)];
  const bool alike = a.system_word == b.system_word && a.engine_word == b.engine_word;
  return std::abs(std::log(one.figure / best.figure)) <= serving_pair_error(alike, request.model);
}

}  // namespace

DeploymentSearchResult search_deployments(
    const DeploymentSearchRequest& request,
    const std::function<void(const DeploymentSearchProgress&)>& watch) {
  DeploymentSearchProgress progress;
  const DeploymentContext context = prepare(request, progress, watch);
  if (context.space.layouts.empty() && !Interruption::requested()) fail_empty(context.space);
  DeploymentSearchResult result;
  result.too_slow = context.too_slow;
  result.layouts = static_cast<std::int64_t>(context.space.layouts.size());
  result.points = result.layouts * std::ssize(request.loads);
  const auto layout_of = [&](const DeploymentPoint& point) -> const DeploymentLayout& {
    return context.space.layouts[static_cast<std::size_t>(point.layout)];
  };

  BestFirstSearch<DeploymentPoint> search{context.points, request.list};
  search.run(
      request.workers,
      [&](const DeploymentPoint& point, const auto&) {
        return std::optional{replayed(request, context, point)};
      },
      [&](const DeploymentPoint& point, const DeploymentPoint&) {
        progress.done = search.done();
        progress.replayed = search.evaluated();
        result.saturated += point.figures.saturated ? 1 : 0;
        result.missed += point.score == never && !point.figures.saturated ? 1 : 0;
        if (point.score < never)
          result.seen.emplace_back(
              point.figures.interactivity,
              point.figures.output_tokens_per_s / static_cast<double>(layout_of(point).gpus()));
        if (watch) watch(progress);
      });
  result.replayed = search.evaluated();
  result.interrupted = Interruption::requested();
  result.bounded_out = result.points - result.too_slow - result.replayed;

  for (const DeploymentPoint& point : search.ranked()) {
    const DeploymentLayout& layout = layout_of(point);
    const DeploymentFigures& figures = point.figures;
    const Economics& economics = context.economics[static_cast<std::size_t>(layout.platform)];
    const std::int64_t gpus = layout.gpus();
    result.found.push_back(
        {layout, point.load, figures,
         goal_figure(request.goal, rate_of(request.goal, figures, gpus), economics),
         token_cost(figures.output_tokens_per_s, static_cast<double>(gpus), economics)});
  }
  if (!request.list.is_front())
    for (FoundDeployment& one : result.found) one.tie = is_tie(one, result.found.front(), request);
  result.space = context.space;
  result.space.layouts.clear();
  result.space.cuts.clear();
  if (result.found.empty() && !result.interrupted) fail_missed(result);
  return result;
}

}  // namespace orrery
