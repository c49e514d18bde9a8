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

PooledReplay replay_pools(const RequestList& list, const PooledShape& shape, KvRoutes& routes,
                          StepTimes& prefill, StepTimes& decode) {
  assert(!list.requests.empty());
  std::vector<std::uint32_t> all(list.requests.size());
  std::iota(all.begin(), all.end(), 0u);
  PooledReplay result;
  if (shape.decode.replica.replay.keeps_times) result.times.resize(list.requests.size());
  PooledFleet fleet{list, shape, routes, prefill, decode};
  const auto ended = [&](const Replica& replica) {
    if (shape.decode.replica.replay.keeps_times)
      for (const RequestTimes& of : replica.ended()) result.times[of.request] = of;
  };
  if (list.clients > 0) {
    ClosedLoop source{list, all, list.clients, shape.prefill.replica.client};
    fleet.run(source, ended);
  } else {
    OwnTimes source{list, all, shape.prefill.replica.client};
    fleet.run(source, ended);
  }
  result.prefill = counts_of(fleet.prefill(), result.prefill_iterations);
  result.decode = counts_of(fleet.decode(), result.decode_iterations);
  result.transfers = fleet.transfers();
  result.pool_times = fleet.times();
  assert(result.prefill.totals.finished + result.decode.totals.finished ==
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

PooledFleet::PooledFleet(const RequestList& list, const PooledShape& shape, KvRoutes& routes,
                         StepTimes& prefill, StepTimes& decode)
    : list_{list},
      shape_{shape},
      routes_{routes},
      prefill_{fleet_of(list, shape.prefill, prefill)},
      decode_{fleet_of(list, shape.decode, decode)},
      links_{routes.topology()},
      parts_(shape.prefill.replicas) {
  if (shape.decode.replica.replay.keeps_times) times_.resize(list.requests.size());
}

const KvRoute& PooledFleet::route_of(const Passage& passage) {
  return routes_.between(copy_of(passage.from, shape_.prefill), copy_of(passage.to, shape_.decode));
}

Seconds PooledFleet::next_change() {
  const Seconds next = std::min(prefill_.next_change(), decode_.next_change());
  return later_.empty() ? next : std::min(next, later_.next().time);
}

void PooledFleet::later(Seconds time, std::uint32_t request, Then then, double computed) {
  later_.push(time, order_.next(), {request, then, computed});
}

// The engines' servers exchange messages before the decode pool knows of a request.
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

// Notes the results of an iteration of the prefill pool.
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
  // A request that gets a place may go to the prefill pool at once.
  decode_.start_all(now, [&](Replica& replica, std::uint32_t number) {
    if (replica.batch().placed().empty()) return;
    for (const PlacedRequest& placed : replica.take_placed()) note_placed(number, placed, now);
  });
  prefill_.start_all(now, [&](Replica& replica, std::uint32_t number) {
    if (places_first()) note_parts(replica, number, now);
  });
}

// Notes the parts of prompts that a started iteration computes. A layer's keys and values are ready
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

void PooledFleet::note_placed(std::uint32_t number, const PlacedRequest& placed, Seconds now) {
  Passage& passage = passages_.at(placed.request);
  assert(passage.to == number && !passage.is_placed);
  passage.placed = placed;
  passage.is_placed = true;
  passage.placed_at = now;
  const std::uint32_t prompt = list_.requests[placed.request].prompt_tokens;
  passage.bytes = shape_.kv_bytes(prompt - placed.known).si();
  if (places_first())
    passage.from = prefill_.deliver(placed.request, now);
  else
    send(placed.request, now);
}

void PooledFleet::is_computed(std::uint32_t index, double share, Seconds now) {
  Passage& passage = passages_.at(index);
  passage.computed = std::max(passage.computed, share);
  send(index, now);
}

// Sends the next part when the last one has arrived.
void PooledFleet::send(std::uint32_t index, Seconds now) {
  Passage& passage = passages_.at(index);
  if (passage.moves || !passage.is_placed || passage.computed <= passage.sent) return;
  passage.moves = true;
  passage.part_began = now;
  later(now + route_of(passage).latency, index, Then::sets_out);
}

void PooledFleet::set_out(std::uint32_t index, Seconds now) {
  Passage& passage = passages_.at(index);
  const KvRoute& route = route_of(passage);
  const double bytes =
      route.shared_bytes(passage.bytes, shape_.states.si()) * (passage.computed - passage.sent);
  const std::uint32_t transfer = links_.start(route.flows, bytes, now);
  if (transfer >= moving_.size()) moving_.resize(transfer + 1);
  moving_[transfer] = index;
  passage.sent = passage.computed;
  transfers_.sent += Bytes{route.sent * bytes};
  transfers_.alone += route.latency + bytes * route.alone;
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
  decode_.receive(passage.to, passage.placed, passage.prefilled, now);
  const Seconds done = passage.prefilled.done;
  const Seconds begins = std::max(done, passage.placed_at);
  const PoolTimes times{done - passage.prefilled.started, begins - done, now - begins};
  if (shape_.decode.replica.replay.keeps_times) times_[index] = times;
  ++transfers_.requests;
  transfers_.prompts += list_.requests[index].prompt_tokens;
  transfers_.tokens += list_.requests[index].prompt_tokens - passage.placed.known;
  transfers_.kv += Bytes{passage.bytes};
  transfers_.prefill.add(times.prefill);
  transfers_.place.add(times.place);
  transfers_.transfer.add(times.transfer);
}

}  // namespace orrery
