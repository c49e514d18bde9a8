#include <algorithm>

#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {
namespace {

// Each member reduces its share of an all-reduce inside the domain, sends it to the fabric's
// switches, which reduce it on its way up, and gets the sum back: one crossing of the network, and
// half a ring's bytes. Protocol Simple alone.
class CollnetAlgorithm : public NcclAlgorithm {
 public:
  using NcclAlgorithm::NcclAlgorithm;

  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    return {chain_bytes(call), call.tensor / call.group.per_domain};
  }
  CollectivePattern pattern() const override { return CollectivePattern::switches; }

 protected:
  static bool applies(const System& system, NcclProtocol protocol, const CollectiveCall& call) {
    return system.fabric_reduction && call.group.domains > 1 && protocol == NcclProtocol::simple &&
           call.kind == CollectiveKind::all_reduce;
  }
};

class CollnetDirect final : public CollnetAlgorithm {
 public:
  CollnetDirect() : CollnetAlgorithm{"CollnetDirect", "CollNet"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const int members = graph.call.group.per_domain;
    if (!applies(graph.system, protocol, graph.call) || members > most_members) return std::nullopt;
    // GPUs a channel, and half of what exceeds one: full speed if every GPU has a NIC.
    const double share = 1.0 * members / graph.channels;
    const double rate =
        0.5 * graph.bus / (share - (share - 1.0) / 2) * (graph.generation >= 2 ? 0.85 : 1.0);
    const double wait = 2.0 * (std::min(1, members - 1) * inside + (members - 1) * fan) + net;
    return tuned_time(graph, wait, rate);
  }

  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    if (!applies(model.system(), NcclProtocol::simple, call)) return std::nullopt;
    const int hops = call.group.per_domain > 1 ? 2 : 0;
    const WireBytes wire = wire_bytes(model.system(), NcclProtocol::simple, call);
    CollectiveCost cost = model.ring(call, static_cast<double>(hops) * model.hop() +
                                               model.network_hop(call.group, wire.outside));
    cost.algorithm = name();
    cost.scale_up_bytes = wire.inside;
    cost.network_bytes = wire.outside;
    return cost;
  }

 private:
  // GPUs of a node; us a hop inside it, for each further GPU, and over the network.
  static constexpr int most_members = 8;
  static constexpr double inside = 3.7, fan = 0.4, net = 31;
};

class CollnetChain final : public CollnetAlgorithm {
 public:
  CollnetChain() : CollnetAlgorithm{"CollnetChain", "CollNet-chain"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    if (!applies(graph.system, protocol, graph.call)) return std::nullopt;
    constexpr double inside = 2.8, net = 30;  // us a hop.
    return tuned_time(graph, 2.0 * (graph.call.group.per_domain - 1) * inside + net,
                      0.5 * graph.bus);
  }
};

}  // namespace

const NcclAlgorithm& nccl_collnet_direct() { return the_algorithm<CollnetDirect>(); }

const NcclAlgorithm& nccl_collnet_chain() { return the_algorithm<CollnetChain>(); }

}  // namespace orrery
