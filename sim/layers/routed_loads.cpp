#include "sim/layers/routed_loads.hpp"

#include <algorithm>
#include <numeric>

#include "sim/plan/placement.hpp"

namespace orrery {
namespace {

constexpr int most_micro_batches = 8;
constexpr int most_groups = 4;

int layers_with_experts(const Model& model) {
  return static_cast<int>(
      std::count(model.layer_has_experts.begin(), model.layer_has_experts.end(), true));
}

// Number of expert groups that wait for each other: a layer's collectives synchronise tensor and
// context ranks, and so all expert groups with ranks in a replica.
int groups_of_a_replica(const RoutingCase& of, const Place& at) {
  const int replica = of.replica_ranks;
  const int group = of.shape.ranks * of.tensor_ranks;
  if (group % replica == 0) return 1;
  if (replica % group == 0) return replica / group;
  fail_infeasible(at / "routing",
                  "uneven routing needs replicas that fill whole expert groups or the reverse, but "
                  "of ep x etp = " +
                      std::to_string(group) + " and tp x cp = " + std::to_string(replica) +
                      " neither divides the other",
                  "use a multiple or a divisor, or --routing uniform");
}

// Number of samples, so that replicas have whole sets of them or sets have whole replicas.
int group_samples(int groups_together) {
  return most_groups % groups_together == 0 ? most_groups : groups_together;
}

// Shapes of a placement take longer to compute than the memory of a dense model.
RoutingCase case_of(const Scenario& scenario) {
  if (!scenario.model.experts) return {};
  return RoutingCase::of(scenario, Placement{scenario.plan, scenario.system}.shapes());
}

}  // namespace

RoutingCase RoutingCase::of(const Scenario& scenario, const GroupShapes& shapes) {
  const Plan& plan = scenario.plan;
  RoutingCase found;
  if (!scenario.model.experts) return found;
  found.routing = plan.routing;
  const GroupShape& group = shapes[GroupKind::expert];
  found.shape = {.experts = *scenario.model.experts,
                 .layers = layers_with_experts(scenario.model),
                 .ranks = group.ranks,
                 .per_domain = group.domains == 1 ? group.ranks : std::max(1, group.per_domain),
                 .tokens = scenario.tokens_per_microbatch() / plan.tp};
  found.tensor_ranks = plan.etp;
  found.replica_ranks = plan.tp * plan.cp;
  found.micro_batches = plan.microbatches;
  found.groups = plan.expert_data_ranks();
  return found;
}

RoutedLoads::RoutedLoads(const Scenario& scenario) : RoutedLoads{case_of(scenario)} {}

RoutedLoads::RoutedLoads(const Scenario& scenario, const GroupShapes& shapes, const Place& at)
    : RoutedLoads{RoutingCase::of(scenario, shapes), at} {}

RoutedLoads::RoutedLoads(const RoutingCase& of, const Place& at) {
  if (of.shape.experts.count == 0) return;
  shape_ = of.shape;
  layers_ = shape_.layers;
  plan_ = read_routing(of.routing, at / "routing",
                       {.layers = layers_,
                        .ranks = shape_.ranks,
                        .experts = static_cast<int>(shape_.experts.count),
                        .tokens = shape_.tokens,
                        .per_token = shape_.experts.per_token});
  even_ = plan_.even && !plan_.trace && !plan_.capacity_factor;
  if (even_) return;
  const int samples = group_samples(groups_of_a_replica(of, at));

  const Router router{plan_, shape_, at / "routing"};
  sampled_ = plan_.statistical() && of.micro_batches > most_micro_batches;
  micro_batches_ = plan_.statistical() ? std::min(of.micro_batches, most_micro_batches)
                   : plan_.trace       ? std::min(of.micro_batches, plan_.trace->micro_batches)
                                       : 1;
  groups_ = plan_.statistical() && !plan_.identical_replicas ? std::min(of.groups, samples) : 1;
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
          if (!scenario.kind_of(l).has_experts) continue;
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

std::shared_ptr<const RoutedLoads> KnownLoads::of(const Scenario& scenario) {
  const RoutingCase requested = case_of(scenario);
  for (const auto& [known, loads] : known_)
    if (known == requested) return loads;
  auto fresh = std::make_shared<const RoutedLoads>(requested);
  if (known_.size() == most) known_.pop_front();
  known_.emplace_back(requested, fresh);
  return fresh;
}

}  // namespace orrery
