#include "sim/serving/fleet.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t router_stream = 5;

}  // namespace

bool looks_at_replicas(Routing routing) {
  return routing != Routing::round_robin && routing != Routing::random &&
         routing != Routing::session_hash;
}

void parse_routing(const std::string& text, const Place& at, Routing& routing,
                   RouterWeights& weights) {
  const std::size_t colon = text.find(':');
  routing = choice<Routing>(text.substr(0, colon), at);
  weights = {};
  if (colon == text.npos) return;
  using Weight = std::pair<const char*, double RouterWeights::*>;
  std::vector<Weight> known;
  if (routing == Routing::kv)
    known = {{"overlap", &RouterWeights::overlap}, {"temperature", &RouterWeights::temperature}};
  if (routing == Routing::llm_d)
    known = {{"prefix", &RouterWeights::prefix},
             {"cache", &RouterWeights::cache},
             {"queue", &RouterWeights::queue},
             {"precise", &RouterWeights::precise}};
  const std::string remedy = routing == Routing::llm_d ? "write like llm-d:prefix=3,cache=2,queue=2"
                                                       : "write like kv:overlap=1,temperature=0";
  if (known.empty())
    fail_input(at, "'" + shown_text(text) + "': only kv and llm-d have weights", remedy);
  std::set<std::string> given;
  for (const std::string& item : split_list(text.substr(colon + 1), at)) {
    const std::size_t equals = item.find('=');
    if (!given.insert(item.substr(0, equals)).second)
      fail_input(at, "'" + shown_text(item.substr(0, equals)) + "' is given twice",
                 "keep one of them");
    const auto weight = std::find_if(known.begin(), known.end(), [&](const Weight& one) {
      return item.substr(0, equals) == one.first;
    });
    const double value =
        equals == item.npos ? -1.0 : plain_number(item.substr(equals + 1)).value_or(-1.0);
    const bool is_switch = weight != known.end() && weight->second == &RouterWeights::precise;
    if (is_switch && value != 0.0 && value != 1.0)
      fail_input(at, "precise is '" + shown_text(item.substr(equals + 1)) + "'",
                 "write precise=1 or precise=0");
    if (weight == known.end() || !(value >= 0.0 && value <= 1e6))
      fail_input(at, "'" + shown_text(item) + "' is no weight of " + name(routing) + ", from 0 on",
                 remedy);
    weights.*weight->second = value;
  }
}

RequestRouter::RequestRouter(Routing routing, std::uint32_t replicas, std::uint64_t seed,
                             std::uint32_t server, RouterWeights weights)
    : routing_{routing},
      open_(replicas),
      is_open_(replicas, true),
      weights_{weights},
      server_{server},
      random_{server == 0 ? Random{seed, router_stream} : Random{seed, router_stream, server}},
      sessions_(replicas) {
  std::iota(open_.begin(), open_.end(), 0u);
}

void RequestRouter::open(std::vector<std::uint32_t> replicas) {
  assert(!replicas.empty());
  open_ = std::move(replicas);
  const std::uint32_t most = *std::max_element(open_.begin(), open_.end());
  is_open_.assign(std::max<std::size_t>(most + 1, is_open_.size()), false);
  sessions_.resize(is_open_.size());
  for (const std::uint32_t replica : open_) is_open_[replica] = true;
  if (turn_ >= open_.size()) turn_ = 0;
}

std::uint32_t RequestRouter::choose(const Request& request) {
  assert(!looks_at_replicas(routing_));
  const bool alone = routing_ == Routing::session_hash && request.session == Request::no_session;
  if (routing_ == Routing::random || alone)
    return open_[static_cast<std::size_t>(random_.below(open_.size()))];
  if (routing_ == Routing::session_hash) {
    Random drawn = server_ == 0 ? Random{request.session} : Random{request.session, server_};
    return open_[static_cast<std::size_t>(drawn.below(open_.size()))];
  }
  const std::uint32_t chosen = open_[turn_];
  turn_ = turn_ + 1 == open_.size() ? 0 : turn_ + 1;
  return chosen;
}

