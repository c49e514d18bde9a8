#include "sim/fleet/scaled_run.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/random.hpp"
#include "sim/serving/fleet.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t curve_stream = 21;

constexpr Seconds minute{60.0};

// Buckets of the expected latencies in seconds, as llm-d's router exports them
// (llm-d-router, predictedlatency/metrics.go, ebab687).
constexpr double ttft_bounds[] = {0.005, 0.025, 0.05, 0.1,  0.2,  0.4,  0.6,  0.8,
                                  1.0,   1.25,  1.5,  2.0,  3.0,  4.0,  5.0,  6.0,
                                  8.0,   10.0,  15.0, 20.0, 30.0, 45.0, 60.0, 120.0};
constexpr double tpot_bounds[] = {0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08,
                                  0.1,    0.125,   0.15,  0.2,  0.3,  0.4,  0.5};

struct Expectation {
  Seconds ttft, tpot;
};

// One run: the clock of requests, of the policy and of replicas that start and end.
class ScaledFleet {
 public:
  ScaledFleet(const PricedServing& priced, const ScaledLoad& load, const RequestList& requests,
              const ReplicaShape& shape, ScaledRun& run)
      : load_{load},
        requests_{requests},
        shape_{shape},
        times_{priced.times},
        run_{run},
        lanes_{static_cast<std::uint32_t>(priced.setup.deployment.dp * priced.setup.deployment.pp)},
        profile_{profile_of(priced, shape)},
        policy_{make_policy(load.scaler, load.curve, load.start, profile_)},
        granting_{load.scaler.grants, load.scaler.least, load.scaler.most},
        fleet_{
            requests, shape, static_cast<std::uint32_t>(load.initial) * lanes_, priced.times,
            RequestRouter{shape.replay.routing, static_cast<std::uint32_t>(load.initial) * lanes_,
                          requests.seed, 0, shape.replay.router_weights}},
        asked_{load.initial} {
    // Kubernetes' first recommendation is the number that there is.
    if (load.scaler.law == ScalingLaw::hpa) granting_.recommend(Seconds{}, load.initial);
    for (int r = 0; r < load.initial; ++r) {
      run_.lives.push_back({});
      first_lane_.push_back(static_cast<std::uint32_t>(r) * lanes_);
    }
    run_.times.resize(requests.requests.size());
  }

  void run() {
    std::size_t next = 0;  // Request.
    Seconds cycle = policy_->cycle(), sync = load_.scaler.grants.sync, sample;
    const bool is_granted = load_.scaler.is_granted();
    while (true) {
      const Seconds arrival = next_arrival(next);
      const Seconds change = fleet_.next_change();
      if (std::min(arrival, change) == Replica::never && now_ >= load_.curve.end + shift_) break;
      Seconds moment = std::min({arrival, change, cycle, sample, next_ready()});
      if (is_granted) moment = std::min(moment, sync);
      now_ = moment;
      fleet_.complete_all(now_, [&](const Replica& replica, std::uint32_t) {
        for (const RequestTimes& of : replica.ended()) {
          run_.times[of.request] = of;
          if (load_.scaler.law == ScalingLaw::wva)
            seen_.push_back({now_, expected_[of.request].ttft, expected_[of.request].tpot});
        }
        answered_ += replica.ended().size();
        ended_some_ = true;
      });
      if (answered_ == next) begin_stage(next);
      if (ended_some_) end_drained();
      make_ready();
      while (next_arrival(next) <= now_) arrive(static_cast<std::uint32_t>(next++));
      if (now_ == cycle) {
        cycle += policy_->cycle();
        wish_ = policy_->wish(signals());
        granting_.wish(wish_.replicas);
        if (!is_granted && load_.scaler.law != ScalingLaw::fixed)
          ask_for(std::clamp(wish_.replicas, load_.scaler.least, load_.scaler.most));
      }
      if (is_granted && now_ == sync) {
        sync += load_.scaler.grants.sync;
        ask_for(granting_.grant(now_, asked_));
      }
      if (now_ == sample) {
        sample += minute;
        note_moment();
      }
      fleet_.start_all(now_);
    }
    run_.load_end = load_.curve.end + shift_;
    run_.span = std::max(now_, run_.load_end);
    for (const Replica& replica : fleet_.replicas()) run_.counts.add(replica.counts());
    for (ReplicaLife& life : run_.lives)
      if (life.closed >= Seconds{} && life.ended < Seconds{}) life.ended = run_.span;
  }

