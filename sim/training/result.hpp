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
#include "sim/training/link_loads.hpp"
#include "sim/training/routing_report.hpp"
#include "sim/training/step_parts.hpp"
#include "sim/training/step_range.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Where the time of one rank goes. Adds up to the step.
struct Breakdown {
  Seconds compute;     ///< Kernels of forward, backward and recomputation.
  TimeByWork work;     ///< `compute`, by what is done.
  Seconds tp_exposed;  ///< Tensor-parallel collectives that no kernel hides.
  Seconds cp_exposed;  ///< Context-parallel exchange of keys and values that no kernel hides.
  Seconds ep_exposed;  ///< Dispatch and combine of tokens that no kernel hides.
  Seconds pp_bubble;   ///< Idle, up to (pp - 1) / vpp micro-batches: the schedule's fill and drain.
  Seconds pp_exposed;  ///< Waiting for a transfer between stages that is on its way.
  Seconds dp_exposed;  ///< Waiting for gradients or weights of the data-parallel group.
  Seconds optimizer;
  Seconds imbalance;  ///< Idle beyond the bubble: other stages are slower, or out of step; and
                      ///< other ranks' experts having more rows.
  Seconds other;      ///< Gradient norm.

  /// Of passes and the optimizer, collectives inside of them included.
  Seconds busy() const { return compute + tp_exposed + cp_exposed + ep_exposed + optimizer; }
  Seconds sum() const {
    return compute + tp_exposed + cp_exposed + ep_exposed + pp_bubble + pp_exposed + dp_exposed +
           optimizer + imbalance + other;
  }
};

/// The answer of an estimate. Rates follow from step_time and the scenario.
struct Result {
  Scenario scenario;
  Seconds step_time;
  StepRange range;      ///< Where the step time lies in truth.
  Seconds lower_bound;  ///< Critical path, or without waiting at the end the longest stage's.
  double tokens_per_s = 0.0;
  double tokens_per_s_per_gpu = 0.0;
  double model_tflops_per_gpu = 0.0;       ///< Causal attention counted as half.
  double model_tflops_per_gpu_full = 0.0;  ///< The whole score matrix counted.
  double mfu = 0.0;                        ///< Of the dtype's dense peak, causal.
  double mfu_full = 0.0;
  MemoryReport memory;
  CriticalParts critical;
  /// By stage, of the rank that computes the longest there.
  std::vector<Breakdown> stages;
  int busiest_stage = 0;
  int idlest_stage = 0;
  std::array<double, 3> provenance{};  ///< Shares of kernel and collective time, by Tag; sum 1.
  std::vector<LinkReport> links;
  std::optional<RoutingReport> routing;  ///< Of a model with experts.
  int roles = 0;                         ///< Ranks that were simulated, each for all of its twins.
  int tasks = 0;
  bool contracted = true;
  Simulator simulator = Simulator::own;
  Seconds simulation_wall;
  std::vector<std::string> warnings;
  std::optional<Seconds> measured;    ///< The step time that somebody measured, to compare with.
  std::optional<Bill> bill;           ///< Where somebody asked what a whole training takes.
  std::optional<StepByRuns> by_runs;  ///< Where somebody gave runs that were measured.

  const Breakdown& busiest() const { return stages[static_cast<std::size_t>(busiest_stage)]; }
};

/// Turns a timeline into the figures that people read, prices being off by `errors`.
/// `simulation_wall` is left to the caller.
Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology, const PriceErrors& errors,
                 const RoutedLoads& loads);

/// Where the time of each of `roles` goes. Every moment of the step is counted once: kernels first,
/// then what the rank waits for, in the order data, transfer, context, expert, tensor; idle
/// otherwise.
std::vector<Breakdown> break_down(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline, const std::vector<int>& roles);

/// Of each stage the role whose compute stream is busy the longest.
std::vector<int> longest_computing_roles(const TrainingStep& step, const Timeline& timeline,
                                         int stages);

/// The last look at an answer before anybody sees it. Throws std::logic_error, a fault of the
/// program, at the first figure that no step can have: one that is not finite, a step that takes no
/// time or less than its lower bound, a critical path or a stage that does not add up to the step,
/// a range that does not hold it, an MFU over 1, memory that is none.
void require_sound(const Result& result);

/// The same of a step time alone.
void require_sound(Seconds step_time);

}  // namespace orrery
