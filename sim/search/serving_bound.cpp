#include "sim/search/serving_bound.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

double rise(const TimePoint& from, const TimePoint& to) {
  return (to.time - from.time).si() / static_cast<double>(to.at - from.at);
}

// The lower convex hull (Andrew's monotone chain, 1979).
std::vector<TimePoint> lower_hull(const std::vector<TimePoint>& points) {
  std::vector<TimePoint> hull;
  for (const TimePoint& point : points) {
    while (hull.size() > 1 && rise(hull[hull.size() - 2], hull.back()) >= rise(hull.back(), point))
      hull.pop_back();
    hull.push_back(point);
  }
  return hull;
}

}  // namespace

ConvexFloor::ConvexFloor(const std::vector<TimePoint>& points) {
  assert(!points.empty());
  Seconds least = points.front().time;
  Seconds ray = (1.0 / static_cast<double>(points.front().at)) * points.front().time;
  for (const TimePoint& point : points) {
    assert(point.at > 0);
    least = std::min(least, point.time);
    ray = std::min(ray, (1.0 / static_cast<double>(point.at)) * point.time);
  }
  lines_ = {{least, Seconds{}}, {Seconds{}, ray}};
  const std::vector<TimePoint> hull = lower_hull(points);
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const Seconds slope{rise(hull[i - 1], hull[i])};
    const Seconds start = hull[i].time - static_cast<double>(hull[i].at) * slope;
    if (slope >= Seconds{} && start >= Seconds{}) lines_.push_back({start, slope});
  }
}

Seconds ConvexFloor::sum(double calls, double amount) const {
  Seconds most;
  for (const Line& line : lines_) most = std::max(most, calls * line.start + amount * line.slope);
  return most;
}

namespace {

// Sums of equal steps may miss one step's growth where the GPU catches up with its host or copies
// change places: under a thousandth of what they sum up.
constexpr double bound_rounding = 0.999;

bool keeps_prompts_apart(const ServingSetup& setup) { return !setup.deployment.mixed; }

// No iteration has more tokens: those of the budget, and of the prompt that was the last to begin.
std::int64_t most_tokens(const ServingSetup& setup, std::int64_t longest_prompt) {
  const Deployment& plan = setup.deployment;
  if (!setup.engine.scheduler->continuous) return plan.max_seqs * longest_prompt;
  return plan.budget + longest_prompt + plan.step_tokens() * plan.max_seqs;
}

std::vector<TimePoint> without(std::vector<TimePoint> points, const std::vector<TimePoint>& part) {
  for (std::size_t i = 0; i < points.size(); ++i) points[i].time = points[i].time - part[i].time;
  return points;
}

}  // namespace

RequestWork::RequestWork(const RequestList& list) : shares_prefixes{list.hash_tokens > 0} {
  in_all = requests = static_cast<double>(list.requests.size());
  least_prompt = list.requests.front().prompt_tokens;
  for (const Request& request : list.requests) {
    const double prompt = request.prompt_tokens, made = request.output_tokens;
    outputs += made;
    prompts += shares_prefixes ? 1.0 : prompt;
    contexts += (made - 1.0) * (prompt + 0.5 * (made - 2.0));
    reserved += made * (prompt + made - 1.0);
    least_prompt = std::min<std::int64_t>(least_prompt, request.prompt_tokens);
    longest_prompt = std::max<std::int64_t>(longest_prompt, request.prompt_tokens);
    one_token = one_token || request.output_tokens == 1;
  }
}

RequestWork RequestWork::prompts_alone() const {
  RequestWork alone = *this;
  alone.outputs = requests;
  alone.contexts = 0.0;
  alone.reserved = prompts;  // Each in one iteration at least.
  return alone;
}

// The first token of each answer is left to the other pool, and so are the prompts, which are the
// first contexts.
RequestWork RequestWork::answers_alone() const {
  RequestWork alone = *this;
  alone.outputs = outputs - requests;
  alone.reserved = std::max(0.0, reserved - prompts - alone.outputs);
  alone.requests = alone.prompts = 0.0;
  return alone;
}

struct ServingBound::Share {
  double decodes = 0.0;            // Steps of requests that decode.
  double prompts = 0.0;            // Tokens of prompts.
  double answers = 0.0;            // Those steps and the ends of prompts.
  double contexts = 0.0;           // Context tokens that the decodes read.
  double iterations = 0.0;         // Least number that give requests tokens.
  double decode_iterations = 0.0;  // Those of them that decode.
};

ServingBound::ServingBound(const PricedServing& priced, std::int64_t longest_prompt)
    : priced_{priced},
      in_step_{copies_go_in_step(priced.setup)},
      copies_{in_step_ ? static_cast<double>(priced.setup.deployment.dp) : 1.0},
      attention_{priced.prices.least_decode_attention()} {
  const Deployment& plan = priced.setup.deployment;
  units_ = static_cast<double>(plan.replicas) * plan.dp * plan.pp / copies_;
  if (plan.speculation) {
    most_tokens_ = static_cast<double>(plan.speculation->most_a_step());
    step_tokens_ = static_cast<double>(plan.step_tokens());
  }
  const std::int64_t most = most_tokens(priced.setup, longest_prompt);
  std::vector<TimePoint> dense = priced.times.dense_points(most);
  if (in_step_) {
    const std::vector<TimePoint> shared = priced.times.shared_points(most);
    dense = without(std::move(dense), shared);
    shared_.emplace(shared);
  }
  dense_.emplace(dense);
  head_.emplace(priced.times.head_points(plan.step_tokens() * plan.max_seqs));
  const IterationPrices& prices = priced.prices;
  gap_ = prices.gap(0);
  gap_each_ = prices.gap(1) - gap_;
  host_ = prices.host(0);
  host_each_ = prices.host(1) - host_;
  if (!hides_host(priced.setup.model, priced.setup.engine, plan)) {
    gap_ += host_;
    gap_each_ += host_each_;
    host_ = host_each_ = Seconds{};
  }
}

