#include "sim/layers/pass_cost.hpp"

#include <algorithm>

#include "sim/layers/contention.hpp"
#include "sim/layers/op.hpp"

namespace orrery {
namespace {

Work work_of(const Op& kernel) {
  switch (kernel.kind) {
    case Op::Kind::gemm:
      return Work::products;
    case Op::Kind::grouped_gemm:
      return Work::expert_products;
    case Op::Kind::attention:
    case Op::Kind::batched_gemm:
    case Op::Kind::scan:
      return Work::attention;
    case Op::Kind::wait:
      return Work::host;
    case Op::Kind::memory:
    case Op::Kind::collective:
      break;
  }
  return Work::streaming;
}

}  // namespace

Seconds Segment::time(double speed) const {
  Seconds length = fused.empty() ? compute / speed : time_of(fused, speed);
  if (concurrent) length = std::max(length, concurrent->time());
  if (after) length += after->time();
  return length;
}

PassCost waiting(Seconds time, std::string_view name) {
  PassCost cost;
  Segment idle{time, {}, {}};
  idle.idle = time;
  idle.first_kernel = name;
  cost.segments.push_back(idle);
  cost.compute = time;
  cost.work.at(Work::host) = time;
  cost.by_tag[static_cast<std::size_t>(Tag::default_value)] = time;
  cost.decisive.at(PriceKind::host, Tag::default_value) = time;
  return cost;
}

Seconds time_of(const std::vector<Segment>& segments, double speed) {
  Seconds sum;
  for (const Segment& segment : segments) sum += segment.time(speed);
  return sum;
}

std::size_t tasks_in(const std::vector<Segment>& segments) {
  std::size_t sum = 0;
  for (const Segment& segment : segments)
    sum += (segment.concurrent ? 1u : 0u) + (segment.after ? 1u : 0u) +
           (segment.fused.empty() ? 1u : tasks_in(segment.fused));
  return sum;
}

Seconds PassCost::time(double speed) const { return time_of(segments, speed); }

namespace {

Seconds exposed_in(const std::vector<Segment>& segments, GroupKind group, double speed) {
  Seconds sum;
  for (const Segment& segment : segments) {
    sum += exposed_in(segment.fused, group, speed);
    if (segment.concurrent && segment.concurrent->group == group) {
      const Seconds hides =
          segment.fused.empty() ? segment.compute / speed : time_of(segment.fused, speed);
      sum += std::max(Seconds{}, segment.concurrent->time() - hides);
    }
    if (segment.after && segment.after->group == group) sum += segment.after->time();
  }
  return sum;
}

}  // namespace

Seconds PassCost::exposed(GroupKind group, double speed) const {
  return exposed_in(segments, group, speed);
}

bool PassCost::has_collectives() const {
  return std::any_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return segment.concurrent || segment.after; });
}

void PassCost::append(const PassCost& more) {
  segments.insert(segments.end(), more.segments.begin(), more.segments.end());
  compute += more.compute;
  work.add(more.work);
  recomputed.add(more.recomputed);
  communication += more.communication;
  for (std::size_t tag = 0; tag < by_tag.size(); ++tag) by_tag[tag] += more.by_tag[tag];
  decisive.add(more.decisive);
  taken.add(more.taken);
  for (std::size_t group = 0; group < scale_up_bytes.size(); ++group) {
    scale_up_bytes[group] += more.scale_up_bytes[group];
    network_bytes[group] += more.network_bytes[group];
  }
  lost.add(more.lost);
}

void PassCost::append_layer(const PassCost& more, int layer) {
  const std::size_t own = segments.size();
  append(more);
  const auto mark = [&](auto& self, Segment& segment) -> void {
    segment.layer = layer;
    for (Segment& part : segment.fused) self(self, part);
  };
  for (std::size_t i = own; i < segments.size(); ++i) mark(mark, segments[i]);
}

namespace {

void count(PassCost& pass, const GroupCollective& collective) {
  const CollectiveCost& cost = collective.cost;
  const auto group = static_cast<std::size_t>(collective.group);
  pass.communication += cost.time();
  pass.by_tag[static_cast<std::size_t>(cost.tag)] += cost.time();
  pass.scale_up_bytes[group] += cost.scale_up_bytes;
  pass.network_bytes[group] += cost.network_bytes;
}

}  // namespace

