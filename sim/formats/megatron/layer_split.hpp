#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {

/// Transformer layers of each chunk of Megatron-Core's --pipeline-model-parallel-layout, as
/// "Et*3|(tt|)*29,m|L": E embedding, t layer, m prediction layer, L loss, | between chunks, commas
/// mean nothing, x*N repeats a letter or a bracket. Errors (bad_input): another letter, brackets
/// that do not close, more than 20,000 letters written out.
std::vector<int> layers_of_layout(const std::string& layout, const Place& place);

/// The layers, of `layers`, that have experts by --moe-layer-freq, a '0' or '1' each: "N" gives
/// every N-th layer experts, the first included; "[0]*3+[1]*58" or "([0]*1+[1]*3)*12" lists
/// them, in Python's way. Nothing: another form, or another number of layers.
std::optional<std::string> expert_layers(const std::string& pattern, std::size_t layers);

/// Likewise those with linear attention by --linear-attention-freq: "N" gives all but every N-th
/// layer linear attention, and a list has a '1' for each.
std::optional<std::string> linear_layers(const std::string& pattern, std::size_t layers);

/// The cut of a run's layers into virtual stages.
struct PipelineSplit {
  std::int64_t vpp = 1;
  StageLayers layers;  ///< Chosen if the arguments give the layers of stages.
};

/// The split of `layers` layers on `stages` stages: --pipeline-model-parallel-layout; or the layers
/// of the first and the last stage (--decoder-first-pipeline-num-layers, -last-), over which the
/// chunks of a stage are even; or embedding and loss that count as a layer
/// (--account-for-embedding-in-pipeline-split, -loss-); else even. `notes` gains what is priced
/// otherwise. Errors (bad_input): layers that do not divide.
PipelineSplit pipeline_split(const MegatronArguments& arguments, std::int64_t layers,
                             std::int64_t stages, std::vector<std::string>& notes);

}  // namespace orrery
