#include "sim/posttraining/rollout.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace orrery {
namespace {

// Indices of samples for each server, in the order in which they are sent.
using Shares = std::vector<std::vector<std::uint32_t>>;

Shares in_groups(std::size_t samples, std::size_t servers) {
  Shares shares(servers);
  const std::size_t each = samples / servers, more = samples % servers;
  std::uint32_t next = 0;
  for (std::size_t s = 0; s < servers; ++s)
    for (std::size_t i = 0; i < each + (s < more ? 1 : 0); ++i) shares[s].push_back(next++);
  return shares;
}

Shares in_turn(std::size_t samples, std::size_t servers) {
  Shares shares(servers);
  for (std::uint32_t i = 0; i < samples; ++i) shares[i % servers].push_back(i);
  return shares;
}

Shares by_length(const std::vector<Sample>& samples, std::size_t servers) {
  std::vector<std::uint32_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return samples[a].response > samples[b].response;
  });
  Shares shares(servers);
  std::vector<std::int64_t> tokens(servers, 0);
  const std::size_t most = (samples.size() + servers - 1) / servers;
  for (const std::uint32_t i : order) {
    std::size_t best = servers;
    for (std::size_t s = 0; s < servers; ++s)
      if (shares[s].size() < most && (best == servers || tokens[s] < tokens[best])) best = s;
    shares[best].push_back(i);
    tokens[best] += samples[i].response;
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return shares;
}

Shares shares_of(const std::vector<Sample>& samples, std::size_t servers, SampleRouting routing) {
  switch (routing) {
    case SampleRouting::groups:
      return in_groups(samples.size(), servers);
    case SampleRouting::in_turn:
      return in_turn(samples.size(), servers);
    case SampleRouting::by_length:
      break;
  }
  return by_length(samples, servers);
}

// A different text for each prompt: the hash of a block is of all tokens before it.
std::uint64_t hash_of(std::uint64_t prompt, std::uint64_t block) {
  return (prompt + 1) * 0x9e3779b97f4a7c15u + block;
}

// Requests of which the router, which takes servers in turn, sends each its share.
RequestList requests_of(const std::vector<Sample>& samples, const Shares& shares,
                        std::int64_t samples_per_prompt) {
  RequestList list;
  list.hash_tokens = prefix_hash_tokens;
  for (std::size_t row = 0; row < shares.front().size(); ++row)
    for (const auto& share : shares) {
      if (row >= share.size()) continue;
      const std::uint32_t index = share[row];
      const std::uint64_t prompt = index / static_cast<std::uint64_t>(samples_per_prompt);
      list.requests.push_back(request_of(samples[index], samples[index].prompt, prompt, list));
    }
  return list;
}

}  // namespace

Request request_of(const Sample& sample, std::uint32_t shared, std::uint64_t number,
                   RequestList& list) {
  Request request;
  request.prompt_tokens = sample.prompt;
  request.output_tokens = sample.response;
  request.session = static_cast<std::uint32_t>(number);
  request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
  request.hashes = shared / prefix_hash_tokens;
  for (std::uint32_t block = 0; block < request.hashes; ++block)
    list.hashes.push_back(hash_of(number, block));
  return request;
}

Rollout replay_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                       std::int64_t samples_per_prompt, SampleRouting routing, const Place& at) {
  const Deployment& plan = priced.setup.deployment;
  const int copies = copies_go_in_step(priced.setup) ? plan.dp : 1;
  const auto servers =
      static_cast<std::size_t>(plan.replicas) * static_cast<std::size_t>(plan.dp / copies);
  ServingLoad load;
  load.traffic.arrivals = Arrivals::burst;
  load.list = requests_of(samples, shares_of(samples, servers, routing), samples_per_prompt);
  load.over_network = false;
  load.prefix_cache = true;
  load.replay.keeps_times = true;
  Rollout rollout;
  rollout.run = serve_requests(priced, load, at);
  std::vector<Seconds> ends;
  for (const RequestTimes& request : rollout.run.replay.times)
    ends.push_back(request.arrival + request.e2e);
  std::sort(ends.begin(), ends.end());
  assert(!ends.empty());
  const auto ended = [&](double share) {
    return ends[static_cast<std::size_t>(share * static_cast<double>(ends.size() - 1))];
  };
  rollout.time = ends.back();
  rollout.half = ended(0.5);
  rollout.nine_tenths = ended(0.9);
  const auto engines = static_cast<double>(servers) * copies * plan.pp;
  rollout.busy = rollout.run.replay.counts.totals.busy.si() / (engines * rollout.time.si());
  return rollout;
}

Seconds survival_sum(const PricedServing& priced, std::vector<Sample> samples,
                     std::int64_t samples_per_prompt) {
  StepTimes& times = priced.times;
  const std::int64_t budget = priced.setup.deployment.budget;
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.response < b.response; });
  auto running = static_cast<std::int64_t>(samples.size());
  // Each prompt is computed once, in iterations of the engine's budget.
  Seconds time;
  std::int64_t context = 0, prompts = 0;
  for (const Sample& sample : samples) context += sample.prompt;
  prompts = (context + samples_per_prompt - 1) / samples_per_prompt;
  for (std::int64_t left = prompts; left > 0; left -= budget) {
    const std::int64_t part = std::min(left, budget);
    time +=
        times.mixed(0, 0, {{static_cast<std::uint32_t>(part), 0}}, left <= budget ? running : 0);
  }
  std::int64_t made = 1;  // Tokens of each answer so far: the first comes out of its prompt.
  context += running;
  for (const Sample& next : samples) {
    while (made < next.response) {
      const DecodeSteps steps = times.decode(running, context);
      const std::int64_t count = std::min<std::int64_t>(steps.steps, next.response - made);
      time += steps.time(count);
      context += count * running;
      made += count;
    }
    context -= next.tokens();
    --running;
  }
  return time;
}

}  // namespace orrery
