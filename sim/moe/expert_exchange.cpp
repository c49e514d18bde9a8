#include "sim/moe/expert_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// The parts of a pipelined kernel overlap; near the ridge each of them still adds to the time.
Seconds overlapped_time(Seconds a, Seconds b, Seconds c) {
  const auto fourth = [](Seconds part) { return std::pow(part.si(), 4.0); };
  return Seconds{std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)))};
}

Seconds at_rate(Bytes bytes, const std::optional<BytesPerSecond>& rate) {
  return rate ? bytes / *rate : Seconds{};
}

// Defaults of the kernels: DeepEP, deep_ep/buffer.py, num_sms; Megatron Core,
// transformer_config.py, moe_hybridep_num_sms.
constexpr int normal_multiprocessors = 20;
constexpr int hybrid_multiprocessors = 16;

int chosen(const ExchangeShape& shape, int otherwise) {
  return shape.multiprocessors > 0 ? shape.multiprocessors : otherwise;
}

// Low latency gives each group of warps an expert, and as many multiprocessors as groups take turns
// (DeepEP csrc/kernels/internode_ll.cu): with few experts, few multiprocessors send.
int low_latency_multiprocessors(std::int64_t experts, int of_gpu) {
  const std::int64_t turns = (experts + of_gpu - 1) / of_gpu;
  return static_cast<int>((experts + turns - 1) / turns);
}

}  // namespace

CopyBytes copy_bytes(ExpertDispatcher dispatcher, const ExchangeShape& shape) {
  const auto hidden = static_cast<double>(shape.hidden);
  const auto k = static_cast<double>(shape.top_k);
  const double unquantised = unquantised_bytes(shape.dispatched);
  const double element = is_narrow(shape.dispatched) ? 1.0 + 4.0 / 128.0 : unquantised;
  const bool deepep =
      dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::deepep_low_latency;
  // Each expert's index has 8 bytes and its weight 4, and the token's origin 16; the weights travel
  // back (DeepEP csrc/kernels/intranode.cu).
  const double there = deepep ? 12.0 * k + 16.0 : 0.0;
  const double back = deepep ? 4.0 * k + 16.0 : 0.0;
  // A weight for each expert of the domain (DeepEP, docs/Hybrid-EP_Implementation.md, prob_buffer).
  if (dispatcher == ExpertDispatcher::hybridep)
    return {Bytes{hidden * element +
                  4.0 * static_cast<double>(shape.experts) / std::max(1, shape.group.domains)},
            Bytes{hidden * unquantised}};
  return {Bytes{hidden * element + there}, Bytes{hidden * unquantised + back}};
}

// The cost of NCCL's even all-to-all, with the bytes of the busiest ports.
CollectiveCost ExpertExchange::all_to_all(Bytes copy, const ExchangeShape& shape,
                                          const ExchangeLoad& load) const {
  const Bytes tensor = load.tokens * static_cast<double>(shape.top_k) * copy;
  CollectiveCost cost = collective_(CollectiveKind::all_to_all, tensor, shape.group);
  cost.scale_up_bytes = load.direct.scale_up * copy;
  cost.network_bytes = load.direct.network * copy;
  return cost;
}

// The hops follow each other (Tutel, arXiv 2206.03382, 2DH): fewer and longer messages. The shorter
// hop's time goes into the latency, so that both ports' bytes can still be contended for.
CollectiveCost ExpertExchange::hierarchical(Bytes copy, const ExchangeShape& shape,
                                            const ExchangeLoad& load) const {
  const GroupShape group = shape.group;
  if (group.domains == 1 || group.per_domain == 1) return all_to_all(copy, shape, load);
  const Bytes tensor = load.tokens * static_cast<double>(shape.top_k) * copy;
  CollectiveCost inside =
      collective_(CollectiveKind::all_to_all, tensor, {group.per_domain, 1, group.per_domain});
  CollectiveCost rail =
      collective_(CollectiveKind::all_to_all, tensor, {group.domains, group.domains, 1});
  inside.scale_up_bytes = load.rails.scale_up * copy;
  rail.network_bytes = load.rails.network * copy;
  CollectiveCost cost = rail;
  cost.algorithm = "hierarchical";
  cost.scale_up_bytes = inside.scale_up_bytes;
  cost.scale_up_rate = inside.scale_up_rate;
  cost.latency = Seconds{};
  cost.latency = inside.time() + rail.time() - cost.time();
  cost.channels = std::max(inside.channels, rail.channels);
  cost.tag = Tag::default_value;
  return cost;
}

