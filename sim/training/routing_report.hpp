#pragma once

#include <string>
#include <vector>

#include "sim/layers/routed_loads.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// What the router did to a step with experts. Loads are rows that ranks compute in one layer and
/// micro-batch.
struct RoutingReport {
  bool even = true;                 ///< Nothing was drawn: all ranks have the mean.
  double mean_rows = 0.0;           ///< Of a rank.
  double worst_over_mean = 1.0;     ///< The fullest rank of all layers and micro-batches looked at.
  double max_over_mean = 1.0;       ///< The fullest rank of a layer and micro-batch, on average.
  double gini = 0.0;                ///< Of the ranks of a layer and micro-batch, on average.
  double dropped_share = 0.0;       ///< Of all copies.
  std::int64_t dropped_a_step = 0;  ///< Copies, over the whole cluster.

  /// Dispatch and combine of one GPU of the critical stage in a step, both ways and directions.
  Bytes scale_up_bytes;
  Bytes network_bytes;
  LostToRouting lost;  ///< Of the same GPU, over even routing.

  struct HotExpert {
    int layer = 0;  ///< Of the model.
    int expert = 0;
    double over_mean = 1.0;  ///< Its share of the layer's copies over an even one.
  };
  std::vector<HotExpert> hottest;

  int groups = 1, micro_batches = 1;  ///< Drawn or looked up.
  Seconds standard_error;  ///< Of the step time, from drawing few of its micro-batches; 0: none.
};

/// What uneven routing costs a rank in a step, over all its passes.
LostToRouting lost_to_routing(const Plan& plan, const TrainingStep& step, int role);

RoutingReport report_routing(const Scenario& scenario, const RoutedLoads& loads,
                             const TrainingStep& step, int critical_role);

}  // namespace orrery
