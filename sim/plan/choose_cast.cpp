#include "sim/plan/choose_cast.hpp"

namespace orrery {
namespace {

// Through the other traffic at their neighbours' ports all members of a long ring may differ by how
// far they are from an odd one. On links that nobody else shares that hardly counts, and beyond so
// many roles it is given up. A straggler is who its own group waits for, wherever it is.
constexpr std::size_t most_exact_roles = 1024;
constexpr std::size_t most_exact_roles_of_stragglers = 48;

bool has_uniform_links(System system) {
  system.gpu_overrides.clear();
  return system.uniform();
}

}  // namespace

Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded) {
  if (system.uniform() && unfolded) return Cast::unfolded(placement);
  if (system.uniform() && placement.regular()) return Cast::folded(placement);
  std::vector<double> speeds;
  for (int r = 0; r < placement.ranks(); ++r) speeds.push_back(topology.gpu_speed(Rank{r}));
  if (unfolded) return Cast::unfolded_on(placement, topology, speeds);
  Cast exact = Cast::folded_on(placement, topology, speeds);
  const std::size_t most =
      system.gpu_overrides.empty() ? most_exact_roles : most_exact_roles_of_stragglers;
  if (exact.roles().size() <= most || !has_uniform_links(system)) return exact;
  return Cast::loosely_folded(placement, speeds);
}

}  // namespace orrery