CollectiveCost ExpertExchange::kernel(ExpertDispatcher dispatcher, const ExchangeKernel& kernel,
                                      const ExchangeKernel::Step& step, Bytes copy,
                                      const ExchangeShape& shape, const ExchangeLoad& load) const {
  const bool pairwise = dispatcher == ExpertDispatcher::deepep_low_latency;
  const bool hybrid = dispatcher == ExpertDispatcher::hybridep;
  const bool remote = shape.group.domains > 1;
  const ExchangeConstants& constants = remote ? step.remote : step.local;
  const ExchangeLoad::Ports& ports = pairwise ? load.direct : load.once;
  const System& system = collective_.system();
  const BytesPerSecond nic =
      system.network_efficiency * system.nics_per_node / system.gpus_per_node * system.nic;

  CollectiveCost cost;
  cost.algorithm = hybrid ? "Hybrid-EP" : "DeepEP";
  cost.protocol = pairwise ? "low latency" : "normal";
  cost.channels = pairwise
                      ? low_latency_multiprocessors(shape.experts, system.gpu.multiprocessors)
                      : chosen(shape, hybrid ? hybrid_multiprocessors : normal_multiprocessors);
  cost.tag =
      (remote ? kernel.measured_remote : kernel.measured) ? Tag::interpolated : Tag::default_value;
  cost.latency = constants.base + static_cast<double>(shape.experts) / 128.0 * constants.expert +
                 copy.si() / 1e3 * constants.token;
  if (remote)
    cost.latency += constants.network_base + std::log2(shape.group.domains) * constants.network_hop;

  cost.scale_up_bytes = ports.scale_up * copy;
  cost.network_bytes = ports.network * copy;
  const double received = pairwise ? 0.0 : load.received;
  const Seconds copying =
      (at_rate(received * copy, constants.copy_rate) + received * constants.copy +
       at_rate(load.tokens * copy, constants.token_rate)) /
      cost.channels;
  const Seconds body =
      overlapped_time(cost.scale_up_bytes / (constants.scale_up_efficiency * system.scale_up),
                      cost.network_bytes / nic, copying);
  // The duration of the kernel sets the rates of both ports.
  cost.scale_up_rate = cost.scale_up_bytes / body;
  cost.network_rate = cost.network_bytes / body;
  if (cost.scale_up_bytes.si() <= 0.0 && cost.network_bytes.si() <= 0.0) cost.latency += body;
  return cost;
}

ExchangeCost ExpertExchange::operator()(ExpertDispatcher dispatcher, const ExchangeShape& shape,
                                        const ExchangeLoad& load) const {
  assert(shape.hidden > 0 && shape.top_k > 0 && shape.experts >= shape.top_k);
  if (shape.group.ranks == 1 || load.tokens <= 0.0) return {};
  const CopyBytes bytes = copy_bytes(dispatcher, shape);
  const auto both = [&](auto price) {
    return ExchangeCost{price(bytes.dispatch), price(bytes.combine)};
  };
  switch (dispatcher) {
    case ExpertDispatcher::all_to_all:
      return both([&](Bytes copy) { return all_to_all(copy, shape, load); });
    case ExpertDispatcher::hierarchical:
      return both([&](Bytes copy) { return hierarchical(copy, shape, load); });
    case ExpertDispatcher::all_gather: {
      const double tokens = load.tokens * shape.group.ranks;
      return {collective_(CollectiveKind::all_gather, tokens * bytes.dispatch, shape.group),
              collective_(CollectiveKind::reduce_scatter, tokens * bytes.combine, shape.group)};
    }
    case ExpertDispatcher::deepep:
    case ExpertDispatcher::deepep_low_latency:
    case ExpertDispatcher::hybridep: {
      const ExchangeKernels& known = collective_.exchange_kernels();
      const ExchangeKernel& of = dispatcher == ExpertDispatcher::deepep ? known.deepep
                                 : dispatcher == ExpertDispatcher::hybridep
                                     ? known.hybridep
                                     : known.deepep_low_latency;
      return {kernel(dispatcher, of, of.dispatch, bytes.dispatch, shape, load),
              kernel(dispatcher, of, of.combine, bytes.combine, shape, load)};
    }
  }
  return {};
}

}  // namespace orrery