 private:
  std::size_t stage_of(Seconds nominal) const {
    std::size_t stage = 0;
    while (stage + 1 < load_.curve.stages.size() && load_.curve.stages[stage + 1].begin < nominal)
      ++stage;
    return stage;
  }

  // The time at which a request comes; `never` if its stage has not begun.
  Seconds next_arrival(std::size_t next) const {
    if (next >= requests_.requests.size()) return Replica::never;
    const Seconds nominal = requests_.requests[next].arrival;
    if (load_.between_stages && stage_of(nominal) > stage_) return Replica::never;
    return nominal + shift_ + shape_.client;
  }

  // All requests so far are answered: the stage of the next one begins after a pause, if the one
  // before has ended.
  void begin_stage(std::size_t next) {
    if (!load_.between_stages || next >= requests_.requests.size()) return;
    const std::size_t stage = stage_of(requests_.requests[next].arrival);
    if (stage == stage_) return;
    const Seconds nominal = load_.curve.stages[stage].begin;
    shift_ = std::max(shift_, now_ + *load_.between_stages - nominal);
    stage_ = stage;
  }

  bool is_ready(std::size_t r) const {
    return run_.lives[r].closed < Seconds{} && first_lane_[r] != none;
  }

  Seconds next_ready() const {
    Seconds next = Replica::never;
    for (std::size_t r = 0; r < run_.lives.size(); ++r)
      if (first_lane_[r] == none && run_.lives[r].closed < Seconds{})
        next = std::min(next, run_.lives[r].ready);
    return next;
  }

  void open() {
    std::vector<std::uint32_t> lanes;
    for (std::size_t r = 0; r < run_.lives.size(); ++r)
      if (is_ready(r))
        for (std::uint32_t lane = 0; lane < lanes_; ++lane) lanes.push_back(first_lane_[r] + lane);
    fleet_.router().open(std::move(lanes));
  }

  void make_ready() {
    bool changed = false;
    for (std::size_t r = 0; r < run_.lives.size(); ++r)
      if (first_lane_[r] == none && run_.lives[r].closed < Seconds{} &&
          run_.lives[r].ready <= now_) {
        first_lane_[r] = fleet_.add(lanes_);
        changed = true;
      }
    if (changed) open();
  }

  void end_drained() {
    ended_some_ = false;
    for (std::size_t r = 0; r < run_.lives.size(); ++r) {
      ReplicaLife& life = run_.lives[r];
      if (life.closed < Seconds{} || life.ended >= Seconds{}) continue;
      if (present(r) == 0) life.ended = now_;
    }
  }

  std::int64_t present(std::size_t r) const {
    std::int64_t present = 0;
    if (first_lane_[r] != none)
      for (std::uint32_t lane = 0; lane < lanes_; ++lane)
        present += fleet_.replicas()[first_lane_[r] + lane].present();
    return present;
  }

  // Gives up those that are not ready yet first, and then the newest, as Kubernetes does.
  void ask_for(int replicas) {
    if (replicas == asked_) return;
    run_.decisions.push_back({now_, asked_, replicas, wish_.why});
    for (; asked_ < replicas; ++asked_) {
      run_.lives.push_back({now_, now_ + load_.start});
      first_lane_.push_back(none);
    }
    for (; asked_ > replicas; --asked_) {
      std::size_t last = run_.lives.size();
      for (const bool ready : {false, true})
        for (std::size_t r = run_.lives.size(); r-- > 0 && last == run_.lives.size();)
          if (run_.lives[r].closed < Seconds{} && (first_lane_[r] != none) == ready) last = r;
      ReplicaLife& life = run_.lives[last];
      life.closed = now_;
      if (present(last) == 0) life.ended = now_;
    }
    open();
  }

