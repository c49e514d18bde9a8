#pragma once

#include <string>
#include <vector>

#include "calibration/host/case.hpp"

namespace orrery::calibration {

/// A work list, `orrery.calibration-shapes/1`: {"schema": ..., "cases": [{"kind": ...}, ...]}, each
/// case with its keys and, optionally, a weight (default 1). Errors name the place: unknown kinds,
/// keys and values, a case that is listed twice.
std::vector<Case> parse_work_list(const std::string& text, const std::string& file);
std::string work_list_json(const std::vector<Case>& cases);

/// The default cases: products of common layers and around tile borders, attention, streaming
/// kernels, launches, transfers, overlap; with several GPUs, collectives.
std::vector<Case> default_work_list(int gpus);

/// Only the cases of `kinds`; all where it is empty.
std::vector<Case> of_kinds(std::vector<Case> cases, const std::vector<std::string>& kinds);

/// Heavier cases first. Equals are shuffled, always in the same way, so that a run that is cut
/// short has measured some of everything.
std::vector<Case> in_running_order(std::vector<Case> cases);

}  // namespace orrery::calibration
