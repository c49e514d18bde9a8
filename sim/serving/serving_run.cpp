#include "sim/serving/serving_run.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/number_text.hpp"

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

// Tokens in the cache of one of the batches that take turns in a pipeline. They share one cache in
// the engines, and are simulated apart, each with its part; but a request may fill what all have.
std::int64_t batch_cache(const Deployment& plan, const KvCapacity& kv, const Request& longest) {
  const std::int64_t tokens =
      std::int64_t{longest.prompt_tokens} + longest.output_tokens + plan.step_tokens() - 1;
  const std::int64_t blocks = (tokens + plan.block - 1) / plan.block;
  return std::min(kv.tokens, std::max(kv.tokens / plan.pp, blocks * plan.block));
}

// The memories behind the GPU's, as one batch of one copy of attention has them.
void add_tiers(const ServingSetup& setup, const KvCapacity& kv, ReplicaShape& shape) {
  const Deployment& plan = setup.deployment;
  const System& system = setup.system;
  const EngineHostKv& host = *setup.engine.host_kv;
  BatchRules& rules = shape.rules;
  const Bytes a_token{kv.bytes_per_token};
  const auto tokens = [&](Bytes of_gpu) {
    return static_cast<std::int64_t>(of_gpu / a_token) / plan.pp;
  };
  if (plan.host_kv > Bytes{}) shape.kv.tiers.push_back(tokens(plan.host_kv));
  // A store has each token once, whatever the ranks that have copies of it.
  Deployment whole = plan;
  whole.tp = whole.pp = 1;
  whole.speculation.reset();
  const Bytes once{kv_bytes_per_token(setup.model, whole)};
  for (const KvTier& tier : plan.kv_tiers) {
    BatchRules::TierLink& link = rules.tiers[shape.kv.tiers.size()];
    link.latency = tier.latency;
    if (tier.kind == TierKind::nvme) {
      shape.kv.tiers.push_back(tokens((1.0 / system.gpus_per_node) * tier.size));
      link.token = a_token / ((1.0 / system.gpus_per_node) * tier.rate);
      continue;
    }
    shape.kv.tiers.push_back(static_cast<std::int64_t>(tier.size / once));
    shape.kv.shares_last = true;
    // All GPUs of a domain may read at a time.
    const double share = setup.engine.pools ? setup.engine.pools->network_share : 1.0;
    const BytesPerSecond nic =
        share * system.network_efficiency * system.network_rate(system.nvlink_domain);
    link.token = once / (static_cast<double>(plan.tp * plan.pp) * nic);
    if (tier.rate > BytesPerSecond{}) rules.store_token = once / tier.rate;
  }
  shape.kv.copies_at_once = plan.kv_write == KvWriting::through;
  rules.load_token = a_token / system.gpu.host;
  rules.load_layers = (setup.model.layers + plan.pp - 1) / plan.pp;
  rules.loading = host.loading;
  rules.fetches_at_arrival = host.fetches_at_arrival;
  rules.prefetch = plan.kv_prefetch;
}

}  // namespace

std::int64_t requests_with_states(const ServingSetup& setup, bool keeps_prefixes,
                                  const KvCapacity& kv) {
  return kv.state_slots / (keeps_prefixes ? setup.engine.states->with_prefixes : 1);
}

