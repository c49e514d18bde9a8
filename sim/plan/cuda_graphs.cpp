#include "sim/plan/cuda_graphs.hpp"

namespace orrery {

const std::vector<std::string>& cuda_graph_names() {
  static const std::vector<std::string> names{"none", "router", "attention", "attention+router",
                                              "step"};
  return names;
}

}  // namespace orrery
