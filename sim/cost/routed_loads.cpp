#include "sim/cost/routed_loads.hpp"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

constexpr int most_micro_batches = 8;
constexpr int most_groups = 4;

int layers_with_experts(const Model& model) {
  return static_cast<int>(
      std::count(model.layer_has_experts.begin(), model.layer_has_experts.end(), true));
}

// A layer's collectives make tensor and context ranks wait for each other. As long as they lie in
// one expert group, whose members wait for each other anyway, groups stay independent.
void refuse_groups_that_wait_for_each_other(const Plan& plan, const Place& at) {
  if (plan.ep * plan.etp % (plan.tp * plan.cp) == 0) return;
  const std::string together = std::to_string(plan.tp * plan.cp);
  fail_infeasible(at / "routing",
                  "uneven routing needs all tensor and context ranks of a replica in one expert "
                  "group, but ep x etp = " +
                      std::to_string(plan.ep * plan.etp) +
                      " is no multiple of tp x cp = " + together,
                  "use a multiple of it, or --routing uniform");
}

}  // namespace

RoutedLoads::RoutedLoads(const Scenario& scenario, const GroupShapes& shapes, const Place& at) {
  const Plan& plan = scenario.plan;
  if (!scenario.model.experts) return;
  layers_ = layers_with_experts(scenario.model);
  const GroupShape group = shapes[GroupKind::expert];
  shape_ = {.experts = *scenario.model.experts,
            .layers = layers_,
            .ranks = group.ranks,
            .per_domain = group.domains == 1 ? group.ranks : std::max(1, group.per_domain),
            .tokens = scenario.tokens_per_microbatch() / plan.tp};
  plan_ = read_routing(plan.routing, at / "routing",
                       {.layers = layers_,
                        .ranks = group.ranks,
                        .experts = static_cast<int>(shape_.experts.count),
                        .tokens = shape_.tokens,
                        .per_token = shape_.experts.per_token});
  even_ = plan_.even && !plan_.trace && !plan_.capacity_factor;
  if (even_) return;
  refuse_groups_that_wait_for_each_other(plan, at);

  const Router router{plan_, shape_, at / "routing"};
  const int all_groups = plan.expert_data_ranks();
  sampled_ = plan_.statistical() && plan.microbatches > most_micro_batches;
  micro_batches_ = plan_.statistical() ? std::min(plan.microbatches, most_micro_batches)
                   : plan_.trace       ? std::min(plan.microbatches, plan_.trace->micro_batches)
                                       : 1;
  groups_ =
      plan_.statistical() && !plan_.identical_replicas ? std::min(all_groups, most_groups) : 1;
  for (int g = 0; g < groups_; ++g)
    for (int m = 0; m < micro_batches_; ++m)
      for (int l = 0; l < layers_; ++l) batches_.push_back(router.route(l, m, g));
  for (int l = 0; l < layers_; ++l) placements_.push_back(router.placement(l));
}

int RoutedLoads::expert_of(int layer, std::size_t slot) const {
  return placements_[static_cast<std::size_t>(layer)].expert_of[slot];
}

double RoutedLoads::fullest(const Scenario& scenario) const {
  if (even_) return 1.0;
  const double mean = static_cast<double>(shape_.tokens * shape_.experts.per_token);
  double worst = 1.0;
  std::vector<double> rows(static_cast<std::size_t>(shape_.ranks));
  for (int g = 0; g < groups_; ++g)
    for (int m = 0; m < micro_batches_; ++m) {
      int layer = 0;
      for (int stage = 0; stage < scenario.plan.virtual_stages(); ++stage) {
        std::fill(rows.begin(), rows.end(), 0.0);
        const int first = scenario.first_layer(stage);
        int counted = 0;
        for (int l = first; l < first + scenario.layers_of[static_cast<std::size_t>(stage)]; ++l) {
          if (scenario.kind_of(l) == LayerKind::dense) continue;
          const RoutedBatch& routed = batch(g, m, layer++);
          ++counted;
          for (int r = 0; r < shape_.ranks; ++r) {
            const auto own = routed.computed_by(r);
            rows[static_cast<std::size_t>(r)] +=
                static_cast<double>(std::accumulate(own.begin(), own.end(), std::int64_t{0}));
          }
        }
        if (counted > 0)
          worst = std::max(worst, *std::max_element(rows.begin(), rows.end()) / (counted * mean));
      }
    }
  return worst;
}

}  // namespace orrery
