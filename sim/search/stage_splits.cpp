#include "sim/search/stage_splits.hpp"

#include <algorithm>

namespace orrery {

std::vector<StageLayers> splits_beside(const Scenario& scenario) {
  const int stages = scenario.plan.virtual_stages();
  const int layers = static_cast<int>(scenario.model.layers);
  if (stages < 2) return {};
  std::vector<StageLayers> splits;
  const int least = std::max(1, layers / stages);
  for (int each = least; each <= least + 1; ++each) {
    const int ends = layers - each * (stages - 2);
    for (int first = std::max(0, each - 4); first <= each + 2; ++first) {
      const int last = ends - first;
      if (last < std::max(0, each - 4) || last > each + 2) continue;
      std::vector<int> split(static_cast<std::size_t>(stages), each);
      split.front() = first;
      split.back() = last;
      if (split == scenario.layers_of) continue;
      if (std::find(splits.begin(), splits.end(), StageLayers{split}) == splits.end())
        splits.push_back({split});
    }
  }
  return splits;
}

}  // namespace orrery