void PassCost::append(const GroupCollective& collective) {
  if (collective.time() <= Seconds{}) return;
  if (segments.empty() || segments.back().after) segments.push_back({});
  segments.back().after = collective;
  decisive.add(collective);
  count(*this, collective);
}

void PassCost::add_lost(Seconds time, const TimeByPrice& prices) {
  compute += time;
  work.at(Work::slowed) += time;
  taken.add(prices.collectives());
  by_tag[static_cast<std::size_t>(Tag::default_value)] += time;
}

void PassCost::append_concurrent(const PassCost& kernels, const GroupCollective& collective) {
  if (kernels.segments.empty()) return append(collective);
  const std::size_t own = segments.size();
  const TimeByPrice before = decisive;
  append(kernels);
  if (collective.time() <= Seconds{}) return;
  segments.resize(own);
  segments.push_back(concurrent(kernels.segments, collective));
  const KernelTimes times = kernels_of(kernels.segments);
  const Seconds time = overlap_loss(times, collective);
  const TimeByPrice prices = overlap_loss(times, kernels.decisive, collective);
  add_lost(time, prices);
  if (collective.time() > kernels.time() + time) {
    decisive = before;
    decisive.add(collective);
  } else {
    decisive.add(prices);
  }
  count(*this, collective);
}

Pricer::Pricer(const KernelModel& kernels, const CollectiveTime& collectives,
               const GroupShapes& shapes, const Software& software, const Gpu& gpu)
    : kernels_{kernels},
      collectives_{collectives},
      shapes_{shapes},
      software_{software},
      peak_{kernels.unquantised_peak()},
      multiprocessors_{gpu.multiprocessors} {}

GroupCollective Pricer::collective(const Op& op) const {
  const bool sums = facts(op.collective).reduces;
  return collective(collectives_(op.collective, op.bytes, shapes_[op.group]), op.group, false,
                    sums);
}

GroupCollective Pricer::collective(const CollectiveCost& cost, GroupKind group, bool combine,
                                   bool sums) const {
  // Sent bytes are read from memory, and received ones written; a sum also reads its operand.
  const double passes = sums ? 3.0 : 2.0;
  constexpr double most = 0.5;  // Thread blocks beyond this share a multiprocessor with one kernel.
  const Bytes sent = cost.scale_up_bytes + cost.network_bytes;
  const Seconds length = cost.time();
  const double of_memory = length > Seconds{} ? kernels_.memory(passes * sent).time / length : 0.0;
  const double of_compute = kernels_.overlap_loss_share() * cost.channels / multiprocessors_;
  return {cost, group, combine, std::min(most, of_compute), std::min(most, of_memory)};
}

KernelTime Pricer::time(const Op& op) const {
  const auto priced = [&](KernelTime kernel, double efficiency) {
    return KernelTime{kernel.time / efficiency, kernel.tag};
  };
  switch (op.kind) {
    case Op::Kind::gemm:
      return priced(kernels_.gemm(op.pass, op.m, op.n, op.k, op.sixteen_bit),
                    software_.gemm_efficiency * op.efficiency);
    case Op::Kind::grouped_gemm: {
      const GroupedGemm layer{op.pass,
                              op.n,
                              op.k,
                              op.accumulate,
                              software_.fused_experts || software_.grouped_experts,
                              op.sixteen_bit};
      const bool graph = software_.host_launch <= Seconds{};  // It launches experts' products too.
      return priced(
          graph ? kernels_.grouped_kernel(layer, op.rows) : kernels_.grouped_gemm(layer, op.rows),
          software_.gemm_efficiency);
    }
    case Op::Kind::attention:
      return priced(op.backward ? kernels_.attention_backward(op.attention())
                                : kernels_.attention_forward(op.attention()),
                    software_.attention_efficiency);
    case Op::Kind::scan:
      return kernels_.scan(op.scanned(), op.backward);
    case Op::Kind::batched_gemm: {
      // Small products are not in the GEMM tables: they are bound by compute at a low share of the
      // peak, or by memory.
      const KernelTime traffic = kernels_.memory(op.bytes);
      const Seconds compute = op.flop() / (software_.batched_gemm_efficiency * peak_);
      return {std::max(traffic.time, compute) + software_.kernel_overhead, Tag::default_value};
    }
    case Op::Kind::memory: {
      const KernelTime traffic = kernels_.memory(op.bytes);
      const Seconds longer = kernels_.beyond_memory(op.indexed.elements, op.indexed.bytes);
      return {traffic.time / op.efficiency + longer + op.kernels * software_.kernel_overhead,
              traffic.tag};
    }
    case Op::Kind::wait:
      return {op.idle, Tag::default_value};
    case Op::Kind::collective: {
      const CollectiveCost cost = collective(op).cost;
      return {cost.time(), cost.tag};
    }
  }
  return {};
}

