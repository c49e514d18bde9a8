#include "sim/serving/pooled_replay.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "sim/serving/replay_requests.hpp"

namespace orrery {
namespace {

ReplayCounts counts_of(const Fleet& fleet, std::vector<ReplayedIteration>& iterations) {
  ReplayCounts counts;
  std::uint32_t number = 0;
  for (const Replica& replica : fleet.replicas()) {
    counts.add(replica.counts());
    for (ReplayedIteration iteration : replica.iterations()) {
      iteration.replica = number;
      iterations.push_back(iteration);
    }
    ++number;
  }
  return counts;
}

}  // namespace

PooledReplay replay_pools(const RequestList& list, const PooledShape& shape, KvWays& ways,
                          StepTimes& prefill, StepTimes& decode) {
  assert(!list.requests.empty());
  std::vector<std::uint32_t> all(list.requests.size());
  std::iota(all.begin(), all.end(), 0u);
  PooledReplay result;
  if (shape.decode.replica.replay.keeps_times) result.times.resize(list.requests.size());
  PooledFleet fleet{list, shape, ways, prefill, decode};
  const auto ended = [&](const Replica& replica) {
    if (shape.decode.replica.replay.keeps_times)
      for (const RequestTimes& of : replica.ended()) result.times[of.request] = of;
  };
  if (list.clients > 0) {
    ClosedLoop source{all, list.clients, shape.prefill.replica.client};
    fleet.run(source, ended);
  } else {
    OwnTimes source{list, all, shape.prefill.replica.client};
    fleet.run(source, ended);
  }
  result.prefill = counts_of(fleet.prefill(), result.prefill_iterations);
  result.decode = counts_of(fleet.decode(), result.decode_iterations);
  result.transfers = fleet.transfers();
  result.pool_times = fleet.times();
  assert(result.prefill.totals.finished + result.decode.totals.finished +
             std::min<std::int64_t>(shape.decode.replica.replay.first_counted,
                                    static_cast<std::int64_t>(list.requests.size())) ==
         static_cast<std::int64_t>(list.requests.size()));
  return result;
}

namespace {

Fleet fleet_of(const RequestList& list, const ReplayShape& pool, StepTimes& times) {
  return Fleet{list, pool.replica, pool.replicas, times,
               RequestRouter{pool.replica.replay.routing, pool.replicas, list.seed}};
}

std::uint32_t copy_of(std::uint32_t replica, const ReplayShape& pool) {
  return replica / static_cast<std::uint32_t>(pool.replica.stages);
}

}  // namespace

PooledFleet::PooledFleet(const RequestList& list, const PooledShape& shape, KvWays& ways,
                         StepTimes& prefill, StepTimes& decode)
    : list_{list},
      shape_{shape},
      ways_{ways},
      prefill_{fleet_of(list, shape.prefill, prefill)},
      decode_{fleet_of(list, shape.decode, decode)},
      links_{ways.topology()},
      parts_(shape.prefill.replicas) {
  if (shape.decode.replica.replay.keeps_times) times_.resize(list.requests.size());
}

const KvWay& PooledFleet::way_of(const Passage& passage) {
  return ways_.between(copy_of(passage.from, shape_.prefill), copy_of(passage.to, shape_.decode));
}

Seconds PooledFleet::next_change() {
  const Seconds next = std::min(prefill_.next_change(), decode_.next_change());
  return later_.empty() ? next : std::min(next, later_.next().time);
}

void PooledFleet::later(Seconds time, std::uint32_t request, Then then, double computed) {
  later_.push(time, order_.next(), {request, then, computed});
}

// The engines' servers tell each other of a request before the decode pool hears of it.
void PooledFleet::ask_for_place(std::uint32_t index, Seconds now) {
  if (shape_.handover > Seconds{})
    later(now + shape_.handover, index, Then::asks_for_place);
  else
    passages_.at(index).to = decode_.deliver_remote(index, now);
}

// A client's request reaches the pools.
void PooledFleet::take(std::uint32_t index, Seconds now) {
  if (list_.requests[index].output_tokens == 1) {
    prefill_.deliver(index, now);  // Nothing is left to decode.
    return;
  }
  Passage& passage = passages_[index];
  passage.sent_by_client = now - shape_.prefill.replica.client;
  if (places_first())
    ask_for_place(index, now);
  else
    passage.from = prefill_.deliver(index, now);
}

// What an iteration of the prefill pool has brought.
void PooledFleet::note_computed(const Replica& replica, std::uint32_t number) {
  computed_.insert(computed_.end(), parts_[number].begin(), parts_[number].end());
  parts_[number].clear();
  const std::span<const PrefilledRequest> done = replica.prefilled();
  prefilled_.insert(prefilled_.end(), done.begin(), done.end());
}

void PooledFleet::pass_on(Seconds now) {
  for (const Part& part : computed_) is_computed(part.request, part.after, now);
  computed_.clear();
  for (const PrefilledRequest& done : prefilled_) {
    const std::uint32_t index = done.request;
    Passage& passage = passages_.at(index);
    passage.prefilled = done;
    passage.prefilled.sent = passage.sent_by_client;
    passage.is_prefilled = true;
    if (!places_first()) ask_for_place(index, now);
    is_computed(index, 1.0, now);
  }
  prefilled_.clear();
  while (!later_.empty() && later_.next().time <= now) {
    const Later due = later_.pop().event;
    switch (due.then) {
      case Then::asks_for_place:
        passages_.at(due.request).to = decode_.deliver_remote(due.request, now);
        break;
      case Then::is_computed:
        is_computed(due.request, due.computed, now);
        break;
      case Then::sets_out:
        set_out(due.request, now);
        break;
    }
  }
  for (const std::uint32_t request : arrived_) part_arrived(request, now);
}

void PooledFleet::start_all(Seconds now) {
  // Who gets a place may go to the prefill pool at once.
  decode_.start_all(now, [&](Replica& replica, std::uint32_t number) {
    if (replica.batch().called().empty()) return;
    for (const CalledRequest& called : replica.take_called()) note_called(number, called, now);
  });
  prefill_.start_all(now, [&](Replica& replica, std::uint32_t number) {
    if (places_first()) note_parts(replica, number, now);
  });
}

// Which parts of prompts an iteration computes that has begun. A layer's keys and values are there
// when the layer is; the last one's at the end.
void PooledFleet::note_parts(const Replica& replica, std::uint32_t number, Seconds now) {
  if (replica.is_idle()) return;
  for (const Chunk& chunk : replica.batch().chunks()) {
    const Sequence& sequence = replica.batch().sequence(chunk.place);
    if (list_.requests[sequence.request].output_tokens == 1) continue;
    const double prompt = sequence.prompt;
    const Part part{sequence.request, sequence.computed / prompt,
                    (sequence.computed + chunk.tokens) / prompt};
    parts_[number].push_back(part);
    passages_.at(part.request).from = number;
    if (shape_.sending != KvSending::layers || shape_.layers == 1) continue;
    const double of_layer = (part.after - part.before) / shape_.layers;
    const Seconds first_layer = (replica.change_at() - now) / static_cast<double>(shape_.layers);
    later(now + first_layer, part.request, Then::is_computed, part.after - of_layer);
  }
}

void PooledFleet::note_called(std::uint32_t number, const CalledRequest& called, Seconds now) {
  Passage& passage = passages_.at(called.request);
  assert(passage.to == number && !passage.is_called);
  passage.called = called;
  passage.is_called = true;
  passage.called_at = now;
  const std::uint32_t prompt = list_.requests[called.request].prompt_tokens;
  passage.bytes = shape_.kv_bytes(prompt - called.known).si();
  if (places_first())
    passage.from = prefill_.deliver(called.request, now);
  else
    send(called.request, now);
}

void PooledFleet::is_computed(std::uint32_t index, double share, Seconds now) {
  Passage& passage = passages_.at(index);
  passage.computed = std::max(passage.computed, share);
  send(index, now);
}

// The next part, when the last one has arrived.
void PooledFleet::send(std::uint32_t index, Seconds now) {
  Passage& passage = passages_.at(index);
  if (passage.moves || !passage.is_called || passage.computed <= passage.sent) return;
  passage.moves = true;
  passage.part_began = now;
  later(now + way_of(passage).latency, index, Then::sets_out);
}

void PooledFleet::set_out(std::uint32_t index, Seconds now) {
  Passage& passage = passages_.at(index);
  const KvWay& way = way_of(passage);
  const double bytes = passage.bytes * (passage.computed - passage.sent);
  const std::uint32_t transfer = links_.start(way.flows, bytes, now);
  if (transfer >= moving_.size()) moving_.resize(transfer + 1);
  moving_[transfer] = index;
  passage.sent = passage.computed;
  transfers_.sent += Bytes{way.sent * bytes};
  transfers_.alone += way.latency + bytes * way.alone;
}

void PooledFleet::part_arrived(std::uint32_t index, Seconds now) {
  Passage& passage = passages_.at(index);
  passage.moves = false;
  transfers_.moving += now - passage.part_began;
  if (passage.is_prefilled && passage.sent == 1.0) return deliver(index, now);
  send(index, now);
}

void PooledFleet::deliver(std::uint32_t index, Seconds now) {
  const Passage passage = passages_.at(index);
  passages_.erase(index);
  prefill_.release(passage.from, passage.prefilled);
  decode_.receive(passage.to, passage.called, passage.prefilled, now);
  const Seconds done = passage.prefilled.done;
  const Seconds begins = std::max(done, passage.called_at);
  const PoolTimes times{done - passage.prefilled.started, begins - done, now - begins};
  if (shape_.decode.replica.replay.keeps_times) times_[index] = times;
  ++transfers_.requests;
  transfers_.prompts += list_.requests[index].prompt_tokens;
  transfers_.tokens += list_.requests[index].prompt_tokens - passage.called.known;
  transfers_.kv += Bytes{passage.bytes};
  if (index < shape_.decode.replica.replay.first_counted) return;
  transfers_.prefill.add(times.prefill);
  transfers_.place.add(times.place);
  transfers_.transfer.add(times.transfer);
}

}  // namespace orrery