ReplicaShape replica_shape(const ServingSetup& setup, const ServingLoad& load,
                           const KvCapacity& kv) {
  const Deployment& plan = setup.deployment;
  ReplicaShape shape;
  shape.rules.scheduler = setup.engine.scheduler;
  shape.rules.budget = plan.budget;
  shape.rules.most_requests = batch_limit(setup.engine, plan);
  if (kv.state_slots > 0)
    shape.rules.most_requests = std::clamp<std::int64_t>(
        requests_with_states(setup, load.prefix_cache, kv) / plan.pp, 1, shape.rules.most_requests);
  shape.rules.chunked = plan.chunked;
  shape.rules.mixed = plan.mixed;
  shape.rules.receive_interval = plan.receive_interval;
  // Batches that take turns in a pipeline are planned when they come back.
  shape.rules.plans_ahead = hides_host(setup.model, setup.engine, plan) && plan.pp == 1 &&
                            setup.engine.scheduler->continuous;
  if (plan.speculation) {
    shape.rules.step_tokens = plan.step_tokens();
    shape.rules.progress = plan.speculation->a_step();
  }
  const Request longest = load.list.requests.empty() ? Request{} : longest_of(load.list);
  shape.kv = {batch_cache(plan, kv, longest), plan.block, load.prefix_cache};
  shape.kv.groups = kv.groups;
  shape.kv.windows = kv.windows;
  shape.kv.windows.tokens /= plan.pp;
  shape.copies = copies_go_in_step(setup) ? plan.dp : 1;
  if (shape.copies > 1) shape.rules.prefill_delay = plan.prefill_delay;
  if (plan.has_kv_tiers()) add_tiers(setup, kv, shape);
  if (load.over_network) shape.client = setup.engine.client;
  shape.stages = plan.pp;
  shape.replay = load.replay;
  shape.replay.keeps_times |= load.part == MeasuredPart::steady || !load.list.classes.empty();
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
  need_length(plan, std::int64_t{longest.prompt_tokens} + longest.output_tokens, at);
  const int drafted = plan.step_tokens() - 1;  // Drafted tokens need space, accepted or not.
  need_kv(setup.model, setup.system, plan, setup.engine,
          std::int64_t{longest.prompt_tokens} + longest.output_tokens + drafted, at);
  const KvCapacity kv = kv_capacity(setup.model, setup.system, plan, setup.engine);
  Request kept = longest;
  kept.output_tokens += static_cast<std::uint32_t>(drafted);
  KvShape shape{batch_cache(plan, kv, longest), plan.block};
  shape.groups = kv.groups;
  refuse_oversized({{kept}, {}, 0, 0}, shape, at_once(plan), at);
}

void need_windows(const ServingSetup& setup, const KvCapacity& kv, const RequestList& list,
                  bool keeps_prefixes, const Place& at) {
  const Deployment& plan = setup.deployment;
  if (plan.window_ratio == 0.0) return;
  const WindowPool pool = kv.windows.of_batch(plan.pp, keeps_prefixes);
  std::int64_t most = 0, prompt = 0;
  for (const Request& request : list.requests)
    if (const std::int64_t held = pool.of(request.prompt_tokens); held > most)
      most = held, prompt = request.prompt_tokens;
  if (most <= pool.tokens) return;
  fail_infeasible(at / "window_ratio",
                  "is " + nine_digits(plan.window_ratio) + ": the pool of windows has " +
                      plural(pool.tokens, "token") + (plan.pp > 1 ? " for a batch" : "") +
                      ", and a request with a prompt of " + grouped(prompt) + " holds " +
                      grouped(most),
                  "raise it, or use GPUs with more memory");
}

void need_prefixes(const Deployment& plan, const ServingLoad& load, const Place& at) {
  if (plan.has_kv_tiers() && !load.prefix_cache)
    fail_input(at / (plan.host_kv > Bytes{} ? "host_kv" : "kv_tiers"),
               "keeps what prompts begin with, and --prefix-cache off forgets it",
               "leave out one of them");
}

RequestList requests_of(const ServingLoad& load) {
  RequestList list = sample_requests(load.traffic);
  if (load.lengths) take_lengths(*load.lengths, load.traffic.stationary, list);
  return list;
}

