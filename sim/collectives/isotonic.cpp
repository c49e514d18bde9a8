#include "sim/collectives/isotonic.hpp"

#include <algorithm>
#include <iterator>

namespace orrery {

std::vector<double> never_falling(const std::vector<double>& values) {
  std::vector<std::vector<double>> blocks;  // Each sorted.
  const auto median = [](const std::vector<double>& block) {
    return block[(block.size() - 1) / 2];
  };
  for (const double value : values) {
    std::vector<double> block{value};
    while (!blocks.empty() && median(blocks.back()) > median(block)) {
      std::vector<double> both;
      std::merge(block.begin(), block.end(), blocks.back().begin(), blocks.back().end(),
                 std::back_inserter(both));
      block = std::move(both);
      blocks.pop_back();
    }
    blocks.push_back(std::move(block));
  }
  std::vector<double> rising;
  for (const std::vector<double>& block : blocks)
    rising.insert(rising.end(), block.size(), median(block));
  return rising;
}

}  // namespace orrery
