#include <algorithm>

#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {
namespace {

constexpr ByGeneration ring_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
constexpr ByProtocol ring_base{6.6, 14, 8.4};
constexpr ByProtocol ring_nvlink{0.6, 1.9, 3.4}, ring_pcie{1.0, 2.5, 5.7}, ring_net{2.7, 4.0, 14};

class RingAlgorithm final : public NcclAlgorithm {
 public:
  RingAlgorithm() : NcclAlgorithm{"Ring", "ring"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    return tuned_time(graph, wait(graph, protocol), rate(graph, protocol));
  }

  // A thread of protocol LL moves 8 bytes to each rank.
  int channels(const NcclGraph& graph, NcclProtocol protocol) const override {
    const double share = protocol == NcclProtocol::ll ? graph.call.group.ranks : 1.0;
    return launched_channels(graph, protocol, share);
  }

  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    return model.ring(call, model.ring_steps(call));
  }

  // Its rounds: all of the ring's traffic but where it leaves the domain, by as many rings as the
  // members of a domain have NICs.
  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    return ring_bytes(call);
  }

 private:
  static double rate(const NcclGraph& graph, NcclProtocol protocol) {
    const double ratio = ring_ratio(graph.call);
    if (protocol == NcclProtocol::ll)
      return ratio * std::min(graph.bus / 2, figure(nccl_ll_most, graph));
    if (protocol == NcclProtocol::ll128) return ratio * capped(0.92 * graph.bus, ring_ll128, graph);
    return ratio * graph.bus;
  }

  static double wait(const NcclGraph& graph, NcclProtocol protocol) {
    const CollectiveCall& call = graph.call;
    const GroupShape& group = call.group;
    const bool all_reduce = call.kind == CollectiveKind::all_reduce;
    const bool simple = protocol == NcclProtocol::simple;
    const std::size_t p = protocol_index(protocol);
    const double all = ring_rounds(call.kind, group.ranks);
    const double outside = (all_reduce ? 2.0 : 1.0) * (group.domains - 1);
    const double post = simple ? 3.0 : 1.0;  // Intel hosts.
    const double net = std::max((group.per_domain == 1 ? nccl_tree_net : ring_net)[p], post);
    const double inside = (graph.system.wiring == NodeWiring::pcie ? ring_pcie : ring_nvlink)[p];
    const double wait = ring_base[p] + (all - outside) * inside + outside * net;
    // Large all-reduces of several nodes wait longer for each chunk of a ring.
    const bool waits = simple && all_reduce && group.domains > 1 &&
                       call.tensor.si() / (graph.channels * group.ranks) >= 64.0;
    return waits ? wait * (graph.generation == 0 ? 1.9 : 1.4) : wait;
  }
};

}  // namespace

const NcclAlgorithm& nccl_ring() { return the_algorithm<RingAlgorithm>(); }

}  // namespace orrery
