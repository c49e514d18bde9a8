#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/moe/router.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// All properties of a scenario that its routing depends on.
struct RoutingCase {
  std::string routing;
  RoutingShape shape;
  int tensor_ranks = 1;   ///< Tensor ranks of an expert.
  int replica_ranks = 1;  ///< Tensor and context ranks of a replica.
  int micro_batches = 1;
  int groups = 1;  ///< Groups that hold the same experts.

  /// Empty for a model without experts.
  static RoutingCase of(const Scenario& scenario, const GroupShapes& shapes);
  bool operator==(const RoutingCase&) const = default;
};

/// The routing of one step: the destinations of the tokens of each layer with experts, for a sample
/// of the expert groups and micro-batches.
///
/// Sampling  Micro-batches and groups of a step are samples of one distribution. At most 8
///           micro-batches and 4 groups are sampled (from the plan's seed), or as many groups as a
///           replica has ranks of, if that does not divide 4; group g has the sample g mod groups,
///           micro-batch m the sample m mod micro-batches. A trace is used as it is, with every
///           micro-batch, and is the same for all groups.
class RoutedLoads {
 public:
  /// Errors as in read_routing() and Router; under uneven routing, replicas and expert groups if
  /// neither is a multiple of the other (infeasible).
  explicit RoutedLoads(const RoutingCase& of, const Place& at = {});
  RoutedLoads(const Scenario& scenario, const GroupShapes& shapes, const Place& at = {});
  explicit RoutedLoads(const Scenario& scenario);

  bool even() const { return even_; }
  int groups() const { return groups_; }
  int micro_batches() const { return micro_batches_; }
  int layers() const { return layers_; }
  bool sampled() const { return sampled_; }  ///< Else every micro-batch was looked at.
  /// `layer` counts layers with experts.
  const RoutedBatch& batch(int group, int micro_batch, int layer) const {
    return batches_[static_cast<std::size_t>((group * micro_batches_ + micro_batch) * layers_ +
                                             layer)];
  }
  const RoutingShape& shape() const { return shape_; }
  const RoutingPlan& plan() const { return plan_; }
  int expert_of(int layer, std::size_t slot) const;

  /// Rows that the fullest rank has in the layers of one stage, over those of even routing; the
  /// largest of all draws and stages. At least 1.
  double fullest(const Scenario& scenario) const;

 private:
  RoutingPlan plan_;
  RoutingShape shape_;
  bool even_ = true;
  bool sampled_ = false;
  int groups_ = 1, micro_batches_ = 1, layers_ = 0;
  std::vector<RoutedBatch> batches_;
  std::vector<ExpertPlacement> placements_;  ///< One for each layer.
};

/// Cache of the latest scenarios' loads, which neighbours in an enumeration share.
class KnownLoads {
 public:
  std::shared_ptr<const RoutedLoads> of(const Scenario& scenario);

 private:
  static constexpr std::size_t most = 4;
  std::deque<std::pair<RoutingCase, std::shared_ptr<const RoutedLoads>>> known_;
};

}  // namespace orrery
