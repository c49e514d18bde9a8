#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/moe/placement_text.hpp"

namespace po = boost::program_options;

namespace orrery {

int run_place_experts(const Arguments& arguments) {
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  po::options_description options{"Options", 100};
  options.add_options()                                                                    //
      ("ep", text("N"), "ranks of the expert-parallel group")                              //
      ("redundant", text("N"), "slots for copies of the busiest experts (0)")              //
      ("groups", text("N"), "groups that the router picks from (n_group), to keep whole")  //
      ("nodes", text("N"), "nodes that groups are packed onto (1)")                        //
      ("json", "print the placement as orrery.placement/1")                                //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery place-experts TRACE --ep N [options]\n\n"
                 "A placement of experts for a routing trace, and its gain "
                 "(docs/explanation/moe.md).\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "which trace?" : "one trace at a time",
               "write like 'orrery place-experts trace.jsonl --ep 8'");
  constexpr int most = 1 << 16;
  const auto count = [&](const char* option, int minimum) {
    return parsed.has(option) ? parse_count(parsed.text(option), option, minimum, most) : minimum;
  };
  PlacementRequest request;
  request.ranks =
      parse_count(required(parsed, "ep", "write how many ranks: --ep 8"), "ep", 1, most);
  request.redundant = count("redundant", 0);
  request.groups = count("groups", 1);
  request.nodes = count("nodes", 1);
  const RoutingTrace trace = read_trace(parsed.words.front());
  const PlacementGain gain = place_experts(trace, request, {});
  std::cout << (parsed.has("json") ? placement_json(trace, request, gain)
                                   : placement_text(trace, request, gain));
  return exit_ok;
}

}  // namespace orrery