Seconds ServingBound::dense(double calls, double amount) const {
  const Seconds own = dense_->sum(calls, amount);
  return in_step_ ? own + shared_->sum(calls, amount) : own;
}

Seconds ServingBound::on_gpu(const Share& share) const {
  const double decodes = share.decodes / copies_, prompts = share.prompts / copies_;
  const double answers = share.answers / copies_;
  Seconds time = share.iterations * gap_ + answers * gap_each_;
  // Prices round the mean context to whole tokens: a token of each is not counted.
  time += std::max(0.0, share.contexts / copies_ - decodes) * attention_.a_token;
  const double decoded = step_tokens_ * decodes;
  const double heads = answers + (step_tokens_ - 1.0) * decodes;
  if (keeps_prompts_apart(priced_.setup))
    time += dense(share.decode_iterations, decoded) + dense(0.0, prompts);
  else
    time += dense(share.iterations, decoded + prompts);
  // Some of the copies in step may have no request that gets a token.
  if (in_step_) return time + head_->sum(0.0, heads);
  const int stages = priced_.setup.deployment.pp;
  if (stages > 1)
    time += (static_cast<double>(stages - 1) * share.iterations) * priced_.prices.hop(1);
  return time + head_->sum(share.iterations, heads) +
         share.decode_iterations * attention_.an_iteration;
}

Seconds ServingBound::on_host(const Share& share) const {
  const double answers = share.answers / copies_;
  const Seconds prepared = share.iterations * host_ + answers * host_each_;
  const Seconds launched = share.iterations * priced_.prices.eager(1, false);
  return std::max(prepared, launched) + share.iterations * gap_ + answers * gap_each_;
}

Seconds ServingBound::least_span(const RequestWork& work, const ServingLoad& load) const {
  // A router that looks at replicas may give one of them all clients for a while.
  const bool together =
      looks_at_replicas(load.replay.routing) || priced_.setup.deployment.pp > 1 || in_step_;
  return least_span(work, load, units_, together);
}

Seconds ServingBound::least_span_of_pool(const RequestWork& work, const ServingLoad& load,
                                         int replicas) const {
  const double units = units_ / static_cast<double>(priced_.setup.deployment.replicas);
  return least_span(work, load, units * static_cast<double>(replicas), true);
}

Seconds ServingBound::least_span(const RequestWork& work, const ServingLoad& load, double of_units,
                                 bool together) const {
  const ServingSetup& setup = priced_.setup;
  const Deployment& plan = setup.deployment;
  const auto most_of_copy = static_cast<double>(batch_limit(setup.engine, plan));
  const std::int64_t kv_tokens = priced_.kv.tokens / plan.pp;
  double rows = copies_ * most_of_copy;
  if (!work.shares_prefixes) {
    // Each that runs holds the blocks of its prompt.
    const std::int64_t blocks = priced_.kv.blocks_of(work.least_prompt, plan.step_tokens());
    rows = std::min(rows, copies_ * static_cast<double>(priced_.kv.blocks() / plan.pp / blocks));
  }
  const bool closed = load.list.clients > 0;
  const double clients = closed ? static_cast<double>(load.list.clients) : work.in_all;
  const double units = together ? of_units : std::min(of_units, clients);
  const double at_once = together ? clients : std::ceil(clients / units);
  rows = std::max(1.0, std::min(rows, at_once));

  Share share;
  share.decodes = (work.outputs - work.requests) / units / most_tokens_;
  share.answers = share.decodes + work.requests / units;
  // Parts of a prompt follow each other after the longest stage's time.
  share.prompts = work.prompts / units * (plan.pp > 1 ? priced_.prices.longest_stage() : 1.0);
  // A step finds the context of the first of the tokens that it brings.
  share.contexts = std::max(0.0, work.contexts / units / most_tokens_ -
                                     0.5 * (most_tokens_ - 1.0) * share.decodes * most_tokens_);
  const bool reserves_answers = setup.engine.scheduler->reserves_answers;
  double by_memory = 0.0;
  if (!work.shares_prefixes)
    by_memory = (reserves_answers ? work.reserved / units / most_tokens_ : share.contexts) /
                (copies_ * static_cast<double>(kv_tokens)) *
                static_cast<double>(priced_.kv.groups.whole) /
                static_cast<double>(priced_.kv.groups.all());
  share.iterations = std::max(share.answers / rows, by_memory);
  share.decode_iterations = std::max(share.decodes / rows, reserves_answers ? 0.0 : by_memory);
  Seconds least = std::max(on_gpu(share), on_host(share));

  if (together && closed) {
    // Units have `clients` / units each on average. An iteration of n decodes takes at least a + b
    // n, and n / (a + b n) is concave: together they make the most tokens if all have the same n,
    // so that decodes alone take a decodes / (clients / units) + b decodes.
    Share even;
    even.decodes = even.answers = share.decodes;
    even.contexts = share.decodes * static_cast<double>(work.least_prompt);
    even.iterations = even.decode_iterations = share.decodes / (clients / units);
    least = std::max(least, on_gpu(even));
  }
  return bound_rounding * least;
}

Seconds ServingBound::least_gap() const {
  const Seconds gpu = dense(1.0, step_tokens_) + head_->sum(1.0, step_tokens_) + gap_ + gap_each_;
  const Seconds step = std::max(gpu, host_ + host_each_ + gap_ + gap_each_);
  return bound_rounding / most_tokens_ * step;
}

}  // namespace orrery
