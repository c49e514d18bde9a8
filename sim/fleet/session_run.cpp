#include "sim/fleet/session_run.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "sim/serving/fleet.hpp"

namespace orrery {
namespace {

enum Stream : std::uint64_t { order_stream = 11, start_stream, arrival_stream };

constexpr std::uint32_t most_lanes_tried = 1 << 16;

}  // namespace

SessionSource::SessionSource(const SessionLoad& load, Seconds client, RequestList& sent)
    : load_{load},
      client_{client},
      sent_{sent},
      order_(load.trace.sessions.size()),
      warm_left_(load.lanes, load.warm_turns),
      lanes_to_warm_{load.warm_turns > 0 ? load.lanes : 0},
      clock_{lanes_to_warm_ > 0 ? Replica::never : Seconds{}},
      end_{lanes_to_warm_ > 0 ? Replica::never : load.duration},
      arrivals_{load.seed, arrival_stream} {
  assert(!order_.empty() && (load.lanes > 0) != (load.rate > 0.0));
  std::iota(order_.begin(), order_.end(), 0u);
  Random shuffle{load.seed, order_stream};
  for (std::size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[static_cast<std::size_t>(shuffle.below(i))]);
  Random starts{load.seed, start_stream};
  for (std::uint32_t lane = 0; lane < load.lanes; ++lane)
    begin(lane, Seconds{}, load.start_low + (load.start_high - load.start_low) * starts.unit());
  if (load.rate > 0.0) arrive_next(Seconds{});
}

// Draws the next session's arrival. Its first turn brings the one after it.
void SessionSource::arrive_next(Seconds now) {
  const Seconds next = now + Seconds{-portable_log(1.0 - arrivals_.unit()) / load_.rate};
  if (next < end_) begin(0, next, 0.0);
}

// `done`: the share of its turns that it has behind it.
void SessionSource::begin(std::uint32_t lane, Seconds now, double done) {
  const SessionTrace& trace = load_.trace;
  const std::uint32_t number = order_[cursor_];
  cursor_ = cursor_ + 1 == order_.size() ? 0 : cursor_ + 1;
  const Session& session = trace.sessions[number];
  const auto first = static_cast<std::uint32_t>(sent_.requests.size());
  const auto behind = std::min(
      session.turns - 1, static_cast<std::uint32_t>(done * static_cast<double>(session.turns)));
  const auto instance = static_cast<std::uint32_t>(instances_.size());
  instances_.push_back(
      {number, lane, first, session.turns - behind, behind == 0, now, Seconds{-1.0}});
  for (std::uint32_t i = 0; i < session.turns; ++i) {
    const Turn& turn = trace.turns[session.first_turn + i];
    Request request = trace.list.requests[turn.request];
    request.session = instance;
    request.round = instance / static_cast<std::uint32_t>(order_.size());
    sent_.requests.push_back(request);
    origins_.push_back({instance, session.first_turn + i, turn.waits_for, false, false, now});
  }
  for (std::uint32_t i = 0; i < behind; ++i)
    for (const Follower& next : trace.followers_of(trace.turns[session.first_turn + i]))
      --origins_[first + next.turn - session.first_turn].waits_for;
  for (std::uint32_t i = behind; i < session.turns; ++i)
    if (origins_[first + i].waits_for == 0) push(first + i);
}

void SessionSource::push(std::uint32_t request) {
  const Seconds due = origins_[request].due;
  if (due < end_) times_.push(due + client_, request, request);
}

std::uint32_t SessionSource::take() {
  const std::uint32_t request = times_.pop().event;
  Origin& origin = origins_[request];
  origin.is_sent = true;
  origin.counts = origin.due >= clock_;
  const Seconds due = origin.due;
  if (load_.rate > 0.0 && request == instances_[origin.instance].first_request) arrive_next(due);
  return request;
}

void SessionSource::warmed(std::uint32_t lane, Seconds now) {
  if (warm_left_.empty() || warm_left_[lane] == 0 || --warm_left_[lane] > 0) return;
  if (--lanes_to_warm_ > 0) return;
  clock_ = now;
  end_ = now + load_.duration;
}

void SessionSource::ended(std::span<const RequestTimes> requests, Seconds now) {
  const SessionTrace& trace = load_.trace;
  for (const RequestTimes& of : requests) {
    const Origin origin = origins_[of.request];
    Instance& instance = instances_[origin.instance];
    const Session& session = trace.sessions[instance.session];
    warmed(instance.lane, now);
    for (const Follower& next : trace.followers_of(trace.turns[origin.turn])) {
      const std::uint32_t request = instance.first_request + next.turn - session.first_turn;
      Origin& waiting = origins_[request];
      const Seconds wait = std::min(load_.think * next.wait, load_.longest_wait);
      waiting.due = std::max(waiting.due, now + wait);
      if (--waiting.waits_for == 0) push(request);
    }
    if (--instance.left > 0) continue;
    instance.ended = now;
    if (load_.lanes > 0 && now < end_) begin(instance.lane, now, 0.0);
  }
}

namespace {

double per_second(double amount, Seconds span) {
  return span > Seconds{} ? amount / span.si() : 0.0;
}

// The longest turn, of which the memory must hold one.
RequestList longest_turn(const SessionTrace& trace) { return {{longest_of(trace.list)}, {}, 0}; }

}  // namespace

double SessionRun::ideal_hit_share() const {
  const auto all = static_cast<double>(counts.totals.prompt_tokens);
  return all > 0.0 ? known_tokens / all : 0.0;
}

double SessionRun::bound_of_hits() const {
  const auto all = static_cast<double>(counts.totals.prompt_tokens);
  return all > 0.0 ? known_with_answers / all : 0.0;
}

double SessionRun::total_tokens_per_s_per_gpu() const {
  const ReplayTotals& totals = counts.totals;
  return per_second(static_cast<double>(totals.prompt_tokens + totals.output_tokens), span) /
         static_cast<double>(gpus());
}

double SessionRun::computed_tokens_per_s_per_gpu() const {
  const ReplayTotals& totals = counts.totals;
  return per_second(static_cast<double>(totals.prompt_tokens + totals.output_tokens -
                                        totals.prefix_hit_tokens),
                    span) /
         static_cast<double>(gpus());
}

double SessionRun::turns_per_s() const {
  return per_second(static_cast<double>(counts.totals.finished), span);
}

double SessionRun::imbalance() const {
  const auto sum = static_cast<double>(
      std::accumulate(prompt_tokens_of.begin(), prompt_tokens_of.end(), std::int64_t{0}));
  if (!(sum > 0.0)) return 1.0;
  return static_cast<double>(*std::max_element(prompt_tokens_of.begin(), prompt_tokens_of.end())) *
         static_cast<double>(prompt_tokens_of.size()) / sum;
}

double SessionRun::slo_share() const {
  const ReplayTotals& totals = counts.totals;
  return totals.finished > 0
             ? static_cast<double>(totals.within_slo) / static_cast<double>(totals.finished)
             : 0.0;
}

void replay_sessions(const SessionLoad& sessions, const ReplayShape& shape, StepTimes& times,
                     SessionRun& run) {
  RequestList list;
  list.hashes = sessions.trace.list.hashes;
  list.hash_tokens = sessions.trace.list.hash_tokens;
  list.hashes_of_sessions = sessions.trace.list.hashes_of_sessions;
  list.seed = sessions.seed;
  SessionSource source{sessions, shape.replica.client, list};
  Fleet fleet{list, shape.replica, shape.replicas, times,
              RequestRouter{shape.replica.replay.routing, shape.replicas, list.seed, 0,
                            shape.replica.replay.router_weights}};
  const auto ended = [&](const Replica& replica) {
    run.times.insert(run.times.end(), replica.ended().begin(), replica.ended().end());
  };
  fleet.run(source, ended, [&](std::uint32_t request, std::uint32_t replica) {
    run.replica_of.resize(list.requests.size());
    run.replica_of[request] = replica;
  });

  // Totals of the engines are of the whole run; those of requests are of the turns that count.
  for (const Replica& replica : fleet.replicas()) run.counts.add(replica.counts());
  run.counts.forget_finished();
  run.origins = source.origins();
  run.prompt_tokens_of.resize(shape.replicas);
  Seconds first = Replica::never, last;
  for (const RequestTimes& of : run.times) {
    const SessionSource::Origin& origin = run.origins[of.request];
    if (!origin.counts) continue;
    const Turn& turn = sessions.trace.turns[origin.turn];
    const Request& request = list.requests[of.request];
    run.counts.finish(of, request.prompt_tokens, request.output_tokens, shape.replica.replay.slo);
    run.known_tokens += turn.known;
    run.known_with_answers += turn.known_with_answers;
    run.sub_agent_turns += turn.by_sub_agent ? 1 : 0;
    run.prompt_tokens_of[run.replica_of[of.request]] += request.prompt_tokens;
    first = std::min(first, of.arrival);
    last = std::max(last, of.arrival + of.e2e);
  }
  run.sent = std::ssize(run.times);
  run.span = source.end() < Replica::never ? source.end() - source.clock() : last - first;
  for (const SessionSource::Instance& of : source.instances()) {
    if (of.whole && of.ended >= Seconds{}) run.session_time.add(of.ended - of.begun);
    ++run.sessions_begun;
  }
}

SessionRun serve_sessions(const PricedServing& priced, const SessionLoad& sessions,
                          const ServingLoad& load, const Place& at) {
  const ServingSetup& setup = priced.setup;
  const Deployment& plan = setup.deployment;
  SessionRun run;
  run.setup = setup;
  run.kv = priced.kv;
  ServingLoad rules = load;
  rules.list = longest_turn(sessions.trace);
  need_prefixes(plan, rules, at);
  need_space(setup, rules.list.requests.front(), at);
  need_windows(setup, run.kv, rules.list, rules.prefix_cache, at);
  const ReplayShape shape{replica_shape(setup, rules, run.kv),
                          static_cast<std::uint32_t>(plan.replicas * plan.dp * plan.pp)};
  replay_sessions(sessions, shape, priced.times, run);
  return run;
}

MostLanes most_lanes(const PricedServing& priced, SessionLoad sessions, const ServingLoad& load,
                     const Place& at) {
  assert(load.replay.slo);
  MostLanes most;
  const auto keeps = [&](std::uint32_t lanes) {
    sessions.lanes = lanes;
    SessionRun run = serve_sessions(priced, sessions, load, at);
    ++most.tried;
    const bool meets = run.counts.totals.finished > 0 && run.slo_share() >= load.replay.slo->share;
    if (meets || most.lanes == 0) most.run = std::move(run);
    if (meets) most.lanes = lanes;
    return meets;
  };
  std::uint32_t low = 1;
  if (!keeps(low)) return most;
  while (low < most_lanes_tried && keeps(2 * low)) low *= 2;
  std::uint32_t high = 2 * low;
  while (high - low > std::max(1u, low / 20)) {
    const std::uint32_t middle = low + (high - low) / 2;
    (keeps(middle) ? low : high) = middle;
  }
  return most;
}

}  // namespace orrery
