#include "sim/serving/serving_batch.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace orrery {

ServingBatch::ServingBatch(const RequestList& list, const BatchRules& rules, const KvShape& kv,
                           SharedStore* store)
    : list_{list},
      rules_{rules},
      kv_{kv, list.hash_tokens, store ? &store->blocks : nullptr},
      store_{store},
      phases_(static_cast<std::size_t>(kv.block_tokens)),
      most_windowed_prompt_{kv.groups.most_windowed(rules.at_once(), kv.block_tokens)},
      most_windowed_decode_{kv.groups.most_windowed(rules.step_tokens, kv.block_tokens)},
      windows_pool_{kv.windows.of_batch(1, kv.keeps_prefixes)} {}

// Nodes cover prompts alone: answers have no hashes. They are in all groups, so that a request that
// fits only because windows are kept shares nothing.
PrefixPath ServingBatch::path_of(std::uint32_t index, std::uint32_t most) const {
  const Request& request = list_.requests[index];
  const std::int64_t tokens =
      std::int64_t{request.prompt_tokens} + request.output_tokens + rules_.step_tokens;
  if (kv_.blocks_of(tokens) * kv_.groups().all() > kv_.capacity() && kv_.groups().windowed > 0)
    return {};
  return path_over(request, request.hashes, std::min(request.prompt_tokens, most));
}

PrefixPath ServingBatch::path_over(const Request& request, std::uint32_t hashes,
                                   std::int64_t tokens) const {
  PrefixPath path =
      kv_.path_of(std::span{list_.hashes}.subspan(request.first_hash, hashes), tokens);
  path.offset = list_.hash_offset(request);
  return path;
}

void ServingBatch::keep_answer(std::uint32_t index) {
  const Request& request = list_.requests[index];
  if (request.kept_hashes <= request.hashes || !kv_.keeps_prefixes()) return;
  const PrefixPath path = path_over(request, request.kept_hashes,
                                    std::int64_t{request.prompt_tokens} + request.output_tokens);
  const KvBlocks::Match match = kv_.match(path);
  if (kv_.cost_of(path, match) <= kv_.available()) kv_.release(kv_.hold(path, match));
}

std::int64_t ServingBatch::known_tokens(std::uint32_t index) const {
  if (!kv_.keeps_prefixes()) return 0;
  const std::uint32_t prompt = list_.requests[index].prompt_tokens;
  const KvBlocks::Match match = kv_.match(path_of(index, prompt));
  return kv_.cached_tokens(match.known(), prompt);
}

// The time from which on a memory brings what is asked of it at `from`.
Seconds ServingBatch::fetch_begin(std::size_t tier, Seconds from) const {
  const bool is_shared = store_ && tier + 1 == kv_.tiers();
  return std::max({from, tier_free_[tier], is_shared ? store_->free : Seconds{}});
}

// Settles how much of a prompt comes from which memory, and when it is in the host's. A policy that
// does not wait shortens what is found to what has come.
void ServingBatch::plan_fetch(const Sequence& sequence, Candidate& of) const {
  const Seconds from = rules_.fetches_at_arrival ? sequence.arrival : clock_;
  const Seconds until = rules_.prefetch.policy == KvPrefetch::timeout
                            ? std::max(clock_, from + rules_.prefetch.limit +
                                                   static_cast<double>(kv_.tokens_of_nodes(
                                                       static_cast<std::int64_t>(of.match.below))) *
                                                       rules_.prefetch.limit_per_token)
                            : clock_;
  const auto end = [&](std::size_t tier, std::int64_t nodes) {
    const bool is_shared = store_ && tier + 1 == kv_.tiers();
    const BatchRules::TierLink& link = rules_.tiers[tier];
    const Seconds token = is_shared ? std::max(link.token, rules_.store_token) : link.token;
    if (nodes == 0 || (token == Seconds{} && link.latency == Seconds{})) return Seconds{};
    return fetch_begin(tier, from) + link.latency +
           static_cast<double>(kv_.tokens_of_nodes(nodes)) * token;
  };
  if (rules_.prefetch.policy != KvPrefetch::wait) {
    std::array<std::int64_t, most_tiers> come{};
    std::size_t nodes = 0;
    for (; nodes < of.match.below; ++nodes) {
      const std::size_t tier = kv_.tier_of(of.path[of.match.nodes + nodes]);
      if (end(tier, ++come[tier]) > until) break;
    }
    of.match = kv_.shortened(of.path, of.match, nodes);
  }
  for (std::size_t tier = 0; tier < kv_.tiers(); ++tier)
    of.fetched = std::max(of.fetched, end(tier, of.match.in_tier[tier]));
}