  void arrive(std::uint32_t index) {
    const std::uint32_t number = fleet_.deliver(index, now_);
    came_.push_back({now_, index});
    count_came(index, 1);
    if (load_.scaler.law != ScalingLaw::wva) return;
    expected_.resize(requests_.requests.size());
    expected_[index] = expectation(fleet_.replicas()[number], requests_.requests[index]);
  }

  void count_came(std::uint32_t index, int sign) {
    const Request& request = requests_.requests[index];
    came_prompts_ += sign * std::int64_t{request.prompt_tokens};
    came_outputs_ += sign * std::int64_t{request.output_tokens};
  }

  // What a planner has measured of the engine before.
  EngineProfile profile_of(const PricedServing& priced, const ReplicaShape& shape) {
    EngineProfile profile;
    profile.step = [this](std::int64_t decodes, double context, double prompts) {
      const auto tokens = static_cast<std::uint32_t>(std::llround(prompts));
      const auto held = static_cast<std::int64_t>(context);
      if (tokens == 0) return times_.decode(std::max<std::int64_t>(1, decodes), held).first;
      return times_.mixed(decodes, held, {{tokens, 0}}, 1);
    };
    profile.cache_tokens = static_cast<double>(priced.kv.tokens) * lanes_;
    profile.most_requests = static_cast<double>(shape.rules.most_requests) * lanes_;
    profile.budget = static_cast<double>(shape.rules.budget);
    if (shape.replay.slo) {
      profile.ttft = shape.replay.slo->ttft;
      profile.tpot = shape.replay.slo->tpot;
    }
    return profile;
  }

  // Estimates a request's TTFT and TPOT from the state of its replica when it comes. TTFT is the
  // time of its prompt and of those before it, and of the decodes that must end before the cache
  // has room. TPOT is that of the batch, which pauses while prompts are computed.
  Expectation expectation(const Replica& replica, const Request& request) {
    const ServingBatch& batch = replica.batch();
    const std::int64_t decodes = std::max<std::int64_t>(1, batch.decodes());
    const std::int64_t context = std::max<std::int64_t>(request.prompt_tokens, batch.context());
    const std::int64_t chunk = std::min<std::int64_t>(shape_.rules.budget, request.prompt_tokens);
    const Seconds step = times_.decode(decodes, context).first;
    const Seconds part =
        times_.mixed(batch.decodes(), batch.context(), {{static_cast<std::uint32_t>(chunk), 0}}, 1);
    const Seconds a_token = part / static_cast<double>(chunk);
    Seconds ttft = shape_.client + static_cast<double>(replica.prompts_to_compute()) * a_token;
    const double free = static_cast<double>(batch.kv().available()) * batch.kv().tokens_a_block();
    const double wanted =
        static_cast<double>(batch.waiting()) * static_cast<double>(request.prompt_tokens);
    if (batch.decodes() > 0 && wanted > free) {
      const double each = static_cast<double>(context) / static_cast<double>(decodes);
      const Seconds apart =
          static_cast<double>(request.output_tokens) / static_cast<double>(decodes) * step;
      ttft += (wanted - free) / each * apart;
    }
    const double open = static_cast<double>(std::max(1, ready()) * static_cast<int>(lanes_));
    const double busy = rate() / open * static_cast<double>(request.prompt_tokens) * a_token.si();
    return {ttft, step / std::max(0.05, 1.0 - busy)};
  }

  // Drops what lies before the policy's window.
  void forget_old() {
    const Seconds from = now_ - policy_->window();
    while (!seen_.empty() && seen_.front().time <= from) seen_.pop_front();
    for (; !came_.empty() && came_.front().first <= from; came_.pop_front())
      count_came(came_.front().second, -1);
  }

  // Requests a second in the policy's window.
  double rate() {
    forget_old();
    return static_cast<double>(came_.size()) /
           std::min(policy_->window(), std::max(now_, Seconds{1.0})).si();
  }

  int ready() const {
    int count = 0;
    for (std::size_t r = 0; r < run_.lives.size(); ++r) count += is_ready(r) ? 1 : 0;
    return count;
  }

