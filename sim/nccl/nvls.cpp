#include <algorithm>
#include <cmath>

#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {
namespace {

constexpr ByGeneration tree_nvls{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr std::array<double, 4> nvls_efficiency{0, 0, 0.85, 0.74};

// NVLS moves a tensor in loops of channels x ranks x chunk; the chunk shrinks for small tensors
// (NVIDIA/nccl src/enqueue.cc, 16 channels on Hopper: src/transport/nvls.cc).
constexpr int loop_channels = 16;
constexpr double kib = 1024.0;

struct LoopChunk {
  double loops;      // Least number of loops for the next larger chunk.
  double of_larger;  // That chunk.
};
constexpr LoopChunk loop_chunks[] = {{64, 128 * kib}, {8, 64 * kib}, {2, 32 * kib}};

double loop_chunk(double bytes, int ranks) {
  for (const LoopChunk& one : loop_chunks)
    if (bytes >= one.loops * loop_channels * ranks * one.of_larger) return one.of_larger;
  return 16 * kib;
}

// The loop was fitted from 2 MiB to 16 GiB, in nodes of 8.
constexpr Bytes smallest_loop{2.0 * kib * kib};

// Reduction in the NVSwitches, which pull the tensor out of each port and multicast the sums.
class NvlsBase : public NcclAlgorithm {
 public:
  using NcclAlgorithm::NcclAlgorithm;

  bool uses_nvls() const override { return true; }
  int channels(const NcclGraph& graph, NcclProtocol) const override {
    return graph.generation == 3 ? 24 : 16;
  }
  MaybeCost free_price(const CollectiveModel& model, const CollectiveCall& call) const override {
    return call.group.per_domain > 2 ? price(model, call) : std::nullopt;
  }

 protected:
  static bool in_switch(const NcclGraph& graph, NcclProtocol protocol) {
    return graph.system.in_network_reduction && graph.call.group.per_domain > 1 &&
           protocol == NcclProtocol::simple;
  }

  // GB/s of the bus, of `channels` of which one is lost.
  static double bus(const NcclGraph& graph, double channels) {
    const double nvls =
        graph.nvlink * nvls_efficiency[graph.generation] * (channels - 1) / channels;
    const int p = graph.call.group.per_domain;
    return graph.call.kind == CollectiveKind::all_reduce ? nvls * 2.0 : nvls * ((p - 1.0) / p);
  }

  // An all-reduce of `ranks` in one domain: each port carries the tensor once, and 1/n of it for
  // the multicast.
  static CollectiveCost all_reduce(const CollectiveModel& model, Bytes tensor, int ranks) {
    const CollectiveConstants& constants = model.constants();
    CollectiveCost cost = model.priced();
    cost.scale_up_bytes = (1.0 + 1.0 / ranks) * tensor;
    // The formula's latency counts a ring's steps; it was fitted so in one node of at most 8.
    const Seconds latency = constants.base + 2.0 * (std::min(ranks, 8) - 1) * model.hop();
    if (constants.nvls_loop && ranks <= 8 && tensor >= smallest_loop) {
      const auto& loop = *constants.nvls_loop;
      const Bytes loop_bytes{loop_channels * ranks * loop_chunk(tensor.si(), ranks)};
      const Seconds port = cost.scale_up_bytes / (loop.efficiency * model.nvlink());
      const Seconds first = std::min(1.0, loop_bytes / tensor) * port + loop.step;
      cost.scale_up_rate = cost.scale_up_bytes / (port + tensor / loop_bytes * loop.step);
      cost.latency = latency + loop.fill * first;
      return cost;
    }
    cost.scale_up_rate = *constants.nvls_efficiency * model.nvlink();
    const double scale = ranks / 8.0;
    const CollectiveConstants::Ramp ramp{scale * constants.nvls_ramp.height,
                                         scale * constants.nvls_ramp.half};
    cost.latency = latency + ramp.at(wire_share(CollectiveKind::all_reduce, ranks) * tensor);
    return cost;
  }
};

// The prices of the algorithms, of which a larger message never takes less: larger chunks make NCCL
// faster by some percent, but the most that a smaller message takes counts.
template <class Price>
CollectiveCost never_falling_price(Bytes tensor, int ranks, const Price& price) {
  CollectiveCost cost = price(tensor);
  const auto at_least_before = [&](Bytes size) {
    if (tensor < size) return;
    const Seconds before = price(Bytes{std::nextafter(size.si(), 0.0)}).time();
    cost.latency += std::max(Seconds{}, before - cost.time());
  };
  at_least_before(smallest_loop);
  for (const LoopChunk& one : loop_chunks)
    at_least_before(Bytes{one.loops * loop_channels * ranks * one.of_larger});
  return cost;
}

class NvlsAlgorithm final : public NvlsBase {
 public:
  NvlsAlgorithm() : NvlsBase{"NVLS", "NVLS"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const CollectiveCall& call = graph.call;
    const bool has = call.kind == CollectiveKind::all_reduce || facts(call.kind).passes == 1;
    if (!has || !in_switch(graph, protocol) || call.group.domains > 1) return std::nullopt;
    return tuned_time(graph, 25.0, ring_ratio(call) * bus(graph, channels(graph, protocol)));
  }

  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    if (call.kind != CollectiveKind::all_reduce || call.group.domains > 1 ||
        !model.reduces_in_nvswitch(call.group))
      return std::nullopt;
    CollectiveCost cost = never_falling_price(call.tensor, call.group.ranks, [&](Bytes tensor) {
      return all_reduce(model, tensor, call.group.ranks);
    });
    cost.algorithm = name();
    return cost;
  }

  // Gathers and scatters load one direction more: it counts.
  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    const double share = 1.0 / call.group.per_domain;
    const bool all_reduce = call.kind == CollectiveKind::all_reduce;
    return {all_reduce ? (1.0 + share) * call.tensor : call.tensor, {}};
  }
};

