#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/layers/memory.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/bill.hpp"
#include "sim/training/layers_of_kind.hpp"
#include "sim/training/link_loads.hpp"
#include "sim/training/routing_report.hpp"
#include "sim/training/step_parts.hpp"
#include "sim/training/step_range.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Time of one rank by cause. Adds up to the step.
struct Breakdown {
  Seconds compute;     ///< Kernels of forward, backward and recomputation.
  TimeByWork work;     ///< `compute`, by kind of kernel.
  Seconds tp_exposed;  ///< Tensor-parallel collectives that no kernel hides.
  Seconds cp_exposed;  ///< Context-parallel exchange of keys and values that no kernel hides.
  Seconds ep_exposed;  ///< Dispatch and combine of tokens that no kernel hides.
  Seconds pp_bubble;   ///< Idle, up to (pp - 1) / vpp micro-batches: the schedule's fill and drain.
  Seconds pp_exposed;  ///< Waiting for a running transfer between stages.
  Seconds dp_exposed;  ///< Waiting for gradients or weights of the data-parallel group.
  Seconds optimizer;
  Seconds imbalance;  ///< Idle beyond the bubble: other stages are slower or out of step, or
                      ///< experts of other ranks have more rows.
  Seconds other;      ///< Gradient norm.
  Seconds waiting;    ///< waiting_for_others()

  /// Time in passes, with their collectives, and in the optimizer.
  Seconds busy() const { return compute + tp_exposed + cp_exposed + ep_exposed + optimizer; }
  Seconds sum() const {
    return compute + tp_exposed + cp_exposed + ep_exposed + pp_bubble + pp_exposed + dp_exposed +
           optimizer + imbalance + other + waiting;
  }
};

/// The result of an estimate. Rates follow from step_time and the scenario.
struct Result {
  Scenario scenario;
  Seconds step_time;    ///< With waiting_for_others(), which no timeline shows.
  StepRange range;      ///< Prediction interval of the step time.
  Seconds lower_bound;  ///< See least_step_window().
  double tokens_per_s = 0.0;
  double tokens_per_s_per_gpu = 0.0;
  double model_tflops_per_gpu = 0.0;       ///< Causal attention counted as half.
  double model_tflops_per_gpu_full = 0.0;  ///< The whole score matrix counted.
  double mfu = 0.0;                        ///< Share of the dtype's dense peak, causal.
  double mfu_full = 0.0;
  MemoryReport memory;
  std::vector<LayersOfKind> kinds;  ///< Empty: all layers are alike.
  CriticalParts critical;
  /// Indexed by stage, for the rank that computes the longest there.
  std::vector<Breakdown> stages;
  int busiest_stage = 0;
  int idlest_stage = 0;
  std::array<double, 3> provenance{};  ///< Shares of kernel and collective time, by Tag; sum 1.
  std::vector<LinkReport> links;
  std::optional<RoutingReport> routing;  ///< Set for a model with experts.
  int reps = 0;                          ///< Simulated ranks, one for each rank class.
  int tasks = 0;
  bool contracted = true;
  Simulator simulator = Simulator::own;
  Seconds simulation_wall;
  std::vector<std::string> warnings;
  std::optional<Seconds> measured;    ///< The measured step time, if the caller knows one.
  std::optional<Bill> bill;           ///< Set if the cost of a whole training was requested.
  std::optional<StepByRuns> by_runs;  ///< Set if measured runs were given.

  const Breakdown& busiest() const { return stages[static_cast<std::size_t>(busiest_stage)]; }
};

/// Computes the figures of a timeline; `errors` are those of the cost model. `simulation_wall` is
/// left to the caller.
Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology, const PriceErrors& errors,
                 const RoutedLoads& loads);

/// Breaks down the time of each representative of `reps`. Every moment of the step counts once: as
/// kernels first, then as waiting, in the order data, transfer, context, expert, tensor; else idle.
std::vector<Breakdown> break_down(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline, const std::vector<int>& reps);

/// The representative of each stage whose compute stream is busy the longest.
std::vector<int> longest_computing_reps(const TrainingStep& step, const Timeline& timeline,
                                        int stages);

/// Checks a result before it is shown. Throws std::logic_error, a program error, at the first
/// impossible figure: one that is not finite, a step that takes no time or less than its lower
/// bound, a critical path or a stage that does not add up to the step, a range that does not
/// contain it, an MFU over 1, or no memory.
void require_sound(const Result& result);

/// The same for a step time alone.
void require_sound(Seconds step_time);

}  // namespace orrery
