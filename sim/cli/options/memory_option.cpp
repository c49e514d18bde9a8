#include "sim/cli/options/memory_option.hpp"

#include <limits>

#include "sim/cost/memory/memory.hpp"

namespace orrery {

boost::program_options::options_description memory_option() {
  boost::program_options::options_description options{"What may not fit", 100};
  options.add_options()("ignore-memory",
                        "time a plan also where it cannot fit in the GPUs' memory; marked so");
  return options;
}

double memory_limit_of(const ParsedOptions& parsed) {
  return parsed.has("ignore-memory") ? std::numeric_limits<double>::infinity()
                                     : tolerated_share_of_memory;
}

}  // namespace orrery