std::uint32_t RequestRouter::choose(const Request& request, std::uint32_t index,
                                    const std::deque<Replica>& replicas, Seconds now) {
  switch (routing_) {
    case Routing::round_robin:
    case Routing::random:
    case Routing::session_hash:
      return choose(request);
    case Routing::session:
      return request.session == Request::no_session ? fewest_tokens(replicas)
                                                    : of_session(request.session, replicas);
    case Routing::least_tokens:
      return fewest_tokens(replicas);
    case Routing::power_of_two: {
      const std::uint32_t one = open_[static_cast<std::size_t>(random_.below(open_.size()))];
      const std::uint32_t other = open_[static_cast<std::size_t>(random_.below(open_.size()))];
      return replicas[other].present_tokens() < replicas[one].present_tokens() ? other : one;
    }
    case Routing::prefix:
    case Routing::kv:
      return least_work(request, index, replicas);
    case Routing::llm_d:
      return best_score(request, index, replicas, now);
  }
  return 0;
}

std::uint32_t RequestRouter::fewest_tokens(const std::deque<Replica>& replicas) const {
  std::uint32_t best = open_.front();
  for (const std::uint32_t r : open_)
    if (replicas[r].present_tokens() < replicas[best].present_tokens()) best = r;
  return best;
}

// Between turns a replica looks free: of those with the fewest tokens, the one with the fewest
// sessions.
std::uint32_t RequestRouter::of_session(std::uint32_t session,
                                        const std::deque<Replica>& replicas) {
  const auto [home, is_new] = homes_.try_emplace(session, 0u);
  if (!is_new && is_open_[home->second]) return home->second;
  const auto load = [&](std::uint32_t r) {
    return std::pair{replicas[r].present_tokens(), sessions_[r]};
  };
  std::uint32_t best = open_.front();
  for (const std::uint32_t r : open_)
    if (load(r) < load(best)) best = r;
  ++sessions_[best];
  return home->second = best;
}

std::uint32_t RequestRouter::least_work(const Request& request, std::uint32_t index,
                                        const std::deque<Replica>& replicas) {
  std::vector<double> costs(open_.size());
  for (std::size_t r = 0; r < open_.size(); ++r) {
    const Replica& replica = replicas[open_[r]];
    const std::int64_t known = replica.known_tokens(index);
    if (routing_ == Routing::prefix) {
      costs[r] = static_cast<double>(replica.present_tokens() - known);
      continue;
    }
    const KvBlocks& kv = replica.batch().kv();
    const std::int64_t prompt = request.prompt_tokens;
    costs[r] =
        weights_.overlap * static_cast<double>(replica.prompts_to_compute() + prompt - known) +
        static_cast<double>(kv.used()) * kv.tokens_a_block() + static_cast<double>(prompt);
  }
  if (routing_ == Routing::prefix || weights_.temperature == 0.0)
    return open_[static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) -
                                          costs.begin())];
  const double least = *std::min_element(costs.begin(), costs.end());
  const double most = std::max(1.0, *std::max_element(costs.begin(), costs.end()));
  double sum = 0.0;
  for (double& cost : costs)
    sum += cost = portable_exp((least - cost) / most / weights_.temperature);
  double drawn = random_.unit() * sum;
  for (std::size_t r = 0; r < open_.size(); ++r)
    if ((drawn -= costs[r]) < 0.0) return open_[r];
  return open_.back();
}

std::span<const std::uint64_t> RequestRouter::noted_hashes(const Request& request) const {
  constexpr std::uint32_t most_noted = 256 * 16;
  const std::uint32_t most = std::max(1u, most_noted / std::max(1u, list_->hash_tokens));
  return std::span{list_->hashes}.subspan(request.first_hash, std::min(most, request.hashes));
}

// The share of a prompt that the router has sent to this replica and not forgotten since.
double RequestRouter::noted_share(const Request& request, std::uint32_t replica) const {
  const auto hashes = noted_hashes(request);
  if (hashes.empty() || replica >= noted_.size()) return 0.0;
  std::size_t known = 0;
  while (known < hashes.size() && noted_[replica].has(hash_of(request, hashes[known]))) ++known;
  return static_cast<double>(known) / static_cast<double>(hashes.size());
}

