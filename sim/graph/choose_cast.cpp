#include "sim/graph/choose_cast.hpp"

namespace orrery {

Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded) {
  if (system.uniform()) return unfolded ? Cast::unfolded(placement) : Cast::folded(placement);
  std::vector<double> speeds;
  for (int r = 0; r < placement.ranks(); ++r) speeds.push_back(topology.gpu_speed(Rank{r}));
  if (unfolded) return Cast::unfolded_on(placement, topology, speeds);
  System of_equal_gpus = system;
  of_equal_gpus.gpu_overrides.clear();
  return of_equal_gpus.uniform() ? Cast::refined(placement, speeds)
                                 : Cast::folded_on(placement, topology, speeds);
}

}  // namespace orrery