  ScalingSignals signals() {
    ScalingSignals seen;
    seen.now = now_;
    seen.of_curve = now_ - shift_;
    seen.ready = ready();
    seen.asked = asked_;
    forget_old();
    if (!seen_.empty()) {
      MetricHistogram ttft{ttft_bounds}, tpot{tpot_bounds};
      for (const Seen& one : seen_) {
        ttft.add(one.ttft.si());
        tpot.add(one.tpot.si());
      }
      const Slo& slo = *shape_.replay.slo;
      seen.mean_saturation = std::max(ttft.mean() / slo.ttft.si(), tpot.mean() / slo.tpot.si());
      seen.p90_saturation =
          std::max(ttft.quantile(0.9) / slo.ttft.si(), tpot.quantile(0.9) / slo.tpot.si());
    }
    seen.came = std::ssize(came_);
    if (seen.came > 0) {
      seen.prompt_tokens = static_cast<double>(came_prompts_) / static_cast<double>(seen.came);
      seen.output_tokens = static_cast<double>(came_outputs_) / static_cast<double>(seen.came);
    }
    std::int64_t waiting = 0, lanes = 0;
    for (std::size_t r = 0; r < run_.lives.size(); ++r) {
      seen.in_flight += present(r);
      if (!is_ready(r)) continue;
      if (load_.scaler.law == ScalingLaw::planner) seen.replicas.push_back(work_of(r));
      for (std::uint32_t lane = 0; lane < lanes_; ++lane, ++lanes) {
        const ServingBatch& batch = fleet_.replicas()[first_lane_[r] + lane].batch();
        seen.kv_share +=
            static_cast<double>(batch.kv().used()) / static_cast<double>(batch.kv().capacity());
        waiting += batch.waiting();
      }
    }
    seen.kv_share /= static_cast<double>(std::max<std::int64_t>(1, lanes));
    seen.queue =
        static_cast<double>(waiting) / static_cast<double>(std::max<std::int64_t>(1, lanes));
    run_.longest_queue = std::max(run_.longest_queue, waiting);
    return seen;
  }

  ReplicaWork work_of(std::size_t r) const {
    ReplicaWork work;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      const Replica& replica = fleet_.replicas()[first_lane_[r] + lane];
      const KvBlocks& kv = replica.batch().kv();
      // Requests wait that the scheduler has looked at: others come with the next iteration.
      const double waiting = static_cast<double>(replica.batch().seen_waiting()) *
                             static_cast<double>(came_prompts_) /
                             std::max(1.0, static_cast<double>(came_.size()));
      work.queued_prompts += waiting;
      work.cache += static_cast<double>(kv.used()) * kv.tokens_a_block() + waiting;
      work.cache_size += static_cast<double>(kv.capacity()) * kv.tokens_a_block();
      work.decodes += replica.batch().decodes();
    }
    return work;
  }

  void note_moment() {
    FleetMoment moment;
    moment.time = now_;
    moment.rate = load_.curve.rate_at(now_ - shift_);
    for (std::size_t r = 0; r < run_.lives.size(); ++r) {
      const ReplicaLife& life = run_.lives[r];
      moment.ready += is_ready(r) ? 1 : 0;
      moment.starting += life.closed < Seconds{} && first_lane_[r] == none ? 1 : 0;
      moment.draining += life.closed >= Seconds{} && life.ended < Seconds{} ? 1 : 0;
    }
    run_.timeline.push_back(moment);
  }

  static constexpr std::uint32_t none = 0xffffffff;
  struct Seen {
    Seconds time, ttft, tpot;
  };

  const ScaledLoad& load_;
  const RequestList& requests_;
  const ReplicaShape& shape_;
  StepTimes& times_;
  ScaledRun& run_;
  std::uint32_t lanes_;
  EngineProfile profile_;
  std::unique_ptr<ScalingPolicy> policy_;
  Granting granting_;
  Fleet fleet_;
  std::vector<std::uint32_t> first_lane_;  // Of each life; `none`: it starts.
  std::vector<Expectation> expected_;      // Of each request.
  std::deque<Seen> seen_;                  // As they were answered.
  std::deque<std::pair<Seconds, std::uint32_t>> came_;
  std::int64_t came_prompts_ = 0, came_outputs_ = 0;  // Tokens of those.
  std::size_t stage_ = 0, answered_ = 0;
  Seconds shift_;  // Of the present stage behind the curve.
  ScalingPolicy::Wish wish_;
  int asked_;
  bool ended_some_ = false;
  Seconds now_;
};

}  // namespace

