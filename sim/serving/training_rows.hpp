#pragma once

#include <optional>
#include <string>

#include "sim/measurements/serving_table.hpp"
#include "sim/serving/number_format.hpp"

namespace orrery {

/// Rows of the tables of training steps (calibration/data/kernels), as a table of serving: products
/// of 256 rows and more in `format`, or causal attention of whole prompts ("prefill_attention").
/// Nothing where `gpu` has none. They were measured with TensorRT-LLM (docs/KERNELS.md).
std::optional<ServingTable> training_rows(const std::string& gpu, const std::string& op,
                                          WeightFormat format);

}  // namespace orrery