PricedOp Pricer::price(const Op& op) const {
  const KernelTime own = time(op);
  return {op, own.time, own.tag};
}

Seconds Pricer::length(const Ops& ops, Seconds host) const {
  int launches = 0;
  Seconds compute;
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::collective) return price(ops, host).time();
    compute += time(op).time;
    launches += op.kernels;
  }
  host = std::max(host, launches * software_.host_launch);
  return host > compute ? compute + (host - compute) : compute;
}

PassCost Pricer::price(const Ops& ops, Seconds host) const {
  PassCost cost;
  Segment open;
  TimeByPrice kernels;  // Prices of the kernels of the open segment.
  const auto close = [&] {
    if (open.concurrent) {
      const KernelTimes times{open.compute, open.streaming, {}};
      const Seconds lost = overlap_loss(times, *open.concurrent);
      if (open.weight_gradients > Seconds{}) open.weight_gradients += lost;
      const TimeByPrice prices = overlap_loss(times, kernels, *open.concurrent);
      kernels.add(prices);
      if (open.streaming > Seconds{}) open.streaming += lost;
      open.compute += lost;
      cost.add_lost(lost, prices);
    }
    if (open.compute > Seconds{} || open.concurrent || open.after) cost.segments.push_back(open);
    if (open.concurrent && open.concurrent->time() > open.compute)
      cost.decisive.add(*open.concurrent);
    else
      cost.decisive.add(kernels);
    if (open.after) cost.decisive.add(*open.after);
    open = Segment{};
    kernels = TimeByPrice{};
  };

  int launches = 0;
  std::optional<GroupCollective>
      rest;  // Rest of a partly hidden collective, which follows the op it hides behind.
  for (const Op& op : ops) {
    if (op.kind != Op::Kind::collective) {
      const KernelTime priced = time(op);
      launches += op.kernels;
      if (open.first_kernel.empty()) open.first_kernel = op.name;
      open.last_kernel = op.name;
      open.compute += priced.time;
      kernels.at(price_kind(op), priced.tag) += priced.time;
      if (price_kind(op) == PriceKind::memory) open.streaming += priced.time;
      open.idle += op.idle;
      if (op.pass == GemmPass::wgrad) open.weight_gradients += priced.time;
      cost.compute += priced.time;
      cost.work.at(work_of(op)) += priced.time;
      cost.by_tag[static_cast<std::size_t>(priced.tag)] += priced.time;
      if (open.concurrent) {
        open.after = rest;
        rest.reset();
        close();
      }
      continue;
    }
    const GroupCollective whole = collective(op);
    count(cost, whole);
    if (op.hidden > 0.0) {
      close();
      open.concurrent = whole;
      open.concurrent->cost = whole.cost.scaled(op.hidden);
      if (op.hidden < 1.0) rest = {whole.cost.scaled(1.0 - op.hidden), op.group};
    } else {
      open.after = whole;
      close();
    }
  }
  close();

  // Kernels shorter than the host needs to launch them leave the GPU waiting for the host.
  host = std::max(host, launches * software_.host_launch);
  if (const Seconds gpu = cost.time(); host > gpu)
    cost.append(waiting(host - gpu, "wait for the host"));
  return cost;
}

}  // namespace orrery
