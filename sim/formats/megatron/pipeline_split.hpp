#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {

/// How a run cuts its layers into virtual stages.
struct PipelineSplit {
  std::int64_t vpp = 1;
  StageLayers layers;  ///< Chosen where the arguments say which stage has how many.
};

/// Of `layers` layers on `stages` stages: --pipeline-model-parallel-layout; or the layers of the
/// first and the last stage (--decoder-first-pipeline-num-layers, -last-), over which the chunks of
/// a stage are even; or embedding and loss that count as a layer
/// (--account-for-embedding-in-pipeline-split, -loss-); else even. `notes` gains what is priced
/// otherwise. Errors (bad_input): what does not divide.
PipelineSplit pipeline_split(const MegatronArguments& arguments, std::int64_t layers,
                             std::int64_t stages, std::vector<std::string>& notes);

}  // namespace orrery
