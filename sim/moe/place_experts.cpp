#include "sim/moe/place_experts.hpp"

#include <algorithm>
#include <string>

namespace orrery {
namespace {

void check(const RoutingTrace& trace, const PlacementRequest& request, const Place& at) {
  const auto divides = [&](int all, int parts, const char* key, const std::string& problem) {
    if (all % parts != 0) fail_infeasible(at / key, problem, "take numbers that divide");
  };
  const std::string on = " on " + std::to_string(request.ranks) + " ranks";
  divides(trace.experts, request.ranks, "ep", std::to_string(trace.experts) + " experts" + on);
  divides(request.redundant, request.ranks, "redundant",
          std::to_string(request.redundant) + " redundant experts" + on);
  divides(
      trace.experts, request.groups, "groups",
      std::to_string(trace.experts) + " experts in " + std::to_string(request.groups) + " groups");
  const std::string nodes = " on " + std::to_string(request.nodes) + " nodes";
  divides(request.ranks, request.nodes, "nodes", std::to_string(request.ranks) + " ranks" + nodes);
  divides(request.groups, request.nodes, "nodes",
          std::to_string(request.groups) + " groups of experts" + nodes);
  divides(request.redundant, request.nodes, "nodes",
          std::to_string(request.redundant) + " redundant experts" + nodes);
}

std::vector<double> loads_in(const RoutingTrace& trace, int layer, int micro_batch) {
  std::vector<double> loads(static_cast<std::size_t>(trace.experts), 0.0);
  for (int rank = 0; rank < trace.ranks; ++rank) {
    const auto row = trace.of(layer, micro_batch, rank);
    for (std::size_t e = 0; e < row.size(); ++e) loads[e] += row[e];
  }
  return loads;
}

double mean_of(const PlacementGain& gain, double PlacementGain::Layer::*figure) {
  double sum = 0.0;
  for (const PlacementGain::Layer& layer : gain.layers) sum += layer.*figure;
  return sum / static_cast<double>(gain.layers.size());
}

}  // namespace

double PlacementGain::before() const { return mean_of(*this, &Layer::before); }
double PlacementGain::after() const { return mean_of(*this, &Layer::after); }

double PlacementGain::speedup() const {
  const double after = mean_of(*this, &Layer::busiest_after);
  return after > 0.0 ? mean_of(*this, &Layer::busiest_before) / after : 1.0;
}

PlacementGain place_experts(const RoutingTrace& trace, const PlacementRequest& request,
                            const Place& at) {
  check(trace, request, at);
  const ExpertPlacement contiguous = contiguous_placement(trace.experts, request.ranks);
  PlacementGain gain;
  for (int layer = 0; layer < trace.layers; ++layer) {
    PlacementGain::Layer placed;
    placed.placement = balanced_placement(trace.totals(layer), request.ranks, request.redundant,
                                          request.groups, request.nodes);
    placed.before = placed.after = 0.0;
    for (int micro_batch = 0; micro_batch < trace.micro_batches; ++micro_batch) {
      const std::vector<double> loads = loads_in(trace, layer, micro_batch);
      const std::vector<double> before = rank_loads(contiguous, loads);
      const std::vector<double> after = rank_loads(placed.placement, loads);
      placed.before += imbalance(before) / trace.micro_batches;
      placed.after += imbalance(after) / trace.micro_batches;
      placed.busiest_before += *std::max_element(before.begin(), before.end());
      placed.busiest_after += *std::max_element(after.begin(), after.end());
    }
    gain.layers.push_back(std::move(placed));
  }
  return gain;
}

}  // namespace orrery
