#pragma once

#include <vector>

#include "sim/model/model.hpp"

namespace orrery {

/// How many layers nanotron gives each of `stages` (huggingface/nanotron, models/base.py,
/// build_model, and models/llama.py, get_block_compute_costs): a stage takes blocks until their
/// weights exceed its share of all, the one that exceeds it included. Embedding and norms count
/// nothing; the head does. For a dense model of no fewer layers than stages.
std::vector<int> nanotron_stages(const Model& model, int stages);

}  // namespace orrery
