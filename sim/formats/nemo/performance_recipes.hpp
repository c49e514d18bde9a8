#pragma once

#include <optional>
#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {

/// How a command of Megatron-Bridge's performance scripts asks for a recipe.
struct PerformanceQuestion {
  std::string recipe, gpu;     ///< "llama3_70b", "h100"
  std::string dtype = "bf16";  ///< "fp8_cs"
  std::string variant;         ///< "large_scale"; "": none.
  std::int64_t gpus = 0;
};

/// One of them.
struct PerformanceRecipe {
  std::string model;  ///< In the catalog.
  std::int64_t gpus = 0;
  JsonValue settings;                ///< By their paths in Megatron-Bridge's configuration.
  std::optional<JsonValue> layouts;  ///< Of pipelines, by stages x chunks.
};

/// The recipe of workloads/recipes/megatron-bridge.json for that many GPUs, else the one for the
/// most. Errors (bad_input), at `place`: the table has none of this name, GPU, format or variant.
PerformanceRecipe performance_recipe(const PerformanceQuestion& question, const Place& place);

}  // namespace orrery
