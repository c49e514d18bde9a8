#pragma once

#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/curve.hpp"

namespace orrery {

/// The collectives among `measurements`, a curve for each collective and number of ranks, on nodes
/// of `gpus_per_node`: more ranks are on as many nodes as they fill; 0: nobody said, and all are on
/// one node of `gpus`. Errors (bad_input): ranks that do not fill whole nodes, or the one.
std::vector<Curve> curves_of(const std::vector<calibration::Measurement>& measurements,
                             int gpus_per_node, int gpus, const std::string& file,
                             const std::string& gpu, const std::string& nccl);

/// Refuses a curve whose bus bandwidth falls with size (degradation()), and two curves of one
/// group, whose mean would be neither's.
void require_healthy(const std::vector<Curve>& curves);

/// predicted / measured - 1 of each size between the first and the last, from its two neighbours,
/// log-log as CollectiveMeasurements does.
std::vector<double> curve_errors(const Curve& curve);

}  // namespace orrery
