#pragma once

#include <functional>
#include <vector>

#include "calibration/host/case.hpp"
#include "sim/layers/op.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// The measurements that this scenario needs: every kernel and tensor-parallel collective of its
/// layers, of the embedding and of the output head, forward and backward, on one rank, each shape
/// once. Its weight is the number of times that a micro-batch runs it.
///
/// A memory-bound kernel counts as a copy of as many bytes, as in estimates; experts' products with
/// their tokens spread evenly. Kernels without a benchmark are left out: batched products (unfused
/// attention), attention to other tokens' keys or in a window, experts' products in fp8.
std::vector<calibration::Case> shapes_of(const Scenario& scenario);

/// Adds the measurement of `op`, if there is one.
void add_shape(std::vector<calibration::Case>& cases, const Op& op, const Plan& plan,
               double weight);

using OpVisitor = std::function<void(const Op&)>;
/// Visits the ops of one layer on one rank for one micro-batch, with recomputation.
void visit_layer_ops(const Scenario& scenario, LayerKind kind, const OpVisitor& visit);
/// Visits the ops of the embedding (`first`) and of the output head (`last`).
void visit_end_ops(const Scenario& scenario, bool first, bool last, const OpVisitor& visit);

/// Adds `more` to `cases`; the weights of equal cases are added.
void merge_shapes(std::vector<calibration::Case>& cases,
                  const std::vector<calibration::Case>& more);

/// Shapes of shapes_of(scenario) that were not measured on this GPU, heaviest first. A shape's
/// weight is the time that one rank of `stage` spends on it in a step, in seconds, hidden or not. A
/// product whose row is in the tables counts as measured although training slows it down by a
/// factor.
std::vector<calibration::Case> missing_shapes(const Scenario& scenario, const KernelModel& kernels,
                                              const Pricer& pricer, int stage);

}  // namespace orrery
