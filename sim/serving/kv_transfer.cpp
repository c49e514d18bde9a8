#include "sim/serving/kv_transfer.hpp"

#include <algorithm>

#include "sim/engine/transfers.hpp"
#include "sim/serving/kv_capacity.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {
namespace {

double bytes_of_layer(const Model& shape, Dtype format) {
  const double values =
      shape.latent ? static_cast<double>(shape.latent->kv_rank + shape.latent->rope_dim)
                   : static_cast<double>(shape.kv_heads * (shape.head_dim + value_width(shape)));
  return values * element_bytes(format);
}

// The whole numbers from `first` to before `last`.
struct Run {
  std::int64_t first = 0, last = 0;
  std::int64_t common(const Run& other) const {
    return std::max<std::int64_t>(0, std::min(last, other.last) - std::max(first, other.first));
  }
};

Run layers_of(const Model& model, int stages, int stage) {
  const std::int64_t each = (model.layers + stages - 1) / stages;
  const std::int64_t layers = model.layers;
  return {std::min(layers, stage * each), std::min(layers, (stage + 1) * each)};
}

// Key heads of a model; a latent cache, which is not cut, counts as one. Of several kinds of
// attention those of the first, as whose the states are sent.
std::int64_t heads_of(const Model& model) {
  for (const ServedLayers& of : served_layers(model, {}))
    if (of.has_attention()) return of.shape.latent ? 1 : of.shape.kv_heads;
  return 1;
}
Run heads_of_rank(const Model& model, int ranks, int rank) {
  const std::int64_t heads = heads_of(model);
  if (ranks <= heads) return {rank * heads / ranks, (rank + 1) * heads / ranks};
  const std::int64_t head = rank * heads / ranks;
  return {head, head + 1};
}

// The deployment as if one rank held all heads and layers.
Deployment on_one_rank(const Deployment& plan) {
  Deployment whole = plan;
  whole.tp = whole.pp = 1;
  whole.speculation.reset();
  return whole;
}

}  // namespace

Bytes states_sent(const Model& model, const Deployment& plan) {
  return states_of_request(model, on_one_rank(plan));
}

Bytes kv_bytes(const Model& model, const Deployment& plan, std::int64_t tokens) {
  const Deployment whole = on_one_rank(plan);
  double bytes = states_sent(model, plan).si() + kv_bytes_of_modules(model, whole, tokens);
  for (const ServedLayers& of : served_layers(model, whole))
    for (const auto& [window, count] : of.windows) {
      const std::int64_t kept = window > 0 ? std::min(tokens, window) : tokens;
      bytes += bytes_of_layer(of.shape, plan.kv) * static_cast<double>(count * kept);
    }
  return Bytes{bytes};
}

std::vector<KvLane> kv_lanes(const Model& model, const Deployment& prefill,
                             const Deployment& decode) {
  std::vector<KvLane> lanes;
  const std::int64_t heads = heads_of(model);
  // Number of prefill ranks that hold the same heads.
  const int holders = static_cast<int>(std::max<std::int64_t>(1, prefill.tp / heads));
  for (int to_stage = 0; to_stage < decode.pp; ++to_stage)
    for (int to_rank = 0; to_rank < decode.tp; ++to_rank)
      for (int from_stage = 0; from_stage < prefill.pp; ++from_stage) {
        const std::int64_t layers =
            layers_of(model, decode.pp, to_stage).common(layers_of(model, prefill.pp, from_stage));
        const Run wanted = heads_of_rank(model, decode.tp, to_rank);
        for (int from_rank = to_rank % holders; from_rank < prefill.tp; from_rank += holders) {
          const std::int64_t common = wanted.common(heads_of_rank(model, prefill.tp, from_rank));
          if (layers * common == 0) continue;
          const double share =
              static_cast<double>(layers * common) / static_cast<double>(model.layers * heads);
          lanes.push_back(
              {from_stage * prefill.tp + from_rank, to_stage * decode.tp + to_rank, share});
        }
      }
  return lanes;
}

KvRoute KvRoutes::route(const Sends& sends) const {
  KvRoute route;
  std::vector<Flow> flows;
  for (const KvSend& send : sends) {
    const bool inside = topology_.same_domain(send.from, send.to);
    FlowRoute links;
    for (const LinkId link : topology_.route(send.from, send.to)) links.push_back({link, 1});
    route.latency =
        std::max(route.latency,
                 inside ? rates_.latency_inside
                        : rates_.latency_outside + topology_.further_switches(send.from, send.to));
    route.sent += send.share;
    // What a transfer does not use of a NIC, no other flow of it does either.
    const Bytes bytes{send.share / (inside ? 1.0 : rates_.network_share)};
    flows.push_back({std::move(links), bytes, inside ? rates_.inside : rates_.outside});
  }
  route.flows = flows;
  // Moving this many bytes takes far longer than a tick of the clock.
  constexpr double many = 1e12;
  Transfers links{topology_, Simulator::own};
  links.start(route.flows, many, Seconds{});
  const Seconds last = links.advance(Transfers::never);
  route.alone = last / many;
  return route;
}

const KvRoute& KvRoutes::between(std::uint32_t from, std::uint32_t to) {
  const auto key = std::pair{from, to};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  return known_.emplace(key, route(sends_(from, to))).first->second;
}

}  // namespace orrery