// NVLS inside each domain leaves every member a share, which trees over the domains reduce: two
// domains swap it; in a double binary tree an inner node sends it to a parent, or to two children.
class NvlsTree final : public NvlsBase {
 public:
  NvlsTree() : NvlsBase{"NVLSTree", "NVLS-tree"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const GroupShape& group = graph.call.group;
    if (!in_switch(graph, protocol) || group.domains == 1 ||
        graph.call.kind != CollectiveKind::all_reduce)
      return std::nullopt;
    const double channels = this->channels(graph, protocol);
    double rate = bus(graph, channels);
    rate = std::min(rate, graph.nic * group.per_domain * (group.domains == 2 ? 2.0 : 1.0));
    rate = std::min(rate, channels * figure(tree_nvls, graph));
    return tuned_time(graph, 25.0 + 2.0 * std::log2(group.domains) * 20.9, 0.5 * rate);
  }

  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    const GroupShape& group = call.group;
    if (call.kind != CollectiveKind::all_reduce || group.domains == 1 ||
        !model.reduces_in_nvswitch(group))
      return std::nullopt;
    return never_falling_price(call.tensor, group.per_domain, [&](Bytes tensor) {
      return over_domains(model, {call.kind, tensor, group});
    });
  }

  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    return {(1.0 + 1.0 / call.group.per_domain) * call.tensor, tree_bytes(call)};
  }
  CollectivePattern pattern() const override { return CollectivePattern::tree; }

 private:
  CollectiveCost over_domains(const CollectiveModel& model, const CollectiveCall& call) const {
    const GroupShape& group = call.group;
    const CollectiveConstants& constants = model.constants();
    CollectiveCost cost = all_reduce(model, call.tensor, group.per_domain);
    cost.algorithm = name();
    cost.tag = Tag::default_value;
    cost.scale_up_rate = constants.nvls_tree_share * cost.scale_up_rate;
    cost.network_bytes = wire_bytes(model.system(), NcclProtocol::simple, call).outside;
    cost.network_rate = model.leaving(group.per_domain);
    const Seconds moving = cost.time() - cost.latency;
    cost.latency += model.tree_latency(call);
    // The two published pairs of B200 nodes do not agree on it (between-nodes.json); racks have it.
    if (constants.nvls_loop || model.larger_than_a_node(group))
      cost.latency += model.climbing(call, moving);
    return cost;
  }
};

}  // namespace

const NcclAlgorithm& nccl_nvls() { return the_algorithm<NvlsAlgorithm>(); }

const NcclAlgorithm& nccl_nvls_tree() { return the_algorithm<NvlsTree>(); }

}  // namespace orrery
