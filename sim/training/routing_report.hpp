#pragma once

#include <string>
#include <vector>

#include "sim/layers/routed_loads.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Effects of routing on a step with experts. Loads are rows that a rank computes in one layer and
/// micro-batch.
struct RoutingReport {
  bool even = true;                 ///< Nothing was sampled: all ranks have the mean.
  double mean_rows = 0.0;           ///< Mean rows of a rank.
  double worst_over_mean = 1.0;     ///< Fullest rank of all sampled layers and micro-batches.
  double max_over_mean = 1.0;       ///< Fullest rank of a layer and micro-batch, on average.
  double gini = 0.0;                ///< Mean Gini coefficient of ranks in a layer and micro-batch.
  double dropped_share = 0.0;       ///< Dropped share of all token copies.
  std::int64_t dropped_a_step = 0;  ///< Dropped copies of the whole cluster.

  /// Dispatch and combine of one GPU of the critical stage in a step, forward and backward passes.
  Bytes scale_up_bytes;
  Bytes network_bytes;
  RoutingLoss lost;  ///< Time that the same GPU loses against even routing.

  struct HotExpert {
    int layer = 0;  ///< Layer of the model.
    int expert = 0;
    double over_mean = 1.0;  ///< Its share of the layer's copies over an even one.
  };
  std::vector<HotExpert> hottest;

  int groups = 1, micro_batches = 1;  ///< Sampled or read.
  Seconds standard_error;             ///< Error of the step time from sampling; 0: none.
};

/// Time that a rank loses to uneven routing in a step, over all its passes.
RoutingLoss lost_to_routing(const Plan& plan, const TrainingStep& step, int rep);

RoutingReport report_routing(const Scenario& scenario, const RoutedLoads& loads,
                             const TrainingStep& step, int critical_rep);

}  // namespace orrery
