#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/moe/placement_text.hpp"

namespace orrery {

int run_place_experts(const Arguments& arguments) {
  constexpr int most = 1 << 16;
  PlacementRequest request;
  bool json = false;
  Options options;
  options.add("ep", "N", "ranks of the expert-parallel group", request.ranks, Counted{1, most});
  options.add("redundant", "N", "slots for copies of the busiest experts (0)", request.redundant,
              Counted{0, most});
  options.add("groups", "N", "groups that the router picks from (n_group), to keep whole",
              request.groups, Counted{1, most});
  options.add("nodes", "N", "nodes that groups are packed onto (1)", request.nodes,
              Counted{1, most});
  options.add("json", "print the placement as orrery.placement/1", json);
  options.help();
  if (!options.read(
          arguments,
          "usage: orrery place-experts TRACE --ep N [options]\n\n"
          "A placement of experts for a routing trace, and its gain (docs/explanation/moe.md)."))
    return exit_ok;
  const std::string& file =
      options.only_word("which trace?", "one trace at a time",
                        "write like 'orrery place-experts trace.jsonl --ep 8'");
  options.required("ep", "write how many ranks: --ep 8");
  const RoutingTrace trace = read_trace(file);
  const PlacementGain gain = place_experts(trace, request, {});
  std::cout << (json ? placement_json(trace, request, gain) : placement_text(trace, request, gain));
  return exit_ok;
}

}  // namespace orrery
