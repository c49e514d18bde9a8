#include "sim/search/row_search.hpp"

#include <algorithm>
#include <limits>
#include <list>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/search/best_plan.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

std::vector<BatchLevel> usual_batch_levels(std::int64_t most, int gpus) {
  std::vector<BatchLevel> levels;
  for (const std::int64_t limit : {2 * most, most, most / 2, most / 4}) {
    std::set<std::int64_t> batches;
    for (int degree = 1; degree <= 16 && gpus % degree == 0; degree *= 2) {
      const std::int64_t replicas = gpus / degree;
      const std::int64_t batch = limit / replicas * replicas;
      if (batch > limit / 2) batches.insert(batch);
    }
    if (!batches.empty()) levels.push_back({limit, {batches.begin(), batches.end()}, limit > most});
  }
  return levels;
}

std::vector<BatchLevel> batch_levels_of(const std::vector<std::int64_t>& batches) {
  std::vector<std::int64_t> falling = batches;
  std::sort(falling.rbegin(), falling.rend());
  std::vector<BatchLevel> levels{{2 * falling.front(), {2 * falling.front()}, true}};
  for (const std::int64_t batch : falling) levels.push_back({batch, {batch}, false});
  return levels;
}

namespace {

// A level's spaces, and the finder that goes through them.
struct LevelSearch {
  std::list<PlanSpace> spaces;  // A list, as the finder points to them.
  std::optional<BestPlanFinder> finder;
  std::size_t answer = 0;  // Index among the row's levels.
};

std::vector<BatchLevel> levels_of(const PurchaseRequest& request, int gpus) {
  return request.batches.empty() ? usual_batch_levels(request.most_batch, gpus)
                                 : batch_levels_of(request.batches);
}

std::string why_none(const PurchaseRequest& request, const System& system, const NoPlan& none) {
  if (none.smallest.empty()) return none.why_none_divides();
  return "none fits: the smallest (" + none.smallest + ") needs " +
         gigabytes_text(Bytes{none.least_memory}) + " a GPU, and may fill " +
         gigabytes_text(request.max_memory * system.gpu.memory);
}

FailingRun failing_run(const PurchaseRequest& request, const Scenario& scenario, Seconds step,
                       const Economics& economics) {
  RunQuestion question;
  question.tokens = request.tokens;
  question.reliability = *request.reliability;
  const TrainingRun run = sampled_run(scenario, step, question, economics);
  return {run.figures.days, run.bill, run.spares.kept, run.spares.kept * run.prepared.gpus_of_unit};
}

}  // namespace

RowAnswer search_row(const PurchaseRequest& request, const System& system, int gpus,
                     SystemContext& context, const Economics& economics) {
  RowAnswer answer;
  const Objective objective{Goal::training_time, {}};
  const PlanScorer scorer{objective, nullptr, context.estimates, context.passes};
  std::list<LevelSearch> searches;
  LevelSearch* best = nullptr;
  for (const BatchLevel& level : levels_of(request, gpus)) {
    LevelSearch& search = searches.emplace_back();
    std::vector<const PlanSpace*> spaces;
    for (const std::int64_t batch : level.batches)
      spaces.push_back(
          &search.spaces.emplace_back(request.model, system, gpus, batch, request.fixed));
    BestPlanSearch found;
    for (const Evenness least : {Evenness::all_groups, Evenness::inside_passes, Evenness::none}) {
      search.finder.emplace(spaces, scorer, least);
      found = search.finder->find(request.max_memory);
      if (found.best || found.uneven == 0) break;
    }
    answer.groups += found.groups;
    answer.uneven += found.uneven;
    answer.simulated += found.simulated;
    if (!found.best) {
      searches.pop_back();
      if (!level.beyond && answer.refused.empty())
        answer.refused = why_none(request, system, found.none);
      continue;
    }
    const Candidate& plan = *found.best;
    const PlanSpace& space = *spaces[static_cast<std::size_t>(plan.space)];
    search.answer = answer.levels.size();
    answer.levels.push_back(
        {plan.choice, level.limit, space.gbs(), plan.step_s, plan.score, level.beyond});
    if (!level.beyond && (!best || plan.score <= answer.levels[best->answer].score)) {
      best = &search;
      while (searches.size() > 1) searches.pop_front();  // They are large.
    } else {
      searches.pop_back();
    }
  }
  if (!best) {
    if (answer.refused.empty())
      answer.refused = "no batch divides among the replicas of " + grouped(gpus) + " GPUs";
    return answer;
  }
  answer.refused.clear();
  answer.best = best->answer;
  const RowAnswer::Level& chosen = answer.levels[answer.best];
  const BestPlanSearch all_fit = best->finder->find(std::numeric_limits<double>::infinity());
  answer.simulated += all_fit.simulated;
  answer.score_if_all_fitted = all_fit.best->score;  // Those that fit are among them.
  if (request.reliability) {
    const auto space = std::find_if(best->spaces.begin(), best->spaces.end(),
                                    [&](const PlanSpace& of) { return of.gbs() == chosen.gbs; });
    const Scenario scenario = space->scenario(chosen.choice);
    const Seconds step = estimate(scenario, context.estimates).result.step_time;
    answer.failing = failing_run(request, scenario, step, economics);
  }
  return answer;
}

std::string packed(const RowAnswer& answer) {
  AnswerWriter writer;
  writer.put_text(answer.refused);
  writer.put(answer.levels.size());
  for (const RowAnswer::Level& level : answer.levels) writer.put(level);
  writer.put(answer.best);
  writer.put(answer.score_if_all_fitted);
  writer.put(answer.failing.has_value());
  if (answer.failing) writer.put(*answer.failing);
  writer.put(answer.groups);
  writer.put(answer.uneven);
  writer.put(answer.simulated);
  return writer.take();
}

RowAnswer unpacked_row(const std::string& bytes) {
  AnswerReader reader{bytes};
  RowAnswer answer;
  answer.refused = reader.get_text();
  answer.levels.resize(reader.get<std::size_t>());
  for (RowAnswer::Level& level : answer.levels) level = reader.get<RowAnswer::Level>();
  answer.best = reader.get<std::size_t>();
  answer.score_if_all_fitted = reader.get<double>();
  if (reader.get<bool>()) answer.failing = reader.get<FailingRun>();
  answer.groups = reader.get<std::int64_t>();
  answer.uneven = reader.get<std::int64_t>();
  answer.simulated = reader.get<std::int64_t>();
  return answer;
}

}  // namespace orrery
