#include "sim/model/mixers/side_by_side.hpp"

#include "sim/model/model.hpp"

namespace orrery {

std::vector<WeightMatrix> SideBySide::matrices(std::int64_t hidden) const {
  std::vector<WeightMatrix> all;
  for (const MixerPointer& mixer : mixers)
    for (const WeightMatrix& matrix : mixer->matrices(hidden)) all.push_back(matrix);
  return all;
}

std::int64_t SideBySide::vectors(std::int64_t hidden) const {
  std::int64_t count = 0;
  for (const MixerPointer& mixer : mixers) count += mixer->vectors(hidden);
  return count;
}

KeptBytes SideBySide::kept(std::int64_t hidden) const {
  KeptBytes sum;
  for (const MixerPointer& mixer : mixers) sum += mixer->kept(hidden);
  return sum;
}

bool SideBySide::describe(Model& layer) const {
  Model described = layer;
  int attentions = 0;
  for (const MixerPointer& mixer : mixers) {
    if (mixer->describe(described))
      ++attentions;
    else if (!described.mixer && mixer->work(layer.hidden, 1))
      described.mixer = mixer;
    else
      return false;
  }
  if (attentions != 1 || !described.mixer) return false;
  layer = described;
  return true;
}

MixerPointer parse_side_by_side(const JsonValue& json) {
  json.allow_only({"kind", "of"});
  auto all = std::make_shared<SideBySide>();
  const JsonValue parts = json.at("of");
  for (const JsonValue& part : parts.elements()) {
    all->mixers.push_back(parse_mixer(part));
    if (all->mixers.back()->kind() == "parallel")
      part.fail("lies beside others, and is several mixers itself", "write them side by side");
  }
  if (all->mixers.size() < 2)
    parts.fail("has no two mixers", "write one by itself, without \"parallel\"");
  return all;
}

}  // namespace orrery
