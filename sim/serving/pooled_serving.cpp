#include "sim/serving/pooled_serving.hpp"

#include <algorithm>
#include <cmath>

#include "sim/collectives/collective_time.hpp"
#include "sim/serving/kv_transfer.hpp"

namespace orrery {
namespace {

// Rates of long messages, as those of prompts are, that NCCL's sends reach on this system by its
// file or measurements (docs/explanation/collectives.md).
SendRates send_rates(const System& system, const EnginePools& engine) {
  constexpr Bytes long_message{1e9};
  const CollectiveTime time{system};
  const CollectiveCost inside = time.send(long_message, true);
  const CollectiveCost outside = time.send(long_message, false);
  return {inside.scale_up_rate, outside.network_rate, inside.latency,
          outside.latency + engine.network_latency, engine.network_share};
}

// GPUs of a pool's copies of attention, numbered over all replicas.
class CopyGpus {
 public:
  CopyGpus(const Deployment& plan, const std::vector<int>& replicas)
      : plan_{plan}, replicas_{replicas} {}

  // `place`: stage x tp + rank.
  Rank operator()(std::uint32_t copy, int place) const {
    const auto copies = static_cast<std::uint32_t>(plan_.dp);
    const int stage = place / plan_.tp, rank = place % plan_.tp;
    const int in_stage = static_cast<int>(copy % copies) * plan_.tp + rank;
    return Rank{replicas_[copy / copies] + stage * static_cast<int>(plan_.stage_gpus()) + in_stage};
  }

