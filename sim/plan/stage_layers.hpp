#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Layers of each virtual stage, in the order in which a micro-batch passes them, without
/// prediction layers, which follow the last. Empty: as even as possible (split_layers).
struct StageLayers {
  std::vector<int> of = {};

  bool operator==(const StageLayers&) const = default;
  bool chosen() const { return !of.empty(); }
};

/// "even", or "11+12x14+11": 11, then fourteen times 12, then 11.
std::string stage_layers_text(const StageLayers& layers);
/// Reads the same; "," does as well as "+", and "*" as "x". Errors: anything else, more than 20,000
/// stages.
StageLayers read_stage_layers(const JsonValue& value);

/// Layers that nanotron gives each of `stages` (huggingface/nanotron, models/base.py, build_model,
/// and models/llama.py, get_block_compute_costs): a stage takes blocks until their weights exceed
/// its share of all, including the block that exceeds it. Embedding and norms do not count; the
/// head does. The model must be dense, with no fewer layers than stages.
std::vector<int> nanotron_stages(const Model& model, int stages);

}  // namespace orrery