void RequestRouter::note(const Request& request, std::uint32_t replica,
                         const std::deque<Replica>& replicas) {
  const auto hashes = noted_hashes(request);
  while (noted_.size() < replicas.size()) {
    const KvBlocks& kv = replicas[noted_.size()].batch().kv();
    double tokens = static_cast<double>(kv.capacity()) * kv.tokens_a_block();
    for (std::size_t tier = 0; tier < kv.tiers(); ++tier)
      tokens += static_cast<double>(kv.tokens_of_nodes(kv.tier(tier).most()));
    const double each = std::clamp(list_->hash_tokens, 1u, 256u * 16u);
    noted_.emplace_back(static_cast<std::int64_t>(tokens / each));
  }
  for (std::size_t i = hashes.size(); i > 0; --i)
    noted_[replica].put(hash_of(request, hashes[i - 1]));
}

std::uint32_t RequestRouter::best_score(const Request& request, std::uint32_t index,
                                        const std::deque<Replica>& replicas, Seconds now) {
  // Requests that come together find the same metrics, and spread at random
  // (gateway-api-inference-extension: refresh-metrics-interval).
  constexpr Seconds refresh{0.05};
  if (looked_ < Seconds{} || now >= looked_ + refresh || metrics_.size() < replicas.size()) {
    looked_ = now;
    metrics_.clear();
    for (const Replica& replica : replicas) {
      const KvBlocks& kv = replica.batch().kv();
      metrics_.push_back({replica.batch().waiting(), static_cast<double>(kv.available()) /
                                                         static_cast<double>(kv.capacity())});
    }
  }
  std::int64_t longest = 0, shortest = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t r : open_) {
    longest = std::max(longest, metrics_[r].waiting);
    shortest = std::min(shortest, metrics_[r].waiting);
  }
  std::vector<std::uint32_t> best;
  double highest = -1.0;
  for (const std::uint32_t r : open_) {
    const double known = weights_.precise == 0.0
                             ? noted_share(request, r)
                             : static_cast<double>(replicas[r].known_tokens(index)) /
                                   static_cast<double>(request.prompt_tokens);
    const double queue = longest == shortest ? 1.0
                                             : static_cast<double>(longest - metrics_[r].waiting) /
                                                   static_cast<double>(longest - shortest);
    const double score =
        weights_.prefix * known + weights_.cache * metrics_[r].free + weights_.queue * queue;
    if (score > highest) best.clear();
    if (score >= highest) best.push_back(r);
    highest = std::max(highest, score);
  }
  const std::uint32_t chosen = best[static_cast<std::size_t>(random_.below(best.size()))];
  if (weights_.precise == 0.0) note(request, chosen, replicas);
  return chosen;
}

namespace {

std::unique_ptr<SharedStore> store_of(const RequestList& list, const ReplicaShape& shape) {
  if (!shape.kv.shares_last) return nullptr;
  return std::make_unique<SharedStore>(
      TierBlocks{KvBlocks::nodes_of(shape.kv, list.hash_tokens, shape.kv.tiers.back())}, Seconds{});
}

}  // namespace

Fleet::Fleet(const RequestList& list, const ReplicaShape& shape, std::uint32_t replicas,
             StepTimes& times, RequestRouter router)
    : list_{list},
      shape_{shape},
      times_{times},
      store_{store_of(list, shape)},
      router_{std::move(router.of(list))},
      copies_{static_cast<std::uint32_t>(shape.copies)},
      stages_{static_cast<std::uint32_t>(shape.stages)},
      delay_{shape.copies > 1 ? shape.rules.prefill_delay : 0},
      most_requests_{shape.rules.most_requests} {
  add(replicas);
}

