#include "sim/training/routing_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery {
namespace {

constexpr std::size_t hottest_shown = 5;

std::vector<double> rows_of_ranks(const RoutedBatch& batch, int ranks) {
  std::vector<double> rows;
  for (int r = 0; r < ranks; ++r) {
    const auto own = batch.computed_by(r);
    rows.push_back(static_cast<double>(std::accumulate(own.begin(), own.end(), std::int64_t{0})));
  }
  return rows;
}

// The Gini coefficient, half of the mean difference between two ranks over their mean: the sum over
// sorted x of (2 i - n - 1) x_i / (n sum x).
double gini(std::vector<double> rows) {
  std::sort(rows.begin(), rows.end());
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  const auto n = static_cast<double>(rows.size());
  double weighted = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    weighted += (2.0 * static_cast<double>(i + 1) - n - 1.0) * rows[i];
  return sum > 0.0 ? weighted / (n * sum) : 0.0;
}

std::vector<int> numbers_of_expert_layers(const Scenario& scenario) {
  std::vector<int> numbers;
  for (int l = 0; l < scenario.model.layers; ++l)
    if (scenario.kind_of(l).has_experts) numbers.push_back(l);
  return numbers;
}

void look_at_loads(const Scenario& scenario, const RoutedLoads& loads, RoutingReport& report) {
  const RoutingShape& shape = loads.shape();
  const std::vector<int> layers = numbers_of_expert_layers(scenario);
  const auto experts = static_cast<std::size_t>(shape.experts.count);
  const double batches = static_cast<double>(loads.groups() * loads.micro_batches());
  report.max_over_mean = report.gini = 0.0;
  double dropped = 0.0;
  for (int layer = 0; layer < loads.layers(); ++layer) {
    std::vector<double> of_expert(experts, 0.0);
    for (int g = 0; g < loads.groups(); ++g)
      for (int m = 0; m < loads.micro_batches(); ++m) {
        const RoutedBatch& batch = loads.batch(g, m, layer);
        const std::vector<double> rows = rows_of_ranks(batch, shape.ranks);
        const double most = *std::max_element(rows.begin(), rows.end()) / report.mean_rows;
        report.worst_over_mean = std::max(report.worst_over_mean, most);
        report.max_over_mean += most / (batches * loads.layers());
        report.gini += gini(rows) / (batches * loads.layers());
        dropped += static_cast<double>(batch.total_dropped());
        for (std::size_t slot = 0; slot < batch.kept.size(); ++slot)
          of_expert[static_cast<std::size_t>(loads.expert_of(layer, slot))] +=
              static_cast<double>(batch.kept[slot]);
      }
    const auto hot = std::max_element(of_expert.begin(), of_expert.end());
    const double sum = std::accumulate(of_expert.begin(), of_expert.end(), 0.0);
    if (sum > 0.0)
      report.hottest.push_back({layers[static_cast<std::size_t>(layer)],
                                static_cast<int>(hot - of_expert.begin()),
                                *hot / sum * static_cast<double>(experts)});
  }
  const double looked_at = batches * loads.layers();
  report.dropped_share = dropped / (looked_at * static_cast<double>(shape.copies()));
  report.dropped_a_step = std::llround(dropped / batches * scenario.plan.microbatches *
                                       scenario.plan.expert_data_ranks());
  std::stable_sort(report.hottest.begin(), report.hottest.end(),
                   [](const auto& a, const auto& b) { return a.over_mean > b.over_mean; });
  report.hottest.resize(std::min(hottest_shown, report.hottest.size()));
}

// Sums over the passes of the critical stage, and the spread between its micro-batches.
void look_at_passes(const Scenario& scenario, const RoutedLoads& loads, const TrainingStep& step,
                    const RankClass& rep, RoutingReport& report) {
  const Plan& plan = scenario.plan;
  const int draw = step.classes.placement().draw(rep.rank);
  const auto expert = static_cast<std::size_t>(GroupKind::expert);
  std::vector<double> times;
  for (int m = 0; m < plan.microbatches; ++m) {
    Seconds time;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      if (!plan.passes(m, chunk)) continue;
      const StageCost& stage = step.cost->stage(plan.virtual_stage(rep.at.stage, chunk), draw, m);
      for (const PassCost* pass : {&stage.forward, &stage.backward}) {
        report.scale_up_bytes += pass->scale_up_bytes[expert];
        report.network_bytes += pass->network_bytes[expert];
        time += pass->time();
      }
    }
    if (m < loads.micro_batches()) times.push_back(time.si());
  }
  if (!loads.sampled() || times.size() < 2) return;
  const auto n = static_cast<double>(times.size());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  double squares = 0.0;
  for (double time : times) squares += (time - mean) * (time - mean);
  report.standard_error = Seconds{plan.microbatches * std::sqrt(squares / (n - 1.0) / n)};
}

}  // namespace

RoutingLoss lost_to_routing(const Plan& plan, const TrainingStep& step, int rep_index) {
  RoutingLoss lost;
  const RankClass& rep = step.classes.reps()[static_cast<std::size_t>(rep_index)];
  for (int m = 0; m < plan.microbatches; ++m)
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      if (!plan.passes(m, chunk)) continue;
      const StageCost& stage = step.cost->stage(plan.virtual_stage(rep.at.stage, chunk),
                                                step.classes.placement().draw(rep.rank), m);
      lost.add(stage.forward.lost);
      lost.add(stage.backward.lost);
    }
  return lost;
}

RoutingReport report_routing(const Scenario& scenario, const RoutedLoads& loads,
                             const TrainingStep& step, int critical_rep) {
  RoutingReport report;
  const RoutingShape& shape = loads.shape();
  report.even = loads.even();
  report.groups = loads.groups();
  report.micro_batches = loads.micro_batches();
  report.mean_rows = static_cast<double>(shape.tokens * shape.experts.per_token);
  if (!report.even) look_at_loads(scenario, loads, report);
  const RankClass& rep = step.classes.reps()[static_cast<std::size_t>(critical_rep)];
  look_at_passes(scenario, loads, step, rep, report);
  report.lost = lost_to_routing(scenario.plan, step, critical_rep);
  return report;
}

}  // namespace orrery
