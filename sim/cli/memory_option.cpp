#include "sim/cli/memory_option.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <limits>

#include "sim/core/quantity_text.hpp"
#include "sim/layers/memory.hpp"

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

boost::program_options::options_description host_memory_option() {
  boost::program_options::options_description options{"What this machine has to hold", 100};
  options.add_options()(
      "host-memory", boost::program_options::value<std::string>()->value_name("BYTES"),
      "what the simulation may take of this machine's memory (default: half, at most "
      "6 GB, some 20 million tasks)");
  return options;
}

Bytes host_memory_of(const ParsedOptions& parsed) {
  if (parsed.has("host-memory"))
    return parse_bytes(parsed.text("host-memory"), {"--host-memory", ""});
  // What fits in 6 GB takes a minute at the most: a plan that asks for more by mistake is told.
  constexpr Bytes most{6e9};
  return std::min(most, Bytes{0.5 * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(::sysconf(_SC_PAGESIZE))});
}

}  // namespace orrery
