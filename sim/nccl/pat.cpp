#include <cmath>

#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {
namespace {

// Parallel aggregated trees: gathers and scatters of nodes with one GPU each.
class PatAlgorithm final : public NcclAlgorithm {
 public:
  PatAlgorithm() : NcclAlgorithm{"PAT", "PAT"} {}

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const CollectiveCall& call = graph.call;
    if (protocol != NcclProtocol::simple || facts(call.kind).passes != 1 ||
        call.group.per_domain != 1)
      return std::nullopt;
    const double wait = 8.0 + std::log2(call.group.domains) * 14.0 / 3.5 + call.group.ranks * 2.8;
    return tuned_time(graph, wait, ring_ratio(call) * 0.75 * graph.bus);
  }

  WireBytes wire_bytes(const System&, NcclProtocol, const CollectiveCall& call) const override {
    return ring_bytes(call);
  }
};

}  // namespace

const NcclAlgorithm& nccl_pat() { return the_algorithm<PatAlgorithm>(); }

}  // namespace orrery
