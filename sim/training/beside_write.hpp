#pragma once

#include <cstdint>

#include "sim/training/estimate.hpp"
#include "sim/training/writers.hpp"

namespace orrery {

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
/// known then (shared_rates()), and the engine says when each of them ends. Bytes are conserved:
/// what is moved in all steps is what there was.
///
/// `detail`: every rank, every collective, which engine. The plan must fit.
StepsBesideWrite steps_beside(const Scenario& scenario, EstimateContext& context,
                              const CheckpointWrite& write, Detail detail = {});

}  // namespace orrery
