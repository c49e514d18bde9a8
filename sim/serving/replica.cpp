#include "sim/serving/replica.hpp"

#include <algorithm>
#include <cassert>

#include "sim/serving/scheduler.hpp"

namespace orrery {

Replica::Replica(const RequestList& list, const ReplicaShape& shape, StepTimes& times,
                 std::int64_t* busy, SharedStore* store)
    : list_{list},
      shape_{shape},
      times_{times},
      busy_{busy},
      batch_{list, shape.rules, shape.kv, store},
      scheduler_{shape.rules.scheduler->make()},
      progress_{shape.rules.progress} {}

std::uint32_t Replica::quarter_of(std::uint32_t index) const {
  return static_cast<std::uint32_t>(4 * static_cast<std::uint64_t>(index) / list_.requests.size());
}

void Replica::count_present(Seconds until) {
  counts_.totals.present += static_cast<double>(present_) * (until - counted_until_);
  counted_until_ = until;
}

void Replica::arrive(std::uint32_t index, Seconds time) {
  const Request& request = list_.requests[index];
  Sequence sequence;
  sequence.request = index;
  sequence.prompt = request.prompt_tokens;
  sequence.outputs = shape_.role == ReplicaRole::prefill ? 1 : request.output_tokens;
  sequence.arrival = time;
  if (shape_.replay.routing == Routing::kv || shape_.replay.counts_prompts)
    sequence.to_compute = request.prompt_tokens - static_cast<std::uint32_t>(known_tokens(index));
  enter(sequence, time);
}

void Replica::arrive_remote(std::uint32_t index, Seconds time) {
  const Request& request = list_.requests[index];
  assert(shape_.role == ReplicaRole::decode && request.output_tokens > 1);
  Sequence sequence;
  sequence.request = index;
  sequence.prompt = request.prompt_tokens;
  if (shape_.makes_first_token)
    sequence.prompt = std::max(1u, sequence.prompt - 1);
  else
    sequence.made = 1;
  sequence.outputs = request.output_tokens;
  sequence.arrival = time;
  sequence.remote = true;
  enter(sequence, time);
}

std::vector<PlacedRequest> Replica::take_placed() {
  std::vector<PlacedRequest> placed;
  for (const std::uint32_t place : batch_.placed()) {
    const Sequence& sequence = batch_.sequence(place);
    placed.push_back({sequence.request, place, sequence.computed});
  }
  batch_.clear_placed();
  return placed;
}

void Replica::receive(const PlacedRequest& placed, const PrefilledRequest& prefilled,
                      Seconds time) {
  Sequence& sequence = batch_.at(placed.place);
  sent_[sequence.request] = prefilled.sent;
  sequence.started = prefilled.started;
  sequence.hits = prefilled.hits;
  if (sequence.made > 0) sequence.first_token = sequence.last_token = time;
  if (is_idle()) {
    now_ = time;
    if (busy_ && !at_work_) ++*busy_;
    at_work_ = true;
  } else {
    cut_at(time);
  }
  received_.push_back({0, placed.place, sequence.stamp});
}

void Replica::enter(const Sequence& sequence, Seconds time) {
  const Request& request = list_.requests[sequence.request];
  const std::uint32_t index = sequence.request;
  count_present(time);
  ReplayTotals& totals = counts_.totals;
  ++totals.arrived;
  totals.first_arrival = std::min(totals.first_arrival, time);
  totals.last_arrival = std::max(totals.last_arrival, time);
  totals.waiting_seen[quarter_of(index)] += batch_.waiting();
  ++totals.arrived_of[quarter_of(index)];
  batch_.wait(sequence);
  prompts_to_compute_ += sequence.to_compute;
  ++present_;
  present_tokens_ += request.prompt_tokens + request.output_tokens;
  if (is_idle()) {
    if (busy_ && !at_work_) ++*busy_;
    at_work_ = true;
    now_ = time;
  } else if (loads_ || interruptible_) {
    // It may enter as soon as it is seen; later arrivals wait for the next schedule.
    cut_at(time);
  }
}

void Replica::cut_at(Seconds time) {
  if (loads_ && !follows_) {
    steps_.first = time - now_;
    change_at_ = time;
    return;
  }
  const std::int64_t planned = shape_.rules.plans_ahead ? 1 : 0;
  std::int64_t seen = steps_.until(time - now_) + planned;
  // It is received at the next turn of the scheduler that looks for requests.
  const std::int64_t interval = shape_.rules.receive_interval;
  if (batch_.chunks().empty()) seen += (interval - (unreceived_ + seen) % interval) % interval;
  steps_.steps = std::min(steps_.steps, seen);
  change_at_ = now_ + steps_.time(steps_.steps);
  interruptible_ = false;
}

void Replica::adopt(const DecodeSteps& steps) {
  steps_ = steps;
  change_at_ = now_ + steps_.time(steps_.steps);
}

void Replica::follow(const DecodeSteps& steps) {
  adopt(steps);
  follows_ = true;
}

std::int64_t Replica::tokens() const {
  std::int64_t tokens = batch_.decodes_run() ? shape_.rules.step_tokens * batch_.decodes() : 0;
  for (const Chunk& chunk : batch_.chunks()) tokens += chunk.tokens;
  return tokens;
}

bool Replica::can_begin_prompt() const {
  std::int64_t continued = 0;
  for (const std::uint32_t place : batch_.prefilling()) {
    const Sequence& sequence = batch_.sequence(place);
    continued += sequence.prompt - sequence.computed;
  }
  return batch_.has_waiting() && batch_.has_place() && continued < shape_.rules.budget &&
         batch_.candidate().prompt_blocks <= batch_.kv().available();
}

void Replica::schedule() {
  const std::int64_t before = batch_.decodes();
  batch_.clear_iteration();
  scheduler_->schedule(batch_, now_);
  const std::vector<FinishQueue::Entry> rejoined = batch_.take_rejoined();
  std::int64_t gone = before + std::ssize(rejoined) - batch_.decodes();
  preempted_ = gone > 0;
  rejoined_ = !rejoined.empty();
  if (!fresh_.empty()) {
    const std::size_t fresh = fresh_.size();
    std::erase_if(fresh_, [&](const FinishQueue::Entry& entry) {
      return batch_.sequence(entry.place).stamp != entry.stamp;
    });
    gone -= static_cast<std::int64_t>(fresh - fresh_.size());
  }
  fresh_.insert(fresh_.end(), rejoined.begin(), rejoined.end());
  while (gone > 0 && !stalled_.empty()) {
    const std::int64_t here = std::min(gone, stalled_.back().requests);
    stalled_.back().requests -= here;
    gone -= here;
    if (stalled_.back().requests == 0) stalled_.pop_back();
  }
}

void Replica::start(Seconds now) {
  now_ = now;
  for (const FinishQueue::Entry& entry : received_) {
    batch_.receive(entry.place);
    fresh_.push_back(entry);
  }
  received_.clear();
  batch_.see_until(seen_until_, now_);
  batch_.end_loads(std::min(seen_until_, now_));
  schedule();
  // Nothing was planned: it looks for arrivals.
  if (batch_.chunks().empty() && !batch_.decodes_run() && !batch_.has_seen_waiting()) {
    batch_.see_until(now_, now_);
    batch_.end_loads(now_);
    schedule();
  }
  interruptible_ = false;
  if (!batch_.chunks().empty()) return start_mixed();
  if (batch_.decodes_run()) return start_decodes();
  if (batch_.next_load() < never) return wait_for_load();
  // Present requests of pools may wait for blocks that are kept, or for keys and values.
  assert(present_ == 0 || shape_.role != ReplicaRole::all);
  change_at_ = seen_until_ = never;
  if (busy_ && at_work_) --*busy_;
  at_work_ = false;
  scheduler_->note_idle();
}

void Replica::start_decodes() {
  steps_ = times_.decode(batch_.decodes(), batch_.context(), beyond(), busy_ ? *busy_ : 0);
  std::int64_t steps = std::min(steps_.steps, progress_.steps_for(batch_.tokens_until_finish()));
  steps =
      std::min(steps, progress_.steps_within(batch_.tokens_until_full(), shape_.rules.step_tokens));
  steps = std::min(steps, scheduler_->steps_until_admission(batch_));
  // A scheduler may count on the whole answer of a request that has just got a place, and from the
  // next step on a share of it: then another may fit. A request that was preempted because all
  // drafted tokens might have been accepted may fit after the next step. One that came during the
  // last step is seen when this one is over.
  const bool is_unseen = batch_.has_waiting() && !batch_.has_seen_waiting();
  const bool enters_otherwise =
      batch_.has_waiting() &&
      (!batch_.placed().empty() || (preempted_ && shape_.rules.step_tokens > 1));
  if (is_unseen) steps = std::min<std::int64_t>(steps, shape_.rules.receive_interval - unreceived_);
  if (shape_.replay.unfolded || enters_otherwise || rejoined_ || batch_.next_is_kept()) steps = 1;
  if (batch_.next_load() < never) {
    // The load is seen like an arrival at that time.
    const Seconds left = batch_.next_load() - now_;
    const std::int64_t until = left > Seconds{} ? steps_.until(left) : 0;
    steps = std::min(steps, until + (shape_.rules.plans_ahead ? 1 : 0));
  }
  assert(steps >= 1);
  steps_.steps = steps;
  change_at_ = now_ + steps_.time(steps);
  interruptible_ =
      !batch_.has_waiting() && batch_.has_place() && shape_.rules.scheduler->continuous;
}

void Replica::wait_for_load() {
  loads_ = true;
  follows_ = false;
  steps_ = {batch_.next_load() - now_, Seconds{}, 1};
  change_at_ = batch_.next_load();
}

// Adds the load of what the iteration's prompts need from the host's memory.
Seconds Replica::with_load(Seconds iteration) const {
  const Seconds load = static_cast<double>(batch_.tokens_to_load()) * shape_.rules.load_token;
  if (shape_.rules.loading != HostKvLoading::layers) return iteration + load;
  // Layers come one after another, and each is computed when it is there and the one before it is.
  const auto layers = static_cast<double>(shape_.rules.load_layers);
  return std::max(iteration + load / layers, load + iteration / layers);
}

void Replica::start_mixed() {
  chunk_shapes_.clear();
  std::int64_t finished = 0;
  for (const Chunk& chunk : batch_.chunks()) {
    Sequence& sequence = batch_.at(chunk.place);
    chunk_shapes_.push_back({chunk.tokens, sequence.computed});
    finished += sequence.computed + chunk.tokens == sequence.prompt ? 1 : 0;
    if (sequence.started < Seconds{}) sequence.started = now_;
  }
  const bool decodes = batch_.decodes_run();
  // No request waits for the output of the last stage: the next part follows behind this one.
  if (busy_ && !decodes && finished == 0) {
    steps_ = {with_load(times_.chunk_follows(chunk_shapes_, *busy_)), Seconds{}, 1};
    change_at_ = now_ + steps_.first;
    return;
  }
  const Seconds computed =
      times_.mixed(decodes ? batch_.decodes() : 0, batch_.context(), chunk_shapes_, finished,
                   decodes ? beyond() : 0.0, busy_ ? *busy_ : 0);
  steps_ = {batch_.tokens_to_load() > 0 ? with_load(computed) : computed, Seconds{}, 1};
  change_at_ = now_ + steps_.first;
}

void Replica::note_memory(Seconds span, double share_before) {
  const double share =
      static_cast<double>(batch_.kv().used()) / static_cast<double>(batch_.kv().capacity());
  counts_.totals.kv_used += 0.5 * (share_before + share) * span;
  counts_.totals.kv_peak = std::max(counts_.totals.kv_peak, share);
  for (std::size_t tier = 0; tier < batch_.kv().tiers(); ++tier) {
    counts_.totals.tiers[tier].loaded_tokens = batch_.loaded_tokens()[tier];
    counts_.totals.tiers[tier].stored_tokens = batch_.kv().stored_tokens(tier);
  }
}

// The scheduler plans each iteration when the one before it begins, or ends. It looks for requests
// whenever so many decode steps have been planned since it did, and behind every other iteration.
void Replica::receive(std::int64_t steps) {
  const bool ahead = shape_.rules.plans_ahead;
  const bool decodes = batch_.decodes_run() && batch_.chunks().empty();
  const std::int64_t interval = decodes ? shape_.rules.receive_interval : 1;
  if (!ahead && shape_.rules.receive_interval == 1) return;
  const std::int64_t turns = unreceived_ + steps;
  const std::int64_t last = steps - turns % interval;  // The last step behind which it looked.
  if (last >= 1) seen_until_ = now_ + steps_.time(ahead ? last - 1 : last);
  unreceived_ = decodes ? turns % interval : 0;
}

void Replica::complete() {
  assert(!is_idle());
  if (loads_) {
    loads_ = false;
    ended_.clear();
    prefilled_.clear();
    count_present(change_at_);
    now_ = change_at_;
    if (shape_.rules.plans_ahead) seen_until_ = now_;
    return;
  }
  const Seconds span = change_at_ - now_;
  const std::int64_t steps = steps_.steps;
  receive(steps);
  const double share_before =
      static_cast<double>(batch_.kv().used()) / static_cast<double>(batch_.kv().capacity());
  if (shape_.replay.keeps_iterations) {
    const std::int64_t decodes = batch_.decodes_run() ? batch_.decodes() : 0;
    const std::int64_t prompts = tokens() - shape_.rules.step_tokens * decodes;
    iterations_.push_back({0, now_, change_at_, steps, decodes, prompts});
  }
  ReplayTotals& totals = counts_.totals;
  ++totals.events;
  totals.iterations += steps;
  totals.busy += span;
  totals.end = std::max(totals.end, change_at_);
  count_present(change_at_);
  now_ = change_at_;
  interruptible_ = false;
  ended_.clear();
  prefilled_.clear();
  if (batch_.decodes_run()) {
    totals.decode_time += span;
    complete_decodes(steps);
  } else if (batch_.decodes() > 0) {
    if (stalled_.empty()) stalled_.push_back({batch_.decodes() - fresh(), Seconds{}});
    stall_ += span;
  }
  note_memory(span, share_before);
  for (std::uint32_t place; (place = batch_.next_finished()) != ServingBatch::no_place;) end(place);
  complete_chunks();
}

void Replica::complete_decodes(std::int64_t steps) {
  const auto requests = static_cast<std::uint64_t>(batch_.decodes() - scheduler_->padding());
  auto later = static_cast<std::uint64_t>(steps);
  Seconds first = steps_.first;
  if (!stalled_.empty() || !fresh_.empty()) {
    if (stalled_.empty()) stalled_.push_back({batch_.decodes() - fresh(), stall_});
    for (const Stalled& group : stalled_)
      if (group.requests > 0)
        counts_.itl.add(first + (stall_ - group.since), static_cast<std::uint64_t>(group.requests));
    stalled_.clear();
    stall_ = Seconds{};
    first_steps(now_ - steps_.time(steps) + first);
    first += steps_.growth;
    --later;
  }
  if (later > 0) counts_.itl.add_range(first, steps_.growth, later, requests);
  counts_.totals.decode_steps += steps;
  counts_.totals.slot_steps += steps * batch_.decodes();
  batch_.advance(progress_.tokens_of(steps));
  progress_.take(steps);
  if (batch_.chunks().empty()) scheduler_->note_decodes(steps);
}

// Counts first tokens or gaps of those from another pool, at the end of their first step here.
void Replica::first_steps(Seconds time) {
  for (const FinishQueue::Entry& entry : fresh_) {
    Sequence& sequence = batch_.at(entry.place);
    if (sequence.first_token < Seconds{})
      sequence.first_token = time;
    else
      counts_.itl.add(time - sequence.last_token);
  }
  fresh_.clear();
}

void Replica::complete_chunks() {
  std::int64_t joined = 0;
  for (const Chunk& chunk : batch_.chunks())
    if (batch_.computed(chunk)) {
      give_token(chunk.place);
      joined += batch_.sequence(chunk.place).decodes ? 1 : 0;
    }
  if (joined > 0 && !stalled_.empty()) stalled_.push_back({joined, stall_});
}

// The first token, or the one after a preemption, comes out of the prefill.
void Replica::give_token(std::uint32_t place) {
  Sequence& sequence = batch_.at(place);
  ++sequence.made;
  prompts_to_compute_ -= std::exchange(sequence.to_compute, 0u);
  if (sequence.first_token < Seconds{})
    sequence.first_token = now_;
  else
    counts_.itl.add(now_ - sequence.last_token);
  sequence.last_token = now_;
  if (sequence.made == sequence.outputs)
    end(place);
  else
    batch_.join_decodes(place);
}

// Its prompt is computed, and another pool goes on with it.
void Replica::hand_over(std::uint32_t place) {
  const Sequence& sequence = batch_.sequence(place);
  const Request& request = list_.requests[sequence.request];
  counts_.totals.stayed += now_ - sequence.arrival;
  present_tokens_ -= request.prompt_tokens + request.output_tokens;
  --present_;
  const Seconds sent = sequence.arrival - shape_.client;
  PrefilledRequest done{sequence.request, sequence.hits, sent, sequence.started, now_, {}};
  done.kept = batch_.leave_keeping(place);
  prefilled_.push_back(done);
}

void Replica::end(std::uint32_t place) {
  const Sequence& sequence = batch_.sequence(place);
  if (shape_.role == ReplicaRole::prefill && list_.requests[sequence.request].output_tokens > 1)
    return hand_over(place);
  const Seconds sent = shape_.role == ReplicaRole::decode ? sent_.extract(sequence.request).mapped()
                                                          : sequence.arrival - shape_.client;
  RequestTimes times;
  times.request = sequence.request;
  times.arrival = sent;
  times.queue = sequence.started - sent;
  times.ttft = sequence.first_token - sent;
  times.e2e = now_ - sent;
  if (sequence.outputs > 1)
    times.tpot = (times.e2e - times.ttft) / static_cast<double>(sequence.outputs - 1);
  times.prefix_hits = sequence.hits;
  times.tier_hits = sequence.tier_hits;
  times.preemptions = sequence.preemptions;
  counts_.totals.preemptions += sequence.preemptions;
  counts_.totals.stayed += now_ - sequence.arrival;
  const Request& request = list_.requests[sequence.request];
  present_tokens_ -= request.prompt_tokens + request.output_tokens;
  counts_.finish(times, request.prompt_tokens, request.output_tokens,
                 list_.limits_of(request, shape_.replay.slo));
  ended_.push_back(times);
  --present_;
  const std::uint32_t index = sequence.request;
  scheduler_->end(batch_, place);
  batch_.keep_answer(index);
}

}  // namespace orrery
