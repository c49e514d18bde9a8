#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// What a checkpoint sends from the memory of the nodes, where its copy lies, while the next steps
/// run.
struct CheckpointWrite {
  std::vector<Bytes> of_rank;  ///< By stage: of each rank that writes.
  /// Else one rank writes for all that hold the same, the first.
  bool every_replica = true;
  /// What its ports take together; nothing: each node sends to the memory of another one.
  std::optional<BytesPerSecond> store;
  BytesPerSecond off_rank;  ///< That one rank's bytes reach alone.
};

/// The ranks of a role that write, as the engine sees them: one flow for all of them.
struct Writer {
  int role = 0;
  int ranks = 0;  ///< That it stands for, of those that write.
  Flow flow;      ///< With the bytes of one.
};

/// A flow for each role that writes:
///
///     GPU ..(copied before).. memory of the node -> NIC -> [ports of the store]
///                                                       -> NIC of another node
///
/// A way to the store crosses the NIC of its rank, as often as writers of its role share it, and
/// the store's port, as often as writers there are. So max-min sharing gives one flow the rate that
/// each of them has in the whole, as for all others (docs/explanation/simulation.md). The fabric
/// between NICs and ports is taken for wide enough. Where one replica writes for all, others that
/// play its roles seem to do so too at their own NICs: they wait for it in any case, when gradients
/// are summed up.
std::vector<Writer> writers_of(const CheckpointWrite& write, const Cast& cast, Topology& topology);

/// Steps one after another from the moment at which a write begins.
struct StepsBesideWrite {
  Seconds step;            ///< Of one without a write.
  Seconds write;           ///< Until the last byte has arrived.
  std::int64_t steps = 0;  ///< That begin meanwhile.
  Seconds longer;          ///< By which they take longer, together; not below 0.
  Seconds throughout;  ///< The first of them: beside which all writers write, if it is cut by none.
};

/// The step's graph and a flow for each writer (writers.hpp) from its beginning, in the engine.
///
/// A step that begins while all writers still write is like the one before, whatever is left of
/// them: rates depend on who is on the links alone. So a write of many steps is simulated once for
/// all steps that no writer's end cuts, and once for each that one does. What a writer has left
/// when the step ends is what it moves afterwards, alone with the other writers: their rates are
/// known then (max_min_rates()), and the engine says when each of them ends. Bytes are conserved:
/// what is moved in all steps is what there was.
///
/// `detail`: every rank, every collective. The plan must fit.
StepsBesideWrite steps_beside(const Scenario& scenario, EstimateContext& context,
                              const CheckpointWrite& write, Detail detail = {});

}  // namespace orrery