std::vector<ClassOutcome> outcomes_of_classes(const RequestList& list,
                                              const std::vector<RequestTimes>& times,
                                              const std::optional<Slo>& slo,
                                              const std::vector<std::uint32_t>& counted) {
  std::vector<ClassOutcome> outcomes;
  for (const RequestClass& one : list.classes) {
    outcomes.emplace_back();
    outcomes.back().name = one.name;
  }
  if (outcomes.empty()) return outcomes;
  const auto count = [&](const RequestTimes& of) {
    const Request& request = list.requests[of.request];
    ClassOutcome& outcome = outcomes[request.of_class];
    const std::optional<Slo>& limits = list.limits_of(request, slo);
    ++outcome.requests;
    outcome.within_limits += !limits || limits->met(of.ttft, of.tpot, of.e2e) ? 1 : 0;
    outcome.ttft.add(of.ttft);
    outcome.e2e.add(of.e2e);
    if (request.output_tokens > 1) outcome.tpot.add(of.tpot);
  };
  for (const std::uint32_t i : counted) count(times[i]);
  if (counted.empty())
    for (const RequestTimes& of : times) count(of);
  return outcomes;
}

void measure(const ServingLoad& load, ServingRun& run) {
  ReplayCounts& counts = run.replay.counts;
  run.sampled = static_cast<std::int64_t>(load.list.requests.size());
  run.represented = static_cast<double>(load.represented) / load.repeats;
  run.open = is_open_loop(load.list);
  run.saturated = run.open && run.saturated;
  if (load.part == MeasuredPart::all) {
    run.window = whole_run(counts);
  } else {
    run.window = measure_steady(load.list, run.replay.times, load.skipped, load.replay.slo, counts);
    if (!run.window.whole) run.saturated = run.window.overloaded;
  }
  run.classes =
      outcomes_of_classes(load.list, run.replay.times, load.replay.slo, run.window.counted);
}

ServingRun serve_requests(const PricedServing& priced, const ServingLoad& load, const Place& at) {
  const ServingSetup& setup = priced.setup;
  ServingRun run;
  run.setup = setup;
  run.kv = priced.kv;
  const Deployment& plan = setup.deployment;
  need_prefixes(plan, load, at);
  need_space(setup, longest_of(load.list), at);
  need_windows(setup, run.kv, load.list, load.prefix_cache, at);
  const ReplayShape shape{
      replica_shape(setup, load, run.kv),
      static_cast<std::uint32_t>(load.repeats * (plan.replicas / load.represented) * plan.dp *
                                 plan.pp)};
  run.replay = replay_requests(load.list, shape, priced.times);
  run.saturated = run.replay.counts.saturated();
  measure(load, run);
  return run;
}

Seconds ServingRun::span() const {
  const ReplayTotals& totals = replay.counts.totals;
  return totals.end - totals.first_arrival;
}

double ServingRun::requests_per_s() const {
  return represented * per_second(window.ended, window.span());
}

double ServingRun::output_tokens_per_s() const {
  return represented * per_second(window.output_tokens, window.span());
}

double ServingRun::total_tokens_per_s() const {
  return represented * per_second(window.output_tokens + window.prompt_tokens, window.span());
}

double ServingRun::interactivity() const {
  const LatencyHistogram& tpot = replay.counts.tpot;
  return tpot.count() > 0 ? 1.0 / tpot.percentile(0.5).si() : 0.0;
}

std::vector<TierUse> tier_uses(const ServingSetup& setup, const KvCapacity& kv,
                               const ReplayTotals& totals, double represented, Seconds span) {
  const Deployment& plan = setup.deployment;
  const ServingLoad none;
  ReplicaShape shape;
  if (plan.has_kv_tiers()) add_tiers(setup, kv, shape);
  const std::vector<std::string> names = plan.tier_names();
  const double lanes = static_cast<double>(plan.replicas) / represented * plan.dp;
  std::vector<TierUse> uses;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ReplayTotals::Tier& of = totals.tiers[i];
    TierUse use;
    use.name = names[i];
    use.hit_share = totals.tier_hit_share(i);
    use.loaded = represented * all_ranks_of(of.loaded_tokens, setup, kv);
    use.stored = represented * all_ranks_of(of.stored_tokens, setup, kv);
    // All that comes from behind the GPU passes the host's link.
    const bool is_host = names[i] == "host",
               is_shared = shape.kv.shares_last && i + 1 == names.size();
    const auto loaded = static_cast<double>(is_host ? totals.loaded_tokens() : of.loaded_tokens);
    Seconds busy = loaded / lanes * (is_host ? shape.rules.load_token : shape.rules.tiers[i].token);
    if (is_shared) busy = std::max(busy, loaded * represented * shape.rules.store_token);
    use.link_share = span > Seconds{} ? busy / span : 0.0;
    uses.push_back(use);
  }
  return uses;
}

