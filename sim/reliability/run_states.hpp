#pragma once

#include <vector>

#include "sim/training/estimate.hpp"

namespace orrery {

/// A step of the job with so many of its replicas away: the batch of a replica stays as it is.
struct AwayState {
  Seconds step;
  std::int64_t samples = 0;  ///< Sequences that it trains on.
};

/// Replicas whose ranks a unit of GPUs holds, as Placement lays them: they stop with it.
int replicas_of_unit(const Scenario& scenario);
/// Whether a lost replica takes nothing with it that others have not: optimizer states are whole in
/// each, or their shards are kept in several copies.
bool replicas_hold_all(const Plan& plan);

/// Of 0, 1, ... replicas away, as many as `units` units stop. It ends with the last that can run:
/// whose plan divides and fits. Where units stop several replicas, the numbers between are as the
/// next larger one.
std::vector<AwayState> away_states(const Scenario& scenario, Seconds whole, int units);

/// With more units away at once even an elastic job waits.
inline constexpr int most_units_away = 8;

/// The step if one GPU of that stage takes 1 + `slower` times as long as the others.
Seconds step_with_slow_gpu(const Scenario& scenario, int stage, double slower);

/// The same over the whole cluster's step, of each stage and each of `slower`, in `workers`
/// processes: one after the other, a stage's numbers together.
std::vector<std::vector<double>> slow_step_ratios(const Scenario& scenario,
                                                  const std::vector<double>& slower, int workers);

}  // namespace orrery
