#pragma once

#include <string>

#include "calibration/host/record.hpp"
#include "sim/cluster/system.hpp"

namespace orrery {

/// The catalog's name for a GPU as the driver calls it ("NVIDIA H200"), with or without its maker;
/// "" where the catalog has none.
std::string catalog_gpu(const std::string& driver_name);

/// Refuses a GPU that cannot be the one that a record was measured on: another number of
/// multiprocessors or another generation. Errors (bad_input) name `file`.
void require_same_gpu(const calibration::Machine& machine, const Gpu& gpu, const std::string& file,
                      const std::string& remedy);

}  // namespace orrery
