#include "sim/training/memory_json.hpp"

#include <cmath>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }

}  // namespace

Json memory_json(const MemoryReport& memory) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    stages.push_back({{"stage", i},
                      {"weights_bytes", whole(stage.weights)},
                      {"gradients_bytes", whole(stage.gradients)},
                      {"optimizer_bytes", whole(stage.optimizer)},
                      {"activations_bytes", whole(stage.activations)},
                      {"other_bytes", whole(stage.other)},
                      {"peak_bytes", whole(stage.peak())}});
  }
  return {{"stages", std::move(stages)},
          {"peak_bytes", whole(memory.peak())},
          {"capacity_bytes", whole(memory.capacity)},
          {"fits", memory.fits()}};
}

}  // namespace orrery