RequestList requests_of_curve(const LoadCurve& curve, bool constant, RequestTraffic traffic) {
  std::vector<Seconds> arrivals;
  Random random{traffic.seed, curve_stream};
  for (std::size_t i = 0; i < curve.stages.size(); ++i) {
    const LoadCurve::Stage& stage = curve.stages[i];
    const Seconds span =
        (i + 1 < curve.stages.size() ? curve.stages[i + 1].begin : curve.end) - stage.begin;
    const std::int64_t number = std::llround(stage.rate * span.si());
    // Independent gaps, scaled to the stage: the last request comes at its end.
    std::vector<Seconds> gaps;
    Seconds sum;
    for (std::int64_t request = 0; request < number; ++request) {
      gaps.push_back(Seconds{constant ? 1.0 : -portable_log(1.0 - random.unit())});
      sum += gaps.back();
    }
    Seconds at;
    for (const Seconds gap : gaps) {
      at += gap;
      arrivals.push_back(stage.begin + std::min(1.0, at / sum) * span);
    }
  }
  traffic.arrivals = Arrivals::burst;
  traffic.stationary = false;
  traffic.requests = static_cast<std::int64_t>(arrivals.size());
  RequestList list = sample_requests(traffic);
  for (std::size_t i = 0; i < arrivals.size(); ++i) list.requests[i].arrival = arrivals[i];
  return list;
}

namespace {

Seconds sum_over(const ScaledRun& run, Seconds (*of)(const ReplicaLife&, Seconds)) {
  Seconds sum;
  for (const ReplicaLife& life : run.lives) sum += of(life, run.span);
  return sum;
}

}  // namespace

Seconds ScaledRun::starting() const {
  return sum_over(*this, [](const ReplicaLife& life, Seconds end) {
    const Seconds until = life.closed >= Seconds{} ? std::min(life.closed, life.ready) : life.ready;
    return std::min(until, end) - life.asked;
  });
}

Seconds ScaledRun::serving() const {
  return sum_over(*this, [](const ReplicaLife& life, Seconds end) {
    const Seconds until = life.closed >= Seconds{} ? life.closed : end;
    return std::max(Seconds{}, until - life.ready);
  });
}

Seconds ScaledRun::draining() const {
  return sum_over(*this, [](const ReplicaLife& life, Seconds) {
    return life.closed >= Seconds{} ? life.ended - life.closed : Seconds{};
  });
}

double ScaledRun::gpu_hours() const {
  return (starting() + serving() + draining()).si() / 3600.0 * gpus_a_replica();
}

double ScaledRun::mean_replicas(Seconds until) const {
  Seconds sum;
  for (const ReplicaLife& life : lives) {
    const Seconds end = life.closed >= Seconds{} ? std::min(life.closed, until) : until;
    sum += std::max(Seconds{}, end - life.asked);
  }
  return until > Seconds{} ? sum / until : 0.0;
}

int ScaledRun::most_ready() const {
  int most = 0;
  for (const FleetMoment& moment : timeline) most = std::max(most, moment.ready);
  return most;
}

double ScaledRun::attainment() const {
  const ReplayTotals& totals = counts.totals;
  return totals.finished > 0
             ? static_cast<double>(totals.within_slo) / static_cast<double>(totals.finished)
             : 0.0;
}