std::uint32_t Fleet::add(std::uint32_t count) {
  const auto first = static_cast<std::uint32_t>(replicas_.size());
  const std::size_t all = first + count;
  versions_.resize(all);
  starts_.resize(all);
  delays_.resize(all);
  busy_.resize(all);
  for (std::uint32_t r = first; r < all; ++r)
    replicas_.emplace_back(list_, shape_, times_, stages_ > 1 ? &busy_[r / stages_] : nullptr,
                           store_.get());
  return first;
}

// Returns the replicas of a group that are in an iteration.
const std::vector<Replica*>& Fleet::running(std::uint32_t group) {
  running_.clear();
  for (std::uint32_t copy = 0; copy < copies_; ++copy)
    if (Replica& replica = replicas_[group * copies_ + copy]; !replica.is_idle())
      running_.push_back(&replica);
  return running_;
}

Seconds Fleet::next_change() {
  while (!changes_.empty() &&
         changes_.next().event.version != versions_[changes_.next().event.group])
    changes_.pop();
  return changes_.empty() ? Replica::never : changes_.next().time;
}

void Fleet::expect(std::uint32_t group) {
  ++versions_[group];
  if (!running(group).empty())
    changes_.push(running_.front()->change_at(), group, {group, versions_[group]});
}

void Fleet::will_start(std::uint32_t group) {
  if (starts_[group]) return;
  starts_[group] = true;
  to_start_.push_back(group);
}

// The number of batches that take turns in a pipeline sets their times: if it changes, the plans of
// the others end with the step that is running.
void Fleet::cut_others(std::uint32_t group, std::int64_t were_busy, Seconds now) {
  if (stages_ == 1 || busy(group) == were_busy) return;
  const std::uint32_t first = group / stages_ * stages_;
  for (std::uint32_t other = first; other < first + stages_; ++other) {
    if (other == group || starts_[other] || replicas_[other].is_idle()) continue;
    const Seconds before = replicas_[other].change_at();
    replicas_[other].cut_at(now);
    if (replicas_[other].change_at() != before) expect(other);
  }
}

// True if new prompts wait (sglang/srt/managers/prefill_delayer.py): some copies can begin one and
// others cannot, and have not waited long enough; or all can, and the fullest has less room than
// the most prompts that any of them has begun at once. All that can have decodes to run meanwhile.
bool Fleet::delays_prompts(std::uint32_t group) {
  if (delay_ == 0) return false;
  Delay& delay = delays_[group];
  if (delay.passes >= 0 && !running(group).empty()) delay.passes += running_.front()->steps().steps;
  std::uint32_t able = 0;
  bool decodes = true;
  std::int64_t fullest = 0;
  for (std::uint32_t copy = 0; copy < copies_; ++copy) {
    const Replica& replica = replicas_[group * copies_ + copy];
    fullest = std::max(fullest, replica.batch().running());
    if (!replica.can_begin_prompt()) continue;
    ++able;
    decodes &= replica.batch().decodes() > 0;
  }
  delay.for_room = able == copies_ && decodes && fullest + delay.most_prompts > most_requests_;
  if (delay.for_room && !delay.was_for_room) {  // The first time is let pass.
    delay.was_for_room = true;
    delay.for_room = false;
  }
  const bool for_others =
      able > 0 && able < copies_ && decodes && std::max<std::int64_t>(delay.passes, 0) + 1 < delay_;
  const bool delays = delay.for_room || for_others;
  delay.passes = delays ? std::max<std::int64_t>(delay.passes, 0) : -1;
  return delays;
}

void Fleet::start_group(std::uint32_t group, Seconds now) {
  const std::int64_t were_busy = busy(group);
  const bool holds = delays_prompts(group);
  for (std::uint32_t copy = 0; copy < copies_; ++copy)
    if (Replica& replica = replicas_[group * copies_ + copy];
        replica.present() > 0 || !replica.is_idle()) {
      replica.hold_prompts(holds);
      replica.start(now);
      if (delay_ > 0)
        delays_[group].most_prompts =
            std::max(delays_[group].most_prompts, std::ssize(replica.batch().chunks()));
    }
  if (copies_ > 1) go_in_step(group);
  expect(group);
  starts_[group] = false;
  cut_others(group, were_busy, now);
}

