#include "sim/posttraining/rl_overlap.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// Prompts of a step, in their order, again and again.
class Prompts {
 public:
  Prompts(const std::vector<Sample>& samples, std::int64_t each) : samples_{samples}, each_{each} {
    for (std::size_t first = 0; first < samples.size(); first += size()) {
      std::uint32_t longest = 1;
      for (std::size_t i = first; i < first + size(); ++i)
        longest = std::max(longest, samples[i].response);
      longest_.push_back(longest);
      all_ += longest;
    }
  }

  std::int64_t count() const { return std::ssize(longest_); }

  // Those of `clients` at a random moment. All longest answers, one behind the other, are cut into
  // a part for each client, and a point in it is in some prompt, so many tokens after its begin.
  // The golden ratio chooses the place within each part: it spreads evenly at any length.
  void begin(std::int64_t clients, RequestList& list) const {
    constexpr double golden = 0.6180339887498949;
    std::size_t prompt = 0;
    double begin = 0.0;
    for (std::int64_t client = 0; client < clients; ++client) {
      const auto place = static_cast<double>(client);
      const double within = golden * place - std::floor(golden * place);
      const double point = (place + within) / static_cast<double>(clients) * all_;
      while (begin + longest_[prompt] <= point) begin += longest_[prompt++];
      add(prompt, static_cast<std::uint32_t>(point - begin), list);
    }
  }

  void next(std::int64_t count, RequestList& list) const {
    for (std::int64_t i = 0; i < count; ++i)
      add(static_cast<std::size_t>(i) % longest_.size(), 0, list);
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(each_); }

  // Answers that have ended by then have their last token left.
  void add(std::size_t prompt, std::uint32_t made, RequestList& list) const {
    const auto number = static_cast<std::uint64_t>(std::ssize(list.requests) / each_);
    for (std::size_t i = prompt * size(); i < (prompt + 1) * size(); ++i) {
      const std::uint32_t before = std::min(made, samples_[i].response - 1);
      list.requests.push_back(
          request_of({samples_[i].prompt + before, samples_[i].response - before},
                     samples_[i].prompt, number, list));
    }
  }

  const std::vector<Sample>& samples_;
  std::int64_t each_;
  std::vector<std::uint32_t> longest_;
  double all_ = 0.0;
};

// The part of [from, to] within the window.
double within(Seconds begin, Seconds end, Seconds from, Seconds to) {
  return std::max(0.0, (std::min(end, to) - std::max(begin, from)).si());
}

}  // namespace

SteadyRollout rollouts_in_turn(const Rollout& rollout, std::int64_t prompts) {
  SteadyRollout steady;
  steady.prompts_in_flight = prompts;
  for (const RequestTimes& one : rollout.run.replay.times) {
    steady.running += (one.e2e - one.queue) / rollout.time;
    steady.waiting += one.queue / rollout.time;
  }
  const ReplayTotals& totals = rollout.run.replay.counts.totals;
  steady.preempted = static_cast<double>(totals.preemptions);
  steady.kv_tokens = rollout.run.kv.tokens;
  steady.kv_share = totals.mean_kv_share();
  steady.prompt_time = steady.time = rollout.time;
  return steady;
}

int replayed_replicas(int replicas, std::int64_t prompts_in_flight) {
  constexpr double enough_prompts = 256.0;
  const double share = enough_prompts / static_cast<double>(prompts_in_flight);
  return std::clamp(static_cast<int>(std::ceil(share * replicas)), 1, replicas);
}

SteadyRollout steady_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                             std::int64_t samples_per_prompt, std::int64_t prompts_in_flight,
                             SampleRouting routing, const Place& at, double parts) {
  const Prompts prompts{samples, samples_per_prompt};
  const Deployment& plan = priced.setup.deployment;
  // More than twice as many as the engine has places for wait without any effect.
  const std::int64_t places =
      std::int64_t{plan.replicas} * plan.dp * plan.pp * batch_limit(priced.setup.engine, plan);
  const auto of_a_part = [&](std::int64_t all) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(all) / parts));
  };
  const std::int64_t a_step = of_a_part(prompts.count());
  const std::int64_t clients = std::min(of_a_part(prompts_in_flight), 2 * places + a_step);
  const std::int64_t warm_up = std::max(clients, a_step);
  const std::int64_t steps = (2 * warm_up + a_step - 1) / a_step;
  ServingLoad load;
  load.list.clients = static_cast<std::uint32_t>(clients);
  load.list.together = static_cast<std::uint32_t>(samples_per_prompt);
  load.list.hash_tokens = prefix_hash_tokens;
  prompts.begin(clients, load.list);
  prompts.next(warm_up + steps * a_step, load.list);
  load.over_network = false;
  load.prefix_cache = true;
  load.replay.keeps_times = true;
  load.replay.routing =
      routing == SampleRouting::groups ? Routing::session_hash : Routing::round_robin;
  const ServingRun run = serve_requests(priced, load, at);

  const auto& times = run.replay.times;
  const auto measured = static_cast<std::size_t>((clients + warm_up) * samples_per_prompt);
  const Seconds begin = times[measured].arrival, end = times.back().arrival;
  SteadyRollout rollout;
  rollout.prompts_in_flight = prompts_in_flight;
  double made = 0.0;
  for (const RequestTimes& one : times) {
    const Seconds first = one.arrival + one.ttft, last = one.arrival + one.e2e;
    const auto tokens = static_cast<double>(load.list.requests[one.request].output_tokens);
    made += first > begin && first <= end ? 1.0 : 0.0;
    if (last > first)
      made += (tokens - 1.0) * within(begin, end, first, last) / (last - first).si();
    const Seconds placed = one.arrival + one.queue;
    rollout.running += within(begin, end, placed, last);
    rollout.waiting += within(begin, end, one.arrival, placed);
  }
  rollout.running *= parts / (end - begin).si();
  rollout.waiting *= parts / (end - begin).si();
  double wanted = 0.0;
  for (const Sample& sample : samples) wanted += sample.response;
  rollout.time = wanted / (parts * made) * (end - begin);
  rollout.prompt_time =
      static_cast<double>(prompts_in_flight) / static_cast<double>(prompts.count()) * rollout.time;
  const ReplayTotals& totals = run.replay.counts.totals;
  rollout.kv_tokens = run.kv.tokens;
  rollout.kv_share = totals.mean_kv_share();
  rollout.preempted = static_cast<double>(totals.preemptions) *
                      static_cast<double>(samples.size()) / static_cast<double>(times.size());
  return rollout;
}

}  // namespace orrery
