#include "sim/pipeline/schedule_replay.hpp"

#include <algorithm>

#include "sim/core/units.hpp"

namespace orrery {
namespace {

class Player {
 public:
  Player(const ExplicitOrder& order, const PassLengths& lengths, Seconds transfer)
      : order_{order},
        places_{order},
        lengths_{lengths},
        transfer_{transfer},
        next_(order.orders.size(), 0),
        free_(order.orders.size()),
        ends_(2 * at(order.stages * order.chunks) * at(order.microbatches)) {
    played_.ranks.resize(order.orders.size());
  }

  Replay play() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int stage = 0; stage < order_.stages; ++stage)
        while (run_next(stage)) progress = true;
    }
    for (int stage = 0; stage < order_.stages; ++stage) {
      played_.end = std::max(played_.end, free_[at(stage)]);
      played_.complete = played_.complete && next_[at(stage)] == order_.orders[at(stage)].size();
    }
    return std::move(played_);
  }

 private:
  bool run_next(int stage) {
    const std::vector<Slot>& slots = order_.orders[at(stage)];
    std::size_t& next = next_[at(stage)];
    if (next == slots.size()) return false;
    const int count = slots[next].with_next ? 2 : 1;
    Seconds start = free_[at(stage)];
    Seconds length;
    for (int i = 0; i < count; ++i) {
      const Slot& slot = slots[next + at(i)];
      const auto due = due_of(stage, slot);
      if (!due) return false;
      start = std::max(start, *due);
      length += length_of(slot);
    }
    const Seconds end = start + length;
    for (int i = 0; i < count; ++i)
      if (const Slot& slot = slots[next + at(i)]; slot.pass != Pass::weight_gradient)
        end_of(stage, slot) = end;
    played_.ranks[at(stage)].push_back({next, count, start, end});
    free_[at(stage)] = end;
    next += at(count);
    return true;
  }

  // The time at which the inputs of a pass are there; empty if unknown so far.
  std::optional<Seconds> due_of(int stage, const Slot& slot) {
    const auto need = need_of(order_, places_, stage, slot);
    if (!need) return Seconds{};
    const std::optional<Seconds>& end = end_of(need->stage, need->slot);
    if (!end) return std::nullopt;
    return need->stage == stage ? *end : *end + transfer_;
  }

  Seconds length_of(const Slot& slot) const {
    if (slot.pass == Pass::forward) return lengths_.forward;
    if (slot.pass == Pass::weight_gradient) return lengths_.weights;
    return slot.inputs_only ? lengths_.inputs : lengths_.inputs + lengths_.weights;
  }

  std::optional<Seconds>& end_of(int stage, const Slot& slot) {
    const int direction = slot.pass == Pass::forward ? 0 : 1;
    const int place = (direction * order_.stages + stage) * order_.chunks + slot.chunk;
    return ends_[at(place) * at(order_.microbatches) + at(slot.microbatch)];
  }

  const ExplicitOrder& order_;
  const Places places_;
  const PassLengths lengths_;
  const Seconds transfer_;
  Replay played_;
  std::vector<std::size_t> next_;
  std::vector<Seconds> free_;
  std::vector<std::optional<Seconds>> ends_;
};

}  // namespace

std::optional<Need> need_of(const ExplicitOrder& order, const Places& places, int stage,
                            const Slot& slot) {
  if (slot.pass == Pass::weight_gradient) return std::nullopt;
  const int own = order.holds[at(stage)][at(slot.chunk)];
  const bool forward = slot.pass == Pass::forward;
  if (forward && own == 0) return std::nullopt;
  if (!forward && own == order.virtual_stages() - 1)
    return Need{stage, {Pass::forward, slot.chunk, slot.microbatch}};
  const ChunkPlace from = places(forward ? own - 1 : own + 1, order.copy_of(slot.chunk));
  return Need{from.stage, {slot.pass, from.chunk, slot.microbatch}};
}

Replay replay(const ExplicitOrder& order, const PassLengths& lengths, Seconds transfer) {
  return Player{order, lengths, transfer}.play();
}

}  // namespace orrery
