#include "sim/serving/serving_run.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

double per_second(double amount, Seconds span) {
  return span > Seconds{} ? amount / span.si() : 0.0;
}

// Each rank of each stage keeps its part of a token.
Bytes all_ranks_of(std::int64_t tokens, const ServingSetup& setup, const KvCapacity& kv) {
  const double ranks = static_cast<double>(setup.deployment.tp) * setup.deployment.pp;
  return Bytes{static_cast<double>(tokens) * ranks * kv.bytes_per_token};
}

}  // namespace

ReplicaShape replica_shape(const ServingSetup& setup, const ServingLoad& load,
                           const KvCapacity& kv) {
  const Deployment& plan = setup.deployment;
  ReplicaShape shape;
  shape.rules.scheduler = setup.engine.scheduler;
  shape.rules.budget = plan.budget;
  shape.rules.most_requests = batch_limit(setup.engine, plan);
  shape.rules.chunked = plan.chunked;
  shape.rules.mixed = plan.mixed;
  // Batches that take turns in a pipeline are planned when they come back.
  shape.rules.plans_ahead = hides_host(setup.model, setup.engine, plan) && plan.pp == 1 &&
                            setup.engine.scheduler->continuous;
  if (plan.speculation) {
    shape.rules.step_tokens = plan.step_tokens();
    shape.rules.progress = plan.speculation->a_step();
  }
  shape.kv = {kv.tokens / plan.pp, plan.block, load.prefix_cache};
  shape.copies = copies_go_in_step(setup) ? plan.dp : 1;
  if (plan.host_kv > Bytes{}) {
    const EngineHostKv& host = *setup.engine.host_kv;
    const Bytes a_token{kv.bytes_per_token};
    shape.kv.host_tokens = static_cast<std::int64_t>(plan.host_kv / a_token) / plan.pp;
    shape.kv.copies_at_once = host.copies_at_once;
    shape.rules.load_token = a_token / setup.system.gpu.host;
    shape.rules.load_layers = (setup.model.layers + plan.pp - 1) / plan.pp;
    // Copies that go in step wait for each other's loads, too.
    const bool waits = shape.copies > 1 && host.loading == HostKvLoading::apart;
    shape.rules.loading = waits ? HostKvLoading::before : host.loading;
  }
  if (load.over_network) shape.client = setup.engine.client;
  shape.stages = plan.pp;
  shape.replay = load.replay;
  return shape;
}

// Copies of attention meet at the experts; without experts they are replicas. Batches that take
// turns in a pipeline are not synchronised.
bool copies_go_in_step(const ServingSetup& setup) {
  return setup.model.experts && setup.deployment.dp > 1 && setup.deployment.pp == 1 &&
         setup.engine.scheduler->copies_in_step;
}

Request longest_of(const RequestList& list) {
  const auto tokens = [](const Request& request) {
    return std::uint64_t{request.prompt_tokens} + request.output_tokens;
  };
  return *std::max_element(
      list.requests.begin(), list.requests.end(),
      [&](const Request& a, const Request& b) { return tokens(a) < tokens(b); });
}

bool is_open_loop(const RequestList& list) {
  return list.clients == 0 && list.requests.front().arrival < list.requests.back().arrival;
}

void need_space(const ServingSetup& setup, const Request& longest, const Place& at) {
  const Deployment& plan = setup.deployment;
  const int drafted = plan.step_tokens() - 1;  // Drafted tokens need space, accepted or not.
  need_kv(setup.model, setup.system, plan, setup.engine,
          std::int64_t{longest.prompt_tokens} + longest.output_tokens + drafted, at);
  const KvCapacity kv = kv_capacity(setup.model, setup.system, plan, setup.engine);
  Request kept = longest;
  kept.output_tokens += static_cast<std::uint32_t>(drafted);
  refuse_oversized({{kept}, {}, 0, 0}, {kv.tokens / plan.pp, plan.block, false}, at);
}

void need_prefixes(const Deployment& plan, const ServingLoad& load, const Place& at) {
  if (plan.host_kv > Bytes{} && !load.prefix_cache)
    fail_input(at / "host_kv", "keeps what prompts begin with, and --prefix-cache off forgets it",
               "leave out one of them");
}

ServingRun serve_requests(const PricedServing& priced, const ServingLoad& load, const Place& at) {
  const ServingSetup& setup = priced.setup;
  ServingRun run{setup, priced.kv, {}, false, false, {}};
  const Deployment& plan = setup.deployment;
  need_prefixes(plan, load, at);
  need_space(setup, longest_of(load.list), at);
  const ReplayShape shape{replica_shape(setup, load, run.kv),
                          static_cast<std::uint32_t>(plan.replicas * plan.dp * plan.pp)};
  run.replay = replay_requests(load.list, shape, priced.times);
  run.open = is_open_loop(load.list);
  run.saturated = run.open && run.replay.counts.saturated();
  return run;
}

Seconds ServingRun::span() const {
  const ReplayTotals& totals = replay.counts.totals;
  return totals.end - totals.first_arrival;
}

double ServingRun::requests_per_s() const {
  return per_second(static_cast<double>(replay.counts.totals.finished), span());
}

double ServingRun::output_tokens_per_s() const {
  return per_second(static_cast<double>(replay.counts.totals.output_tokens), span());
}

double ServingRun::total_tokens_per_s() const {
  const ReplayTotals& totals = replay.counts.totals;
  return per_second(static_cast<double>(totals.output_tokens + totals.prompt_tokens), span());
}

double ServingRun::interactivity() const {
  const LatencyHistogram& tpot = replay.counts.tpot;
  return tpot.count() > 0 ? 1.0 / tpot.percentile(0.5).si() : 0.0;
}

Bytes ServingRun::host_stored() const {
  return all_ranks_of(replay.counts.totals.host_stored_tokens, setup, kv);
}

Bytes ServingRun::host_loaded() const {
  return all_ranks_of(replay.counts.totals.host_loaded_tokens, setup, kv);
}

double ServingRun::host_link_share() const {
  const Deployment& plan = setup.deployment;
  const auto links = static_cast<double>(plan.replicas) * plan.dp;
  return span() > Seconds{} ? replay.counts.totals.host_time / (links * span()) : 0.0;
}

double ServingRun::slo_share() const {
  const ReplayTotals& totals = replay.counts.totals;
  return totals.finished > 0
             ? static_cast<double>(totals.within_slo) / static_cast<double>(totals.finished)
             : 0.0;
}

namespace {

constexpr double most_rate = 1e6;
constexpr double least_rate = 1e-4;
constexpr double close_enough = 1.01;

}  // namespace

Goodput largest_rate(const std::function<ServingRun(const ServingLoad&)>& serve, ServingLoad load) {
  assert(load.replay.slo);
  Goodput goodput;
  const auto meets = [&](double rate) {
    load.traffic.rate = rate;
    load.list = sample_requests(load.traffic);
    ServingRun run = serve(load);
    ++goodput.replays;
    if (run.saturated || run.slo_share() < load.replay.slo->share) return false;
    goodput.at_rate = std::move(run);
    return true;
  };
  double rate = 1.0;
  if (meets(rate)) {
    while (rate < most_rate && meets(2.0 * rate)) rate *= 2.0;
  } else {
    do {
      rate *= 0.5;
      if (rate < least_rate) return goodput;
    } while (!meets(rate));
  }
  double low = rate, high = 2.0 * rate;  // `low` meets the limits, `high` does not.
  while (high / low > close_enough) {
    const double middle = 0.5 * (low + high);
    (meets(middle) ? low : high) = middle;
  }
  goodput.rate = low;
  return goodput;
}

}  // namespace orrery