 private:
  const Deployment& plan_;
  const std::vector<int>& replicas_;
};

KvRoutes routes_of(const PricedPools& pools) {
  const PoolsPlan& plan = pools.plan;
  const ServingSetup& setup = pools.prefill->setup;
  const auto sends = [lanes = kv_lanes(setup.model, plan.prefill, plan.decode),
                      from_gpus = CopyGpus{plan.prefill, plan.prefill_gpus},
                      to_gpus = CopyGpus{plan.decode, plan.decode_gpus}](std::uint32_t from,
                                                                         std::uint32_t to) {
    KvRoutes::Sends sent;
    for (const KvLane& lane : lanes)
      sent.push_back({from_gpus(from, lane.from), to_gpus(to, lane.to), lane.share});
    return sent;
  };
  return KvRoutes{Topology::build(setup.system, plan.last_gpu() + 1),
                  send_rates(setup.system, *setup.engine.pools), sends};
}

ReplayShape pool_shape(const PricedServing& priced, const Deployment& plan, const ServingLoad& load,
                       ReplicaRole role) {
  ReplayShape pool;
  pool.replica = replica_shape(priced.setup, load, priced.kv);
  pool.replica.role = role;
  // The prefill pool sends all that the decode pool needs.
  if (role == ReplicaRole::decode) {
    pool.replica.kv.tiers.clear();
    pool.replica.kv.shares_last = false;
  }
  pool.replicas = static_cast<std::uint32_t>(plan.replicas * plan.dp * plan.pp);
  return pool;
}

// A typical iteration of the pool.
Iteration usual_iteration(const ReplayTotals& all, const ReplayTotals& own, const Deployment& plan,
                          bool prefills) {
  const auto finished = static_cast<double>(std::max<std::int64_t>(1, all.finished));
  const double prompt = static_cast<double>(all.prompt_tokens) / finished;
  const double output = static_cast<double>(all.output_tokens) / finished;
  Iteration iteration;
  if (prefills) {
    const std::int64_t tokens = std::min<std::int64_t>(plan.budget, std::llround(prompt));
    iteration.chunks.push_back({std::max<std::int64_t>(1, tokens), 0});
    iteration.heads = 1;
  } else {
    const double steps = static_cast<double>(std::max<std::int64_t>(1, own.decode_steps));
    const double decodes = std::max(1.0, static_cast<double>(own.slot_steps) / steps);
    iteration.decodes = iteration.heads = std::llround(decodes);
    iteration.context =
        std::llround(static_cast<double>(iteration.decodes) * (prompt + 0.5 * output));
  }
  return iteration;
}

PoolOutcome outcome(const PricedServing& priced, const Deployment& plan, const ReplayShape& shape,
                    const ReplayCounts& counts, const ServingRun& run, bool prefills) {
  PoolOutcome of{priced.setup, priced.kv, counts};
  of.setup.deployment = plan;
  const Seconds span = run.span();
  if (span > Seconds{}) of.busy = counts.totals.busy / (static_cast<double>(shape.replicas) * span);
  of.bound =
      priced.prices.price(usual_iteration(run.replay.counts.totals, counts.totals, plan, prefills))
          .bound;
  return of;
}

}  // namespace

PricedPools price_pools(const std::string& model, const std::string& system,
                        const std::string& engine, const PoolsRequest& request, const Place& at,
                        const Place& prefill, const Place& decode) {
  return price_pools(read_model(model, at / "model"), system, engine, request, at, prefill, decode);
}

PricedPools price_pools(const Model& model, const std::string& system, const std::string& engine,
                        const PoolsRequest& request, const Place& at, const Place& prefill,
                        const Place& decode) {
  ServingSetup setup{
      model, read_system(system, at / "system"), read_serving_engine(engine, at / "engine"), {}};
  PoolsPlan plan = make_pools(setup.model, setup.system, setup.engine, request, prefill, decode);
  const auto kernels = std::make_shared<const ServingKernels>(setup.system.gpu, setup.engine);
  setup.deployment = plan.prefill;
  auto priced_prefill = std::make_shared<const PricedServing>(setup, kernels);
  setup.deployment = plan.decode;
  return {std::move(plan), std::move(priced_prefill),
          std::make_shared<const PricedServing>(std::move(setup), kernels)};
}

void need_space(const PricedPools& pools, const Request& longest, const Place& prefill,
                const Place& decode) {
  Request prompt = longest;
  prompt.output_tokens = 1;
  need_space(pools.prefill->setup, prompt, prefill);
  need_space(pools.decode->setup, longest, decode);
}

ServingRun serve_pools(const PricedPools& pools, const ServingLoad& load) {
  const EnginePools& engine = *pools.prefill->setup.engine.pools;
  const Model& model = pools.prefill->setup.model;
  PooledShape shape;
  shape.prefill = pool_shape(*pools.prefill, pools.plan.prefill, load, ReplicaRole::prefill);
  shape.decode = pool_shape(*pools.decode, pools.plan.decode, load, ReplicaRole::decode);
  shape.decode.replica.makes_first_token = engine.decode_makes_first_token;
  shape.decode.replica.rules.keeps_preempted = engine.decode_keeps_preempted;
  shape.decode.replica.kv.keeps_prefixes = load.prefix_cache && engine.decode_keeps_prefixes;
  shape.sending = pools.plan.sending;
  shape.kv_bytes = [&](std::int64_t tokens) { return kv_bytes(model, pools.plan.prefill, tokens); };
  shape.states = states_sent(model, pools.plan.prefill);
  shape.layers = model.layers;
  if (load.over_network) shape.handover = engine.handover;
  need_windows(pools.prefill->setup, pools.prefill->kv, load.list, load.prefix_cache,
               {"--prefill", ""});
  need_windows(pools.decode->setup, pools.decode->kv, load.list,
               shape.decode.replica.kv.keeps_prefixes, {"--decode", ""});
  KvRoutes routes = routes_of(pools);
  PooledReplay replay =
      replay_pools(load.list, shape, routes, pools.prefill->times, pools.decode->times);

  ServingRun run;
  run.setup = pools.decode->setup;
  run.kv = pools.decode->kv;
  run.setup.deployment = pools.plan.decode;
  run.replay.counts = replay.prefill;
  run.replay.counts.add(replay.decode);
  run.replay.counts.totals.arrived = static_cast<std::int64_t>(load.list.requests.size());
  run.replay.times = std::move(replay.times);
  run.replay.iterations = std::move(replay.prefill_iterations);
  run.replay.replayed = shape.prefill.replicas + shape.decode.replicas;
  run.saturated = replay.prefill.saturated() || replay.decode.saturated();
  run.pools = PooledOutcome{
      pools.plan,
      outcome(*pools.prefill, pools.plan.prefill, shape.prefill, replay.prefill, run, true),
      outcome(*pools.decode, pools.plan.decode, shape.decode, replay.decode, run, false),
      std::move(replay.transfers),
      std::move(replay.pool_times),
      std::move(replay.decode_iterations)};
  measure(load, run);
  return run;
}

IsolatedTransfer isolated_transfer(const PricedPools& pools, std::int64_t tokens) {
  KvRoutes routes = routes_of(pools);
  const KvRoute& route = routes.between(0, 0);
  IsolatedTransfer transfer;
  transfer.tokens = tokens;
  transfer.kv = kv_bytes(pools.prefill->setup.model, pools.plan.prefill, tokens);
  const Bytes states = states_sent(pools.prefill->setup.model, pools.plan.prefill);
  const double bytes = route.shared_bytes(transfer.kv.si(), states.si());
  transfer.sent = Bytes{route.sent * bytes};
  transfer.flows = static_cast<int>(route.flows.size());
  transfer.inside = routes.topology().same_domain(Rank{pools.plan.prefill_gpus.front()},
                                                  Rank{pools.plan.decode_gpus.front()});
  transfer.time = route.latency + bytes * route.alone;
  return transfer;
}

}  // namespace orrery