std::vector<TierUse> ServingRun::tiers() const {
  return tier_uses(setup, kv, replay.counts.totals, represented, span());
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

// Simulated replicas that are enough to judge a fleet. A router that ignores their state leaves
// each alone with its share of the stream; one that looks at them balances better the more there
// are.
constexpr int enough_independent = 8, enough_balanced = 32;
constexpr std::int64_t first_requests = 1000;
constexpr std::int64_t requests_a_replica = 400;
constexpr std::int64_t rounds = 12;  // Requests of each client of a closed loop.
// Clients of a closed loop whose answers all have one length never change their order: figures are
// means over the orders of so many replicas.
constexpr int enough_orders = 4;
// Runs reveal an overload once they are this many times as long as the shortest.
constexpr std::int64_t until_overload = 4;
constexpr std::int64_t until_settled = 16;
constexpr std::int64_t most_of_goodput = 1 << 15;

// True if a sample of the replicas can stand for all: no times of single requests are kept, and
// what a replica has in its cache does not depend on how many there are.
bool can_sample_replicas(const ServingLoad& load, int replicas) {
  const ReplaySettings& replay = load.replay;
  return replicas > 0 && !replay.keeps_times && !replay.keeps_iterations && !replay.unfolded &&
         load.traffic.prefix.groups == 0;
}

// The largest number of replicas that one can represent: it divides them and the clients, and
// enough are left to simulate.
int most_represented(const ServingLoad& load, int replicas) {
  const int enough = looks_at_replicas(load.replay.routing) ? enough_balanced : enough_independent;
  const int clients = load.traffic.arrivals == Arrivals::closed ? load.traffic.concurrency : 0;
  int most = 1;
  for (int one = 2; replicas / one >= enough; ++one)
    if (replicas % one == 0 && clients % one == 0) most = one;
  return most;
}

// Simulates a part of the replicas, or all of them several times, where that gives the same means.
void choose_sample(ServingLoad& load, int replicas) {
  if (!can_sample_replicas(load, replicas)) return;
  RequestTraffic& traffic = load.traffic;
  load.represented = most_represented(load, replicas);
  const bool fixed_orders =
      traffic.arrivals == Arrivals::closed && !looks_at_replicas(load.replay.routing);
  if (fixed_orders && load.represented == 1)
    load.repeats = (enough_orders + replicas - 1) / replicas;
  traffic.rate /= load.represented;
  traffic.concurrency = traffic.concurrency / load.represented * load.repeats;
}

// Replays longer and longer runs until `enough` says so of one that is `times` as long as the
// shortest, or there are `most` requests.
ServingRun serve_longer(const Serve& serve, ServingLoad load, int replicas, std::int64_t most,
                        const std::function<bool(const ServingRun&, std::int64_t times)>& enough) {
  if (!load.finds_length) {
    if (load.list.requests.empty()) load.list = requests_of(load);
    ServingRun run = serve(load);
    if (!run.window.whole || !load.traffic.stationary) return run;
    // First answers are cut for a steady state, of which there is none.
    load.traffic.stationary = false;
    load.list = requests_of(load);
    return serve(load);
  }
  RequestTraffic& traffic = load.traffic;
  choose_sample(load, replicas);
  const std::int64_t clients = traffic.arrivals == Arrivals::closed ? traffic.concurrency : 0;
  const std::int64_t simulated = replicas / load.represented * load.repeats;
  const std::int64_t first =
      std::max({first_requests, rounds * clients, requests_a_replica * simulated});
  for (std::int64_t times = 1;; times *= 2) {
    traffic.requests = times * first;
    load.list = requests_of(load);
    ServingRun run = serve(load);
    const bool longest = times >= until_overload && 2 * traffic.requests > most;
    if (longest || enough(run, times) || (run.saturated && times >= until_overload)) return run;
  }
}

}  // namespace

