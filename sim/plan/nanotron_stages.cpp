#include "sim/plan/nanotron_stages.hpp"

#include <cassert>

namespace orrery {

std::vector<int> nanotron_stages(const Model& model, int stages) {
  assert(!model.experts && stages >= 1 && stages <= model.layers);
  const double head_width = static_cast<double>(model.hidden / model.heads);
  const double layer = (4.0 * static_cast<double>(model.heads) * head_width +
                        (model.gated ? 3.0 : 2.0) * static_cast<double>(model.ffn)) *
                       static_cast<double>(model.hidden);
  const double head = static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  const double all = layer * model.layers + head;
  std::vector<int> of(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (int done = 1; done <= model.layers; ++done) {
    ++of[stage];
    const double share = static_cast<double>(stage + 1) / static_cast<double>(stages);
    if (layer * done > all * share) ++stage;
  }
  return of;
}

}  // namespace orrery
