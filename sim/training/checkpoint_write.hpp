#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// An asynchronous checkpoint: traffic from the nodes' memory while the next steps run.
struct CheckpointWrite {
  std::vector<Bytes> of_rank;  ///< Bytes of each writing rank, indexed by stage.
  /// All replicas write; if false, the first writes for all that hold the same bytes.
  bool every_replica = true;
  /// Capacity of the store's ports together; unset: nodes write to another node's memory.
  std::optional<BytesPerSecond> store;
  BytesPerSecond off_rank;  ///< Rate of one rank's bytes without contention.
};

/// The writing ranks of one class, which the engine simulates as one flow.
struct Writer {
  int rep = 0;
  int ranks = 0;  ///< Number of writers that it represents.
  Flow flow;      ///< Bytes of one rank.
};

/// A flow for each class that writes:
///
///     GPU ..(copied before).. memory of the node -> NIC -> [ports of the store]
///                                                       -> NIC of another node
///
/// A route to the store crosses its rank's NIC with the multiplicity of the writers of its class on
/// that NIC, and the store's port with that of all writers of the class. Max-min sharing then gives
/// the flow the rate of each writer in the full simulation (docs/explanation/simulation.md). The
/// fabric between NICs and ports is assumed not to limit. If one replica writes for all, ranks of
/// the same class are slowed at their own NICs too, but they wait for it anyway when gradients are
/// summed.
std::vector<Writer> writers_of(const CheckpointWrite& write, const RankClasses& classes,
                               Topology& topology);

/// Consecutive steps from the start of a checkpoint write to its end.
struct StepsDuringWrite {
  Seconds step;            ///< Step time without a write.
  Seconds write;           ///< Time until the last byte has arrived.
  std::int64_t steps = 0;  ///< Number of steps that begin during the write.
  Seconds longer;          ///< Total slowdown of these steps, at least 0.
  Seconds throughout;  ///< The first step, during which all writers write unless one ends in it.
};

/// Simulates the step's graph with a flow for each writer from the step's start.
///
/// Rates depend only on which flows share the links, so steps that begin with the same active
/// writers are equal, whatever bytes remain. A write over many steps is therefore simulated once
/// for all steps in which no writer ends, and once for each step in which one does. The bytes that
/// a writer has left at the end of a step are those that it moves afterwards, sharing links with
/// the other writers only: max_min_rates() gives their rates, the engine their ends. Bytes are
/// conserved over all steps.
///
/// `detail`: whether every rank and every collective is simulated. The plan must fit.
StepsDuringWrite steps_during(const Scenario& scenario, EstimateContext& context,
                              const CheckpointWrite& write, Detail detail = {});

}  // namespace orrery