ServingRun serve_until_steady(const Serve& serve, const ServingLoad& load, int replicas) {
  // Near the largest rate that keeps to the limits, queues change so slowly that a short run looks
  // steady and has seen the shorter ones alone.
  const bool has_slow_queues = load.replay.slo && load.traffic.arrivals != Arrivals::closed;
  return serve_longer(serve, load, replicas, most_sampled,
                      [&](const ServingRun& run, std::int64_t times) {
                        return run.window.steady && (!has_slow_queues || times >= until_settled);
                      });
}

std::optional<Slo> kept_limits(const ServingRun& run, const Slo& asked) {
  if (run.saturated) return std::nullopt;
  const ReplayCounts& counts = run.replay.counts;
  Slo kept{.share = asked.share};
  const double limits = (asked.ttft < Slo::any) + (asked.tpot < Slo::any) + (asked.e2e < Slo::any);
  // The percentile is rounded up to whole milliseconds; one more covers a histogram bucket's width.
  const auto keep = [&](Seconds Slo::*limit, const LatencyHistogram& of) {
    if (!(asked.*limit < Slo::any)) return;
    const double percentile = of.percentile(1.0 - (1.0 - asked.share) / limits).si();
    kept.*limit = std::max(asked.*limit, Seconds{1e-3 * (std::ceil(1e3 * percentile) + 1.0)});
  };
  keep(&Slo::ttft, counts.ttft);
  keep(&Slo::tpot, counts.tpot);
  keep(&Slo::e2e, counts.e2e);
  return kept;
}

Goodput largest_rate(const Serve& serve, ServingLoad load, int replicas) {
  assert(load.replay.slo);
  const double share = load.replay.slo->share;
  Goodput goodput;
  // A run may be shorter if the share of requests that meet the limits is clearly below the one
  // that is wanted; an overload may yet hide behind one that is above.
  const auto decided = [&](const ServingRun& run, std::int64_t times) {
    if (!run.window.long_enough) return false;
    const double beyond = run.slo_share() - share;
    return std::abs(beyond) > run.window.attainment.half &&
           (beyond < 0.0 || times >= until_overload);
  };
  const auto meets = [&](double rate) {
    load.traffic.rate = rate;
    load.list.requests.clear();
    ServingRun run = serve_longer(serve, load, replicas, most_of_goodput, decided);
    ++goodput.rates_tried;
    const bool is_met = !run.saturated && run.slo_share() >= share;
    if (is_met) goodput.at_lowest.reset();
    if (is_met || !goodput.at_rate) (is_met ? goodput.at_rate : goodput.at_lowest) = std::move(run);
    return is_met;
  };
  double rate = std::max(1, replicas);
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
  // Runs that were as long as the decision needed are more favourable than longer ones. The rate
  // must hold in a run as long as one at that rate is by itself.
  const auto holds = [&](double at) {
    load.traffic.rate = at;
    load.list.requests.clear();
    ServingRun run = serve_until_steady(serve, load, replicas);
    ++goodput.rates_tried;
    const bool is_met = !run.saturated && run.slo_share() >= share;
    if (is_met) goodput.at_rate = std::move(run);
    return is_met;
  };
  if (load.finds_length) {
    high = low;
    double step = close_enough;
    while (!holds(low)) {
      high = low;
      low /= step;
      step *= step;
      if (low >= least_rate) continue;
      goodput.at_lowest = std::move(goodput.at_rate);
      goodput.at_rate.reset();
      return goodput;
    }
    while (high / low > close_enough) {
      const double middle = 0.5 * (low + high);
      (holds(middle) ? low : high) = middle;
    }
  }
  goodput.rate = low;
  return goodput;
}

}  // namespace orrery
