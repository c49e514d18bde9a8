#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/index.hpp"
#include "sim/pipeline/replay.hpp"

namespace orrery {
namespace {

std::string rank(int stage) { return "rank " + std::to_string(stage); }

bool same_pass(const Slot& a, const Slot& b) {
  return a.pass == b.pass && a.chunk == b.chunk && a.microbatch == b.microbatch;
}

// Ranks that have got as far as they can.
class Stuck {
 public:
  Stuck(const SpeltOrder& order, const Replay& played) : order_{order}, places_{order} {
    for (const auto& passes : played.ranks)
      next_.push_back(passes.empty() ? 0 : passes.back().slot + at(passes.back().count));
  }

  OrderFault circle() const {
    // From any rank that waits, whom it waits for, until one comes again.
    std::vector<Wait> waits;
    int stage = 0;
    while (next_[at(stage)] == order_.orders[at(stage)].size()) ++stage;
    std::vector<int> seen(order_.orders.size(), -1);
    while (seen[at(stage)] < 0) {
      seen[at(stage)] = static_cast<int>(waits.size());
      waits.push_back(wait_of(stage));
      stage = waits.back().need.stage;
    }
    std::string circle;
    for (std::size_t i = at(seen[at(stage)]); i < waits.size(); ++i)
      circle += (circle.empty() ? "" : "; ") + told(waits[i]);
    return {stage, "the passes wait for each other in a circle: " + circle,
            "move one of them to another place"};
  }

 private:
  struct Wait {
    int stage;
    Slot slot;  // That waits, ...
    Need need;  // ... and what for.
  };

  bool is_done(const Need& need) const {
    const std::vector<Slot>& slots = order_.orders[at(need.stage)];
    const auto end = slots.begin() + static_cast<std::ptrdiff_t>(next_[at(need.stage)]);
    return std::any_of(slots.begin(), end,
                       [&](const Slot& slot) { return same_pass(slot, need.slot); });
  }

  Wait wait_of(int stage) const {
    const Slot* slot = &order_.orders[at(stage)][next_[at(stage)]];
    auto need = need_of(order_, places_, stage, *slot);
    if (!need || is_done(*need)) {  // Then the pass that it runs together with waits.
      assert(slot->with_next);
      need = need_of(order_, places_, stage, *++slot);
    }
    assert(need);
    return {stage, *slot, *need};
  }

  std::string told(const Wait& wait) const {
    const auto named = [&](const Slot& slot) { return pass_name(slot, order_.chunks); };
    const std::vector<Slot>& others = order_.orders[at(wait.need.stage)];
    const Slot& needed = *std::find_if(others.begin(), others.end(), [&](const Slot& slot) {
      return same_pass(slot, wait.need.slot);
    });
    const Slot& before = others[next_[at(wait.need.stage)]];
    std::string text = rank(wait.stage) + " waits before " + named(wait.slot) + " for " +
                       named(needed) + " of " + rank(wait.need.stage);
    if (!same_pass(before, needed)) text += ", which comes after " + named(before) + " there";
    return text;
  }

  const SpeltOrder& order_;
  const Places places_;
  std::vector<std::size_t> next_;  // What each rank waits to run.
};

// What a rank sends another, in the sender's order and in the receiver's.
struct Channel {
  std::vector<Slot> sent, taken;  // As the receiver names what it needs them for.
};

// The pass of another virtual stage that needs what a pass puts out.
std::optional<Need> taker_of(const SpeltOrder& order, const Places& places, int stage,
                             const Slot& slot) {
  const bool forward = slot.pass == Pass::forward;
  const int taker = order.holds[at(stage)][at(slot.chunk)] + (forward ? 1 : -1);
  if (slot.pass == Pass::weight_gradient || taker < 0 || taker == order.virtual_stages())
    return std::nullopt;
  const ChunkPlace to = places(taker, order.copy_of(slot.chunk));
  return Need{to.stage, {slot.pass, to.chunk, slot.microbatch}};
}

std::optional<OrderFault> fault_of_channels(const SpeltOrder& order, const Places& places) {
  // By sender, receiver and direction.
  std::map<std::tuple<int, int, Pass>, Channel> channels;
  for (int stage = 0; stage < order.stages; ++stage)
    for (const Slot& slot : order.orders[at(stage)]) {
      if (const auto need = need_of(order, places, stage, slot); need && need->stage != stage)
        channels[{need->stage, stage, slot.pass}].taken.push_back(slot);
      if (const auto taker = taker_of(order, places, stage, slot); taker && taker->stage != stage)
        channels[{stage, taker->stage, slot.pass}].sent.push_back(taker->slot);
    }
  for (const auto& [key, channel] : channels) {
    const auto [sent, taken] = std::mismatch(channel.sent.begin(), channel.sent.end(),
                                             channel.taken.begin(), channel.taken.end(), same_pass);
    if (sent == channel.sent.end()) continue;
    const auto [from, to, pass] = key;
    return OrderFault{to,
                      rank(to) + " runs " + pass_name(*taken, order.chunks) + " before " +
                          pass_name(*sent, order.chunks) + ", but " + rank(from) + " sends what " +
                          pass_name(*sent, order.chunks) + " needs first",
                      "run them in the same order on both: what a rank sends another keeps its "
                      "order"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<OrderFault> fault_of_waits(const SpeltOrder& order) {
  const Replay played = replay(order, {}, {});
  if (!played.complete) return Stuck{order, played}.circle();
  return fault_of_channels(order, Places{order});
}

}  // namespace orrery