// All wait for the slowest at the exchange, where the experts work on the tokens of all. A copy's
// own step counts their time for its own tokens alone. A copy that only waits for a load makes no
// step, and looks when the others end theirs.
void Fleet::go_in_step(std::uint32_t group) {
  if (running(group).empty()) return;
  const auto loading =
      std::stable_partition(running_.begin(), running_.end(),
                            [](const Replica* replica) { return !replica->only_loads(); });
  const std::vector<Replica*> waiting(loading, running_.end());
  running_.erase(loading, running_.end());
  if (running_.empty()) {
    Seconds first = Replica::never;
    for (const Replica* replica : waiting) first = std::min(first, replica->change_at());
    for (Replica* replica : waiting) replica->cut_at(first);
    return;
  }
  std::int64_t tokens = 0;
  for (const Replica* replica : running_) tokens += replica->tokens();
  const Seconds together = times_.shared((tokens + copies_ - 1) / copies_);
  const auto alone = [&](const Replica* replica) {
    return replica->steps().first - times_.shared(replica->tokens());
  };
  const Replica* slowest = running_.front();
  for (const Replica* replica : running_)
    if (alone(replica) > alone(slowest)) slowest = replica;
  DecodeSteps common{alone(slowest) + together, slowest->steps().growth, slowest->steps().steps};
  if (const Delay& delay = delays_[group]; delay.passes >= 0 && !delay.for_room)
    common.steps = std::min(common.steps, delay_ - 1 - delay.passes);
  for (const Replica* replica : running_) {
    common.steps = std::min(common.steps, replica->steps().steps);
    // The plan ends where another copy would be the slowest.
    const Seconds gain = replica->steps().growth - slowest->steps().growth;
    const Seconds lead = alone(slowest) - alone(replica);
    if (gain > Seconds{} && lead < static_cast<double>(common.steps) * gain)
      common.steps = std::min(
          common.steps, std::max<std::int64_t>(1, static_cast<std::int64_t>(lead / gain) + 1));
  }
  for (const Replica* replica : waiting)
    common.steps = std::min(common.steps, common.until(replica->steps().first));
  for (Replica* replica : running_) replica->adopt(common);
  for (Replica* replica : waiting) replica->follow(common);
}

// Calls `action` with a replica: its group may have to be started, or cut.
template <class Action>
void Fleet::update_replica(std::uint32_t number, Seconds now, const Action& action) {
  const std::uint32_t group = number / copies_;
  Replica& replica = replicas_[number];
  const bool was_idle = replica.is_idle();
  const bool group_idle = running(group).empty();
  const Seconds before = replica.change_at();
  const std::int64_t were_busy = busy(group);
  action(replica);
  cut_others(group, were_busy, now);
  if (group_idle) return will_start(group);
  if (starts_[group] || (!was_idle && replica.change_at() == before)) return;
  // The other copies stop where this one can admit the arrival.
  for (Replica* other : running(group)) other->cut_at(now);
  expect(group);
}

std::uint32_t Fleet::deliver(std::uint32_t index, Seconds now) {
  const std::uint32_t number = router_.choose(list_.requests[index], index, replicas_, now);
  update_replica(number, now, [&](Replica& replica) { replica.arrive(index, now); });
  return number;
}

std::uint32_t Fleet::deliver_remote(std::uint32_t index, Seconds now) {
  const std::uint32_t number = router_.choose(list_.requests[index], index, replicas_, now);
  update_replica(number, now, [&](Replica& replica) { replica.arrive_remote(index, now); });
  return number;
}

void Fleet::receive(std::uint32_t number, const PlacedRequest& placed,
                    const PrefilledRequest& prefilled, Seconds now) {
  update_replica(number, now, [&](Replica& replica) { replica.receive(placed, prefilled, now); });
}

void Fleet::release(std::uint32_t number, const PrefilledRequest& request) {
  const std::uint32_t group = number / copies_;
  replicas_[number].release(request);
  // A running replica looks at its blocks when its iteration is over.
  if (running(group).empty() && replicas_[number].present() > 0) will_start(group);
}

}  // namespace orrery
