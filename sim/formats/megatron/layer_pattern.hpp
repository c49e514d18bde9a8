#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// Transformer layers of each chunk of Megatron-Core's --pipeline-model-parallel-layout, as
/// "Et*3|(tt|)*29,m|L": E embedding, t layer, m prediction layer, L loss, | between chunks, commas
/// mean nothing, x*N repeats a letter or a bracket. Errors (bad_input): another letter, brackets
/// that do not close, more than 20,000 letters written out.
std::vector<int> layers_of_layout(const std::string& layout, const Place& place);

/// Which of `layers` layers have experts by --moe-layer-freq, a '0' or '1' each: "N" gives every
/// N-th layer experts, the first included; "[0]*3+[1]*58" lists them, in Python's way. Nothing:
/// it says neither, or not of as many layers.
std::optional<std::string> expert_layers(const std::string& pattern, std::size_t layers);

}  // namespace orrery