void ServingBatch::see_until(Seconds time, Seconds now) {
  clock_ = now;
  for (; !arriving_.empty() && arriving_.front().arrival <= time; arriving_.pop_front()) {
    auto place = waiting_.end();
    while (place != waiting_.begin() &&
           priority_of(*std::prev(place)) < priority_of(arriving_.front()))
      --place;
    waiting_.insert(place, arriving_.front());
  }
}

ServingBatch::Candidate ServingBatch::candidate() const {
  const Sequence& first = first_waiting();
  Candidate of;
  of.prompt = first.prompt;
  of.outputs_left = first.outputs - first.made;
  of.tokens = of.prompt;
  of.remote = first.remote;
  of.kept = rules_.keeps_preempted && first.preemptions > 0 && first.made > 0;
  std::int64_t cost = 0;
  if (kv_.keeps_prefixes()) {
    of.path = path_of(first.request, first.prompt);
    of.match = kv_.match(of.path);
    if (of.match.below > 0) plan_fetch(first, of);
    const std::int64_t known = kv_.cached_tokens(of.match.known(), of.prompt);
    of.tokens -= known;
    of.below_tokens = known - kv_.cached_tokens(of.match.nodes, of.prompt);
    // The block that is computed again belongs to the farthest of them.
    std::int64_t left = of.below_tokens;
    for (std::size_t tier = 0; tier < kv_.tiers(); ++tier) {
      of.tier_tokens[tier] = std::min(left, kv_.tokens_of_nodes(of.match.in_tier[tier]));
      left -= of.tier_tokens[tier];
    }
    cost = kv_.cost_of(of.path, of.match);
  }
  if (of.kept) of.tokens = 0;
  of.prompt_blocks = prompt_blocks(of.prompt, of.path.nodes, of.remote) + cost;
  // It joins the next step, for which there must be blocks, too.
  if (of.kept) of.prompt_blocks += growth_of_step() + kv_.groups().all();
  // The answer's last token is never read again, so that it needs no space.
  of.all_blocks = prompt_blocks(of.prompt + of.outputs_left - 1, of.path.nodes, false) + cost;
  return of;
}

bool ServingBatch::admit(const Candidate& of, bool reserving, Seconds now) {
  assert((reserving ? of.all_blocks : of.prompt_blocks) <= kv_.available());
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<std::uint32_t>(sequences_.size()));
    sequences_.emplace_back();
  }
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  const std::uint32_t stamp = sequences_[place].stamp + 1;
  Sequence& sequence = sequences_[place];
  assert(!waiting_.empty());
  sequence = waiting_.front();
  waiting_.pop_front();
  sequence.stamp = stamp;
  sequence.decodes = false;
  sequence.computed = static_cast<std::uint32_t>(of.prompt - of.tokens);
  if (sequence.made == 0 && !sequence.remote) {
    sequence.hits = sequence.computed;
    for (std::size_t tier = 0; tier < most_tiers; ++tier)
      sequence.tier_hits[tier] = static_cast<std::uint32_t>(of.tier_tokens[tier]);
  }
  sequence.nodes = static_cast<std::uint32_t>(of.path.nodes);
  sequence.deepest = kv_.keeps_prefixes() ? kv_.hold(of.path, of.match) : PrefixTree::none;
  const std::int64_t own =
      reserving ? prompt_blocks(of.prompt + of.outputs_left - 1, of.path.nodes, false)
                : prompt_blocks(of.prompt, of.path.nodes, of.remote);
  kv_.take(own);
  sequence.reserved = reserving ? own : 0;
  ++running_;
  windows_held_ += windows_pool_.of(sequence.prompt);
  if (sequence.remote) {
    placed_.push_back(place);
    receiving_.push_back(place);
    return false;
  }
  if (of.kept) {
    order_.push_back({0, place, stamp});
    rejoined_.push_back({0, place, stamp});
    join_decodes(place);
    return false;
  }
  sequence.to_load = 0;
  if (of.below_tokens > 0) {
    const Seconds from = rules_.fetches_at_arrival ? sequence.arrival : now;
    for (std::size_t tier = 0; tier < kv_.tiers(); ++tier) {
      const auto tokens = static_cast<double>(kv_.tokens_of_nodes(of.match.in_tier[tier]));
      loaded_tokens_[tier] += of.tier_tokens[tier];
      if (tokens == 0.0) continue;
      const Seconds begin = fetch_begin(tier, from);
      tier_free_[tier] = begin + tokens * rules_.tiers[tier].token;
      if (store_ && tier + 1 == kv_.tiers()) store_->free = begin + tokens * rules_.store_token;
    }
    Seconds end = of.fetched;
    if (rules_.loading == HostKvLoading::apart) {
      loads_end_ =
          std::max(loads_end_, now) + static_cast<double>(of.below_tokens) * rules_.load_token;
      end = std::max(end, loads_end_);
    } else {
      sequence.to_load = static_cast<std::uint32_t>(of.below_tokens);
    }
    if (end > now) {
      const auto later =
          std::upper_bound(loads_.begin(), loads_.end(), end,
                           [](Seconds time, const Load& load) { return time < load.end; });
      loads_.insert(later, {end, place});
      receiving_.push_back(place);
      return false;
    }
  }
  prefilling_.push_back(place);
  order_.push_back({0, place, stamp});
  return true;
}

