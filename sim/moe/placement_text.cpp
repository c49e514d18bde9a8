#include "sim/moe/placement_text.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"

namespace orrery {

std::string placement_text(const RoutingTrace& trace, const PlacementRequest& request,
                           const PlacementGain& gain) {
  Table table{{{"layer"}, {"before"}, {"after"}}};
  for (std::size_t layer = 0; layer < gain.layers.size(); ++layer)
    table.add_row({std::to_string(layer), fixed(gain.layers[layer].before, 3),
                   fixed(gain.layers[layer].after, 3)});
  const auto count = [](int n, const char* what) {
    const bool sibilant = what[std::char_traits<char>::length(what) - 1] == 'h';
    return std::to_string(n) + " " + what + (n == 1 ? "" : sibilant ? "es" : "s");
  };
  return count(trace.layers, "layer") + ", " + count(trace.micro_batches, "micro-batch") + ", " +
         count(trace.experts, "expert") + " and " + std::to_string(request.redundant) +
         " redundant on " + count(request.ranks, "rank") +
         "\nbusiest rank over the mean, mean over micro-batches:\n\n" + table.text() +
         "\nmean over layers " + fixed(gain.before(), 3) + " before, " + fixed(gain.after(), 3) +
         " after; experts compute " + fixed(gain.speedup(), 2) + " times as fast\n";
}

std::string placement_json(const RoutingTrace& trace, const PlacementRequest& request,
                           const PlacementGain& gain) {
  using Json = nlohmann::ordered_json;
  Json layers = Json::array();
  for (std::size_t layer = 0; layer < gain.layers.size(); ++layer)
    layers.push_back({{"layer", layer},
                      {"max_over_mean_before", gain.layers[layer].before},
                      {"max_over_mean_after", gain.layers[layer].after},
                      {"expert_of_slot", gain.layers[layer].placement.expert_of}});
  return Json{{"schema", "orrery.placement/1"},
              {"trace", trace.file},
              {"ranks", request.ranks},
              {"slots_per_rank", gain.layers.front().placement.slots_per_rank()},
              {"redundant_experts", request.redundant},
              {"max_over_mean_before", gain.before()},
              {"max_over_mean_after", gain.after()},
              {"expert_speedup", gain.speedup()},
              {"layers", std::move(layers)}}
             .dump(2) +
         "\n";
}

}  // namespace orrery
