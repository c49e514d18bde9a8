#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {
namespace {

constexpr ByGeneration tree_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.7, 20}}};
constexpr ByGeneration tree_simple{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr ByProtocol tree_base{6.8, 14, 8.4};
constexpr ByProtocol tree_nvlink{0.6, 1.25, 4.0}, tree_pcie{1.0, 1.9, 4.0};

// The share of its bandwidth that a tree keeps, by powers of two from 64 B to 256 MiB; then the
// last one.
const std::array<std::vector<double>, std::size(nccl_protocols)> tree_correction{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1},
    {.9, .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9},
}};

// All-reduces over several domains: a chain inside each, and a double binary tree over them, up to
// reduce and down to broadcast.
class TreeAlgorithm final : public NcclAlgorithm {
 public:
  TreeAlgorithm() : NcclAlgorithm{"Tree", "tree"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const CollectiveCall& call = graph.call;
    if (!applies(call)) return std::nullopt;
    const auto& kept = tree_correction[protocol_index(protocol)];
    const double step = std::clamp(std::floor(std::log2(call.tensor.si() / 64.0)), 0.0,
                                   static_cast<double>(kept.size() - 1));
    const double rate = this->rate(graph, protocol) * kept[static_cast<std::size_t>(step)];
    const std::size_t p = protocol_index(protocol);
    const double inside = (graph.system.wiring == NodeWiring::pcie ? tree_pcie : tree_nvlink)[p];
    const double wait = tree_base[p] + 2.0 * ((call.group.per_domain - 1) * inside +
                                              std::log2(call.group.domains) * nccl_tree_net[p]);
    return tuned_time(graph, wait, rate);
  }

  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    if (!applies(call)) return std::nullopt;
    CollectiveCost cost = with_bytes_of_a_ring(model, call);
    const WireBytes wire = wire_bytes(model.system(), NcclProtocol::simple, call);
    cost.scale_up_bytes = wire.inside;
    cost.network_bytes = wire.outside;
    return cost;
  }

  // The bytes of a ring in the steps of a tree; between two domains those of a tree, which are half
  // of it on the network, where NCCL chooses trees for the largest messages.
  MaybeCost free_price(const CollectiveModel& model, const CollectiveCall& call) const override {
    if (!applies(call)) return std::nullopt;
    constexpr Bytes large{16.0 * 1024 * 1024 * 1024};
    if (call.group.domains == 2 &&
        model.tuner().choose({call.kind, large, call.group})->algorithm == this)
      return price(model, call);
    return with_bytes_of_a_ring(model, call);
  }

  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    return {chain_bytes(call), tree_bytes(call)};
  }
  CollectivePattern pattern() const override { return CollectivePattern::tree; }

 private:
  static bool applies(const CollectiveCall& call) {
    return call.kind == CollectiveKind::all_reduce && call.group.domains > 1;
  }

  CollectiveCost with_bytes_of_a_ring(const CollectiveModel& model,
                                      const CollectiveCall& call) const {
    CollectiveCost cost = model.ring(call, model.tree_steps(call));
    cost.algorithm = name();
    if (model.larger_than_a_node(call.group))
      cost.latency += model.climbing(call, cost.time() - cost.latency);
    return cost;
  }

  static double rate(const NcclGraph& graph, NcclProtocol protocol) {
    const double bus = graph.tree_bus;
    if (protocol == NcclProtocol::ll) return 0.5 * std::min(bus / 3.8, figure(nccl_ll_most, graph));
    if (protocol == NcclProtocol::simple) return 0.5 * capped(0.92 * bus, tree_simple, graph);
    return 0.5 * capped(120.0 / 128 * bus, tree_ll128, graph);
  }
};

}  // namespace

const NcclAlgorithm& nccl_tree() { return the_algorithm<TreeAlgorithm>(); }

}  // namespace orrery