void ServingBatch::end_loads(Seconds time) {
  for (; !loads_.empty() && loads_.front().end <= time; loads_.pop_front()) {
    const std::uint32_t place = loads_.front().place;
    std::erase(receiving_, place);
    prefilling_.push_back(place);
    order_.push_back({0, place, sequences_[place].stamp});
  }
}

void ServingBatch::receive(std::uint32_t place) {
  Sequence& sequence = sequences_[place];
  assert(sequence.remote && !sequence.decodes);
  sequence.computed = sequence.prompt;
  std::erase(receiving_, place);
  // Only from here on may it be preempted: before, its blocks are being written.
  order_.push_back({0, place, sequence.stamp});
  join_decodes(place);
  sequence.remote = false;
}

void ServingBatch::compute(std::uint32_t place, std::int64_t tokens) {
  assert(tokens > 0);
  chunks_.push_back({place, static_cast<std::uint32_t>(tokens)});
  to_load_ += std::exchange(sequences_[place].to_load, 0u);
}

double ServingBatch::answers_left(std::int64_t most) const {
  double left = 0.0;
  for (const std::uint32_t place : receiving_) {
    const Sequence& sequence = sequences_[place];
    left += static_cast<double>(std::min<std::int64_t>(sequence.outputs - sequence.made, most));
  }
  for (const FinishQueue::Entry& entry : order_) {
    const Sequence& sequence = sequences_[entry.place];
    if (sequence.stamp != entry.stamp) continue;
    const std::int64_t made = sequence.made + (sequence.decodes ? step_ - sequence.joined : 0);
    left += static_cast<double>(std::min(sequence.outputs - made, most));
  }
  return left;
}

// A token that finds the blocks full takes a new one: the step that computes it is known when the
// sequence joins, but for whole blocks.
std::size_t ServingBatch::phase_of(std::int64_t context) const {
  const std::int64_t block = kv_.block_tokens();
  return static_cast<std::size_t>(((step_ - context) % block + block) % block);
}

std::int64_t ServingBatch::growth_of_step() const {
  const std::int64_t block = kv_.block_tokens();
  if (rules_.step_tokens == 1) return phases_[static_cast<std::size_t>(step_ % block)];
  std::int64_t blocks = 0;
  for (std::int64_t token = 0; token < rules_.step_tokens; ++token)
    blocks += phases_[static_cast<std::size_t>((step_ + token) % block)];
  for (const FinishQueue::Entry& entry : windows_.all()) {
    const Sequence& sequence = sequences_[entry.place];
    if (sequence.stamp == entry.stamp && entry.step <= step_ + rules_.step_tokens)
      blocks -= not_kept(sequence, context_of(sequence) + rules_.step_tokens);
  }
  return blocks;
}

