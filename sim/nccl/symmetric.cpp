#include <algorithm>
#include <cmath>

#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

// All figures: NVIDIA/nccl, src/symmetric.cc of v2.27.3, unchanged in src/sym_kernels.cc of v2.30
// (Apache-2.0).
namespace orrery {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr double gib_per_s = gib / 1e6;  // Bytes a microsecond.

// A rank's kernel reads and writes the buffers of the others: with a flag next to each word, which
// saves the barriers (LL), or in whole blocks; GPU by GPU, or through NVSwitches that multicast and
// reduce.
struct Kernel {
  NcclProtocol protocol;
  bool multimem;
};
constexpr Kernel kernels[] = {{NcclProtocol::ll, false},
                              {NcclProtocol::ll, true},
                              {NcclProtocol::simple, false},
                              {NcclProtocol::simple, true}};

// Bytes of a GPU's busier direction as NCCL counts them; us.
struct Prediction {
  Kernel kernel{};
  int blocks = 0;
  double bytes = 0.0, latency = 0.0, moving = 0.0, time = 0.0;
};

// NCCL's smooth min(x, ceiling) and max(0, x).
double softmin(double x, double ceiling, double softness) {
  return ceiling -
         softness * std::log1p((std::exp(ceiling / softness) - 1.0) * std::exp(-x / softness));
}
double softplus(double x) { return x >= 100.0 ? x : std::log1p(std::exp(x)); }

// The time of a kernel on the fewest blocks that are within 2.5 % of the fastest.
Prediction predicted(Kernel kernel, bool blackwell, const CollectiveCall& call) {
  const int n = call.group.ranks;
  const bool all_reduce = call.kind == CollectiveKind::all_reduce;
  const bool gather = call.kind == CollectiveKind::all_gather;
  const bool flags = kernel.protocol == NcclProtocol::ll;
  const double tensor = call.tensor.si(), share = tensor / n;
  double bytes = (n - 1.0) * share, multiplier = kernel.multimem ? 0.55 * n : 1.0;
  int most = 64;
  if (flags) {
    // Each word twice, some processing, and loops that are not unrolled.
    bytes = 9.0 * n * (all_reduce ? tensor : share);
    multiplier = kernel.multimem ? 1.1 : 1.0;
  } else if (all_reduce) {
    bytes = kernel.multimem ? share + tensor : 2.0 * bytes;
    multiplier = kernel.multimem ? n : 1.0;
  }
  if (kernel.multimem && (!flags || all_reduce)) most = ((blackwell ? 32 : 16) + n - 1) / n;
  const bool reduces_in_switch = kernel.multimem && all_reduce && !flags;
  double latency = flags ? 4.5 : 7.8;
  double a_block = (all_reduce ? 65.0 : 44.0) * gib_per_s;
  double peak = (reduces_in_switch ? 480.0 : 320.0) * gib_per_s;
  if (blackwell) {
    latency = flags ? (gather ? 8.5 : 11.0) : all_reduce ? 19.5 : 13.0;
    a_block = 55.0 * gib_per_s;
    peak = (reduces_in_switch ? 1000.0 : 600.0) * gib_per_s;
  }
  const auto on = [&](int blocks) {
    const double moving = bytes / softmin(blocks * a_block * multiplier, peak, a_block);
    return Prediction{kernel, blocks, bytes, latency, moving, latency + softplus(moving - 1.0)};
  };
  const Prediction fastest = on(most);
  for (int blocks = 1; blocks < most; ++blocks)
    if (const Prediction one = on(blocks); one.time <= 1.025 * fastest.time) return one;
  return fastest;
}

class SymmetricAlgorithm final : public NcclAlgorithm {
 public:
  SymmetricAlgorithm() : NcclAlgorithm{"Symmetric", "symmetric"} {}

  // The program must have registered its buffers as windows (NCCL_WIN_COLL_SYMMETRIC).
  bool is_default() const override { return false; }
  std::string needs() const override {
    return "one domain behind NVSwitches, an all_reduce, all_gather or reduce_scatter below 64 "
           "GiB, and of LL and Simple the protocol that NCCL takes for its size";
  }

