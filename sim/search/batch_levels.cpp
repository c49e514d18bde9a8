#include "sim/search/batch_levels.hpp"

#include <algorithm>
#include <set>

namespace orrery {

std::vector<BatchLevel> usual_batch_levels(std::int64_t most, int gpus) {
  std::vector<BatchLevel> levels;
  for (const std::int64_t limit : {2 * most, most, most / 2, most / 4}) {
    std::set<std::int64_t> batches;
    for (int degree = 1; degree <= 16 && gpus % degree == 0; degree *= 2) {
      const std::int64_t replicas = gpus / degree;
      const std::int64_t batch = limit / replicas * replicas;
      if (batch > limit / 2) batches.insert(batch);
    }
    if (!batches.empty()) levels.push_back({limit, {batches.begin(), batches.end()}, limit > most});
  }
  return levels;
}

std::vector<BatchLevel> batch_levels_of(const std::vector<std::int64_t>& batches) {
  std::vector<std::int64_t> falling = batches;
  std::sort(falling.rbegin(), falling.rend());
  std::vector<BatchLevel> levels{{2 * falling.front(), {2 * falling.front()}, true}};
  for (const std::int64_t batch : falling) levels.push_back({batch, {batch}, false});
  return levels;
}

}  // namespace orrery
