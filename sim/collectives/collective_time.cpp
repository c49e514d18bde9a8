#include "sim/collectives/collective_time.hpp"

#include <algorithm>

namespace orrery {

CollectiveTime::CollectiveTime(const System& system, const CollectiveOptions& options)
    : system_{system},
      options_{options},
      model_{system, options.alone},
      measurements_{system, model_.constants(), options.left_out, options.alone} {}

const ExchangeKernels& CollectiveTime::exchange_kernels() const {
  if (!exchange_kernels_)
    exchange_kernels_ = read_exchange_kernels(system_.gpu.name, options_.left_out_exchange);
  return *exchange_kernels_;
}

// A cost that takes `factor` times as long. Bytes stay those on the wire; rates are scaled, but not
// above the wire's for so many members of a domain, and the latency takes the remainder.
CollectiveCost CollectiveTime::stretched(CollectiveCost cost, double factor, int members) const {
  const Seconds time = factor * cost.time();
  cost.scale_up_rate = std::min(cost.scale_up_rate / factor, system_.scale_up);
  cost.network_rate = std::min(cost.network_rate / factor, model_.nic(members));
  cost.latency = Seconds{};
  cost.latency = std::max(Seconds{}, time - cost.time());
  return cost;
}

// NCCL has no algorithms for these; small messages go flagged (src/enqueue.cc,
// NCCL_P2P_LL_THRESHOLD), over two channels a peer.
void CollectiveTime::name_pairs(CollectiveCost& cost, const CollectiveCall& call) const {
  constexpr Bytes flagged{16384.0};
  const bool all_to_all = call.kind == CollectiveKind::all_to_all;
  const int peers = all_to_all ? call.group.ranks - 1 : 1;
  const Bytes a_peer = all_to_all ? call.tensor / call.group.ranks : call.tensor;
  cost.protocol = name(a_peer <= flagged ? NcclProtocol::ll : NcclProtocol::simple);
  cost.channels = std::min(32, 2 * peers);
}

// The bytes of the algorithm that NCCL takes, in the measured or calculated time: rates change with
// the bytes, as far as links can. If they cannot carry them in that time, the formula's bytes stay.
CollectiveCost CollectiveTime::carried_by(const NcclTuner::Choice& chosen, CollectiveCost cost,
                                          const CollectiveCall& call) const {
  const WireBytes wire = chosen.algorithm->wire_bytes(system_, chosen.protocol, call);
  const Seconds time = cost.time();
  const Seconds moving = time - cost.latency;
  const auto rate = [&](Bytes before, BytesPerSecond rate_before, Bytes now, BytesPerSecond most) {
    if (now.si() <= 0.0) return BytesPerSecond{};
    return std::min(most, before.si() > 0.0 ? (now / before) * rate_before : now / moving);
  };
  CollectiveCost changed = cost;
  changed.scale_up_rate =
      rate(cost.scale_up_bytes, cost.scale_up_rate, wire.inside, system_.scale_up);
  changed.scale_up_bytes = wire.inside;
  changed.network_rate =
      rate(cost.network_bytes, cost.network_rate, wire.outside, model_.nic(call.group.per_domain));
  changed.network_bytes = wire.outside;
  changed.latency = Seconds{};
  if (moving <= Seconds{} || changed.time() > time) return cost;
  changed.latency = time - changed.time();
  changed.pattern = chosen.algorithm->pattern();
  return changed;
}

// NCCL's free choice is the algorithm that sweeps measured and the formula was fitted to.
CollectiveCost CollectiveTime::free_choice(const CollectiveCall& call) const {
  const CollectiveCost cost = model_(call.kind, call.tensor, call.group);
  if (measurements_.empty()) return cost;
  const auto formula = [&](Bytes bytes, GroupShape of) { return model_(call.kind, bytes, of); };
  const auto correction = measurements_.correction({call.kind, call.group}, call.tensor, formula);
  if (!correction) return cost;
  CollectiveCost measured = stretched(cost, correction->factor, call.group.per_domain);
  measured.tag = correction->tag;
  return measured;
}

// An algorithm that NCCL would not have chosen has the cost of its own formula; a protocol, and an
// algorithm without a formula, that of the free choice times the tuner's ratio.
CollectiveCost CollectiveTime::forced_choice(const NcclTuner::Choice& chosen,
                                             const NcclTuner::Choice& free,
                                             const CollectiveCall& call) const {
  if (chosen.algorithm == free.algorithm && chosen.protocol == free.protocol)
    return free_choice(call);
  CollectiveCost cost;
  const auto own = chosen.algorithm->price(model_, call);
  if (chosen.algorithm != free.algorithm && own) {
    const auto best = model_.tuner().choose(call, NcclSelection::only(*chosen.algorithm));
    cost = stretched(*own, chosen.time / best->time, call.group.per_domain);
  } else {
    cost = stretched(free_choice(call), chosen.time / free.time, call.group.per_domain);
  }
  cost.tag = Tag::default_value;
  return cost;
}

CollectiveCost CollectiveTime::operator()(CollectiveKind kind, Bytes tensor,
                                          GroupShape group) const {
  if (group.ranks == 1 || tensor.si() <= 0.0) return {};
  if (group.bridge > BytesPerSecond{})
    return over_bridge(group.bridge)(kind, tensor, {.ranks = 2, .domains = 1, .per_domain = 2});
  GroupShape near = group;
  near.further_switches = {};
  CollectiveCost cost = behind_one_switch({kind, tensor, near});
  if (group != near)
    cost.latency +=
        std::max(Seconds{}, model_(kind, tensor, group).time() - model_(kind, tensor, near).time());
  return cost;
}

// A bridge joins two GPUs as an NVSwitch would.
const CollectiveTime& CollectiveTime::over_bridge(BytesPerSecond rate) const {
  std::shared_ptr<const CollectiveTime>& pair = over_bridges_[rate];
  if (!pair) {
    System system = system_;
    system.wiring = NodeWiring::nvswitch;
    system.gpus_per_node = system.nvlink_domain = 2;
    system.nics_per_node = 1;
    system.scale_up = rate;
    system.nvlink_pairs.clear();
    system.pcie_tree = {};
    pair = std::make_shared<const CollectiveTime>(system, options_);
  }
  return *pair;
}

CollectiveCost CollectiveTime::behind_one_switch(const CollectiveCall& call) const {
  if (call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::send_recv) {
    CollectiveCost cost = free_choice(call);
    name_pairs(cost, call);
    return cost;
  }
  const NcclSelection& selection = options_.selection;
  const auto chosen = model_.tuner().choose(call, selection);
  if (!chosen) {
    std::string needs;
    for (const NcclAlgorithm* allowed : selection.algorithms(call.kind))
      if (!allowed->needs().empty()) needs += ": " + allowed->word() + " needs " + allowed->needs();
    fail_infeasible({},
                    "none of the NCCL algorithms and protocols that are allowed can do " +
                        std::string{name(call.kind)} + " here" + needs,
                    "allow Ring with Simple, which always can");
  }
  CollectiveCost cost = selection.restricts(call.kind)
                            ? forced_choice(*chosen, *model_.tuner().choose(call), call)
                            : free_choice(call);
  cost = carried_by(*chosen, cost, call);
  cost.algorithm = chosen->algorithm->name();
  cost.protocol = name(chosen->protocol);
  cost.channels = chosen->channels;
  return cost;
}

CollectiveCost CollectiveTime::send(Bytes bytes, bool same_domain, Seconds further_switches) const {
  if (bytes.si() <= 0.0) return {};
  CollectiveCost cost = model_.send(bytes, same_domain);
  if (!same_domain) cost.latency += further_switches;
  return cost;
}

}  // namespace orrery