  std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const override {
    const auto chosen = choose(graph.system, graph.call);
    if (!chosen || chosen->kernel.protocol != protocol) return std::nullopt;
    return microseconds(chosen->time);
  }

  int channels(const NcclGraph& graph, NcclProtocol) const override {
    return choose(graph.system, graph.call)->blocks;
  }

  // NCCL's prediction, but no faster than the ports. Its peak of reduction in the switch exceeds
  // them, as nccl-tests' bus bandwidth may: that is as fast as NVLS was measured.
  MaybeCost price(const CollectiveModel& model, const CollectiveCall& call) const override {
    const auto chosen = choose(model.system(), call);
    if (!chosen) return std::nullopt;
    CollectiveCost cost;
    cost.algorithm = name();
    cost.scale_up_bytes = wire_bytes(model.system(), chosen->kernel.protocol, call).inside;
    Seconds moving =
        std::max(microseconds(chosen->moving), cost.scale_up_bytes / model.system().scale_up);
    if (chosen->kernel.protocol == NcclProtocol::simple) {
      const CollectiveConstants& constants = model.constants();
      double efficiency = 1.0;
      if (chosen->kernel.multimem && call.kind == CollectiveKind::all_reduce)
        efficiency = constants.nvls_loop ? constants.nvls_loop->efficiency
                                         : constants.nvls_efficiency.value_or(1.0);
      moving = std::max(moving, Bytes{chosen->bytes} / (efficiency * model.nvlink()));
    }
    cost.scale_up_rate = cost.scale_up_bytes / moving;
    cost.latency = microseconds(chosen->latency + softplus(moving.si() * 1e6 - 1.0)) - moving;
    return cost;
  }

  // The bytes that arrive from all others, with LL a flag next to each word. A GPU's own part
  // passes the switch with the rest.
  WireBytes wire_bytes(const System& system, NcclProtocol protocol,
                       const CollectiveCall& call) const override {
    const int n = call.group.ranks;
    const bool all_reduce = call.kind == CollectiveKind::all_reduce;
    const Bytes share = call.tensor / n;
    if (protocol == NcclProtocol::ll)
      return {2.0 * (n - 1) * (all_reduce ? call.tensor : share), {}};
    if (has_multimem(system, call.group))
      return {all_reduce ? call.tensor + share : call.tensor, {}};
    return {(all_reduce ? 2.0 : 1.0) * (n - 1) * share, {}};
  }

 private:
  static bool has_multimem(const System& system, const GroupShape& group) {
    return system.in_network_reduction && group.ranks > 2;
  }

  // ncclSymkPickKernel() takes the least time, to which each block adds 2.5 %.
  static std::optional<Prediction> choose(const System& system, const CollectiveCall& call) {
    const bool scatter = call.kind == CollectiveKind::reduce_scatter;
    if (call.kind != CollectiveKind::all_reduce && call.kind != CollectiveKind::all_gather &&
        !scatter)
      return std::nullopt;
    if (call.group.domains > 1 || system.wiring != NodeWiring::nvswitch ||
        call.tensor.si() >= 64.0 * gib)
      return std::nullopt;
    std::optional<Prediction> best;
    const auto penalised = [](const Prediction& one) {
      return one.time * (1.0 + 0.025 * one.blocks);
    };
    for (const Kernel kernel : kernels) {
      const bool flags = kernel.protocol == NcclProtocol::ll;
      if (flags && (call.tensor.si() >= 2.0 * gib || (kernel.multimem && scatter))) continue;
      if (kernel.multimem && !has_multimem(system, call.group)) continue;
      const Prediction one =
          predicted(kernel, system.gpu.architecture == Architecture::blackwell, call);
      if (!best || penalised(one) < penalised(*best)) best = one;
    }
    return best;
  }
};

}  // namespace

const NcclAlgorithm& nccl_symmetric() { return the_algorithm<SymmetricAlgorithm>(); }

}  // namespace orrery