std::int64_t ServingBatch::tokens_until_full() const {
  if (growth_ == 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t block = kv_.block_tokens();
  std::int64_t left = kv_.available();
  std::int64_t steps = left / growth_ * block;  // They take `growth_` blocks every `block` steps.
  left %= growth_;
  for (std::int64_t at = step_ % block;; at = (at + 1) % block, ++steps) {
    left -= phases_[static_cast<std::size_t>(at)];
    if (left < 0) return steps;
  }
}

std::int64_t ServingBatch::tokens_until_finish() {
  while (!finishes_.empty() && sequences_[finishes_.first().place].stamp != finishes_.first().stamp)
    finishes_.pop();
  return finishes_.empty() ? std::numeric_limits<std::int64_t>::max()
                           : finishes_.first().step - step_;
}

void ServingBatch::advance(std::int64_t tokens) {
  const std::int64_t block = kv_.block_tokens();
  std::int64_t taken = tokens / block * growth_;
  for (std::int64_t i = 0; i < tokens % block; ++i)
    taken += phases_[static_cast<std::size_t>((step_ + i) % block)];
  step_ += tokens;
  context_ += tokens * decodes_;
  for (; !windows_.empty() && windows_.first().step <= step_; windows_.pop()) {
    const Sequence& sequence = sequences_[windows_.first().place];
    if (sequence.stamp != windows_.first().stamp) continue;
    const std::int64_t context = context_of(sequence);
    taken -= not_kept(sequence, context);
    phases_[phase_of(context)] -= kv_.groups().windowed;
    growth_ -= kv_.groups().windowed;
  }
  kv_.take(taken);
}

bool ServingBatch::computed(const Chunk& chunk) {
  Sequence& sequence = sequences_[chunk.place];
  sequence.computed += chunk.tokens;
  assert(sequence.computed <= sequence.prompt);
  if (sequence.computed < sequence.prompt) return false;
  std::erase(prefilling_, chunk.place);
  return true;
}

void ServingBatch::join_decodes(std::uint32_t place) {
  Sequence& sequence = sequences_[place];
  sequence.decodes = true;
  sequence.joined = step_;
  finishes_.push({step_ + (sequence.outputs - sequence.made), place, sequence.stamp});
  ++decodes_;
  context_ += sequence.prompt;
  if (sequence.reserved > 0) return;
  const std::int64_t taken = growth(sequence, sequence.prompt);
  phases_[phase_of(sequence.prompt)] += taken;
  growth_ += taken;
  if (kv_.groups().windowed > 0) leave_window(place);
}

// The prompt is computed: a decode keeps less of it, and what the next tokens see.
void ServingBatch::leave_window(std::uint32_t place) {
  const Sequence& sequence = sequences_[place];
  kv_.give(prompt_blocks(sequence.prompt, sequence.nodes, sequence.remote) - own_blocks(sequence));
  if (growth(sequence, sequence.prompt) == kv_.groups().whole) return;
  // The first token in the last block of the windowed groups.
  const std::int64_t before =
      kv_.blocks_of(sequence.prompt) - kv_.own_in_one(sequence.prompt, sequence.nodes);
  const std::int64_t context = (before + most_windowed_decode_ - 1) * kv_.block_tokens() + 1;
  windows_.push({step_ + context - sequence.prompt, place, sequence.stamp});
}

std::uint32_t ServingBatch::next_finished() {
  if (tokens_until_finish() > 0) return no_place;
  const std::uint32_t place = finishes_.first().place;
  finishes_.pop();
  return place;
}

// Parts of a prompt are computed with the whole budget; keys and values that another pool sends are
// those that the next step sees.
std::int64_t ServingBatch::prompt_blocks(std::int64_t prompt, std::size_t nodes,
                                         bool remote) const {
  return kv_.own_blocks(prompt, nodes, remote ? most_windowed_decode_ : most_windowed_prompt_);
}

std::int64_t ServingBatch::own_blocks(const Sequence& sequence) const {
  if (sequence.reserved > 0) return sequence.reserved;
  return sequence.decodes
             ? kv_.own_blocks(context_of(sequence), sequence.nodes, most_windowed_decode_)
             : prompt_blocks(sequence.prompt, sequence.nodes, sequence.remote);
}

// Blocks that a decode takes with the next token that finds its blocks full.
std::int64_t ServingBatch::growth(const Sequence& sequence, std::int64_t context) const {
  const KvGroups& groups = kv_.groups();
  const bool fills =
      groups.windowed > 0 && kv_.own_in_one(context, sequence.nodes) < most_windowed_decode_;
  return groups.whole + (fills ? groups.windowed : 0);
}

// Blocks of the windowed groups for which a decode gives back others.
std::int64_t ServingBatch::not_kept(const Sequence& sequence, std::int64_t context) const {
  const std::int64_t in_one = kv_.own_in_one(context, sequence.nodes);
  return kv_.groups().windowed * std::max<std::int64_t>(0, in_one - most_windowed_decode_);
}

void ServingBatch::leave_decodes(std::uint32_t place) {
  const Sequence& sequence = sequences_[place];
  const std::int64_t context = context_of(sequence);
  --decodes_;
  context_ -= context;
  if (sequence.reserved > 0) return;
  const std::int64_t taken = growth(sequence, context);
  phases_[phase_of(context)] -= taken;
  growth_ -= taken;
}

void ServingBatch::give_back(const KeptBlocks& kept) {
  kv_.give(kept.blocks);
  if (kept.deepest != PrefixTree::none) kv_.release(kept.deepest);
}

KeptBlocks ServingBatch::leave_keeping(std::uint32_t place) {
  const KeptBlocks kept{own_blocks(sequences_[place]), sequences_[place].deepest};
  free_place(place);
  return kept;
}

void ServingBatch::leave(std::uint32_t place) {
  give_back({own_blocks(sequences_[place]), sequences_[place].deepest});
  free_place(place);
}

void ServingBatch::free_place(std::uint32_t place) {
  Sequence& sequence = sequences_[place];
  if (sequence.decodes) leave_decodes(place);
  ++sequence.stamp;
  free_places_.push_back(place);
  --running_;
  windows_held_ -= windows_pool_.of(sequence.prompt);
  while (!order_.empty() && sequences_[order_.back().place].stamp != order_.back().stamp)
    order_.pop_back();
  if (order_.size() > 64 && static_cast<std::int64_t>(order_.size()) > 2 * running_)
    std::erase_if(order_, [&](const FinishQueue::Entry& entry) {
      return sequences_[entry.place].stamp != entry.stamp;
    });
}

void ServingBatch::preempt_youngest(Seconds now) {
  assert(running_ > 1);
  std::uint32_t place = order_.back().place;
  if (!list_.classes.empty())
    for (auto entry = order_.rbegin(); entry != order_.rend(); ++entry)
      if (sequences_[entry->place].stamp == entry->stamp &&
          priority_of(sequences_[entry->place]) < priority_of(sequences_[place]))
        place = entry->place;
  Sequence again = sequences_[place];
  const bool decoded = again.decodes;
  const std::int64_t joined = again.joined;
  if (decoded) again.made += static_cast<std::uint32_t>(step_ - again.joined);
  if (!decoded) std::erase(prefilling_, place);
  leave(place);
  // The new prompt is the old one and the answer so far, which is computed again if it is not kept.
  again.prompt = list_.requests[again.request].prompt_tokens + again.made;
  again.computed = 0;
  again.decodes = false;
  again.reserved = 0;
  again.nodes = 0;
  again.deepest = PrefixTree::none;
  ++again.preemptions;
  // A request that left before its first step has made no token here.
  if (decoded && step_ > joined) again.last_token = now;
  auto first = waiting_.begin();
  while (first != waiting_.end() && priority_of(*first) > priority_of(again)) ++first;
  waiting_.insert(first, again);
}

void PromptTurn::resume() {
  for (const std::uint32_t place : batch_.prefilling()) {
    const Sequence& sequence = batch_.sequence(place);
    const std::int64_t tokens =
        std::min<std::int64_t>(budget_, sequence.prompt - sequence.computed);
    if (tokens <= 0) return;
    batch_.compute(place, tokens);
    budget_ -= tokens;
  }
}

bool PromptTurn::may_begin() const {
  return !batch_.holds_prompts() && batch_.has_seen_waiting() && budget_ > 0 && batch_.has_place();
}

bool PromptTurn::takes(const ServingBatch::Candidate& next) const {
  return next.remote || next.tokens <= budget_ || batch_.rules().chunked || batch_.chunks().empty();
}

void PromptTurn::begin(const ServingBatch::Candidate& next, bool reserving) {
  if (!batch_.admit(next, reserving, now_)) return;
  const std::int64_t tokens = batch_.rules().chunked ? std::min(budget_, next.tokens) : next.tokens;
  batch_.compute(batch_.prefilling().back(), tokens);
  budget_ -= tokens;
}

void free_blocks_for_step(ServingBatch& batch, Seconds now) {
  while (batch.growth_of_step() > batch.kv().available()) batch.preempt_youngest(now);
}

}  // namespace orrery