ScaledRun serve_scaled(const PricedServing& priced, const ScaledLoad& load,
                       const RequestList& requests, const ServingLoad& rules, const Place& at) {
  ScaledRun run;
  run.setup = priced.setup;
  run.kv = priced.kv;
  run.scaler = load.scaler;
  ServingLoad of = rules;
  of.list = {{longest_of(requests)}, {}, 0};
  need_prefixes(run.setup.deployment, of, at);
  need_space(run.setup, of.list.requests.front(), at);
  need_windows(run.setup, run.kv, of.list, of.prefix_cache, at);
  ReplicaShape shape = replica_shape(run.setup, of, run.kv);
  shape.replay.counts_prompts = load.scaler.law == ScalingLaw::wva;
  ScaledFleet{priced, load, requests, shape, run}.run();
  // The share of each minute's requests that kept to the limits.
  std::vector<std::int64_t> came(run.timeline.size()), kept(run.timeline.size());
  if (rules.replay.slo || !requests.classes.empty())
    for (const RequestTimes& times : run.times) {
      const auto bin = static_cast<std::size_t>(std::ceil(times.arrival / minute));
      if (bin >= came.size()) continue;
      ++came[bin];
      const std::optional<Slo>& limits =
          requests.limits_of(requests.requests[times.request], rules.replay.slo);
      kept[bin] += !limits || limits->met(times.ttft, times.tpot, times.e2e) ? 1 : 0;
    }
  for (std::size_t i = 0; i < came.size(); ++i)
    if (came[i] > 0)
      run.timeline[i].attainment = static_cast<double>(kept[i]) / static_cast<double>(came[i]);
  return run;
}

void PolicySamples::add(const ScaledRun& run) {
  attainment.push_back(run.attainment());
  gpu_hours.push_back(run.gpu_hours());
  replicas.push_back(run.mean_replicas());
  const double hours = run.gpus_a_replica() / 3600.0;
  serving.push_back(hours * run.serving().si());
  starting.push_back(hours * run.starting().si());
  draining.push_back(hours * run.draining().si());
  changes.push_back(static_cast<double>(run.decisions.size()));
  counts.add(run.counts);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

BestPolicy best_policy(const std::vector<ScalerRequest>& policies,
                       const std::vector<PolicySamples>& samples, double share) {
  const auto takes_part = [&](std::size_t i) {
    return policies[i].law != ScalingLaw::oracle && mean_of(samples[i].attainment) >= share;
  };
  BestPolicy answer;
  for (std::size_t i = 0; i < policies.size(); ++i)
    if (takes_part(i) &&
        (!answer.best || mean_of(samples[i].gpu_hours) < mean_of(samples[*answer.best].gpu_hours)))
      answer.best = i;
  if (!answer.best) return answer;
  const std::vector<double>& least = samples[*answer.best].gpu_hours;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (i == *answer.best || !takes_part(i)) continue;
    std::vector<double> more;
    for (std::size_t s = 0; s < least.size(); ++s)
      more.push_back(samples[i].gpu_hours[s] - least[s]);
    const double mean = mean_of(more);
    double squares = 0.0;
    for (const double one : more) squares += (one - mean) * (one - mean);
    const auto n = static_cast<double>(more.size());
    const double error = n > 1.0 ? std::sqrt(squares / (n - 1.0) / n) : 0.0;
    if (mean <= std::max(2.0 * error, 0.01 * mean_of(least))) answer.ties.push_back(i);
  }
  return answer;
}

Seconds least_replica_seconds(const LoadCurve& curve, double capacity) {
  Seconds sum;
  for (std::size_t i = 0; i < curve.stages.size(); ++i) {
    const Seconds until = i + 1 < curve.stages.size() ? curve.stages[i + 1].begin : curve.end;
    sum += std::ceil(curve.stages[i].rate / capacity - 1e-9) * (until - curve.stages[i].begin);
  }
  return sum;
}

Seconds start_time(const ServingSetup& setup, ReplicaStart how) {
  const Bytes weights = rank_weights(setup.model, setup.system.gpu, setup.deployment);
  const Seconds read{0.3 * weights.si() / 1e9};
  switch (how) {
    case ReplicaStart::cold:
      return Seconds{55.0} + read;
    case ReplicaStart::snapshot:
      return Seconds{3.5} + read;
    case ReplicaStart::sleep:
      return Seconds{0.1} + weights / setup.system.gpu.host;
  }
  return {};
}

Seconds start_time(const ServingSetup& setup, const std::string& text, const Place& at) {
  if (text.empty()) return start_time(setup, ReplicaStart::cold);
  for (const ReplicaStart how : {ReplicaStart::cold, ReplicaStart::snapshot, ReplicaStart::sleep})
    if (text == name(how)) return start_time(setup, how);
  return parse_span(text, at);
}

}  // namespace orrery
