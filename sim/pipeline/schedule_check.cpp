#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/units.hpp"
#include "sim/pipeline/explicit_order.hpp"
#include "sim/pipeline/schedule_replay.hpp"

namespace orrery {
namespace {

// The passes of a micro-batch through a chunk so far.
struct Seen {
  bool forward = false, backward = false, inputs = false, weights = false;
  bool complete() const { return forward && (backward || (inputs && weights)); }
};

// Checks the order of the passes of one rank.
class PassOrder {
 public:
  PassOrder(const ExplicitOrder& order, int stage)
      : order_{order},
        stage_{stage},
        seen_(at(order.chunks), std::vector<Seen>(at(order.microbatches))) {}

  std::optional<OrderFault> fault() {
    for (const Slot& slot : slots())
      if (const std::string problem = see(slot); !problem.empty())
        return fault(problem, "run each once: F, then B, or I and later W");
    for (int chunk = 0; chunk < order_.chunks; ++chunk)
      for (int m = 0; m < order_.microbatches; ++m) {
        const Seen& seen = seen_[at(chunk)][at(m)];
        if (!order_.passes(m, chunk) || seen.complete()) continue;
        const auto named = [&](Pass pass, bool inputs_only = false) {
          return pass_name({pass, chunk, m, false, inputs_only}, order_.chunks);
        };
        if (!seen.forward) return fault("never runs " + named(Pass::forward), "add it");
        if (seen.inputs)
          return fault(
              "runs " + named(Pass::backward, true) + " but never " + named(Pass::weight_gradient),
              "add it");
        return fault("never runs " + named(Pass::backward), "add it, or I and W");
      }
    return fault_of_pairs();
  }

 private:
  const std::vector<Slot>& slots() const { return order_.orders[at(stage_)]; }
  std::string name(const Slot& slot) const { return pass_name(slot, order_.chunks); }
  OrderFault fault(const std::string& problem, const std::string& remedy) const {
    return {stage_, "rank " + std::to_string(stage_) + " " + problem, remedy};
  }

  // The fault of a pass after those before it; empty if there is none.
  std::string see(const Slot& slot) {
    if (!order_.passes(slot.microbatch, slot.chunk))
      return "runs " + name(slot) +
             ", but the first half of the micro-batches goes through chunk " +
             "0 and the others through chunk 1";
    Seen& seen = seen_[at(slot.chunk)][at(slot.microbatch)];
    const auto again = [&](bool& before) -> std::string {
      return std::exchange(before, true) ? "runs " + name(slot) + " twice" : "";
    };
    if (slot.pass == Pass::forward) return again(seen.forward);
    if (!seen.forward) return "runs " + name(slot) + " before its forward pass";
    if (slot.pass == Pass::weight_gradient) {
      if (!seen.inputs) return "runs " + name(slot) + " without its I before";
      return again(seen.weights);
    }
    if (slot.inputs_only ? seen.backward : seen.inputs)
      return "runs " + name(slot) + " after " +
             name({Pass::backward, slot.chunk, slot.microbatch, false, !slot.inputs_only});
    return again(slot.inputs_only ? seen.inputs : seen.backward);
  }

  // Weights are gathered for the first forward pass of a chunk and its gradients reduced after the
  // last backward pass, so these cannot be paired.
  std::optional<OrderFault> fault_of_pairs() const {
    std::vector<bool> opened(at(order_.chunks), false);
    std::vector<int> left(at(order_.chunks), order_.microbatches / order_.copies);
    for (std::size_t i = 0; i < slots().size(); ++i) {
      const Slot& slot = slots()[i];
      const bool opens = slot.pass == Pass::forward && !opened[at(slot.chunk)];
      if (opens) opened[at(slot.chunk)] = true;
      if (completes_gradients(slot)) --left[at(slot.chunk)];
      if (!slot.with_next) continue;
      const Slot& next = slots()[i + 1];
      const auto pair = [&] { return "runs " + name(slot) + "+" + name(next); };
      if (slot.pass != Pass::forward || next.pass != Pass::backward || next.inputs_only)
        return fault(pair(), "only a forward and a whole backward pass run together, as F1+B0");
      if (opens || left[at(next.chunk)] == 1)
        return fault(pair() + ", the " + (opens ? "first forward" : "last backward") +
                         " pass of a chunk, with another one",
                     "run it by itself");
    }
    return std::nullopt;
  }

  const ExplicitOrder& order_;
  const int stage_;
  std::vector<std::vector<Seen>> seen_;  // Indexed by chunk, then micro-batch.
};

}  // namespace

std::optional<OrderFault> fault_of_passes(const ExplicitOrder& order) {
  for (int stage = 0; stage < order.stages; ++stage)
    if (const auto fault = PassOrder{order, stage}.fault()) return fault;
  return std::nullopt;
}

namespace {

std::string rank(int stage) { return "rank " + std::to_string(stage); }

bool same_pass(const Slot& a, const Slot& b) {
  return a.pass == b.pass && a.chunk == b.chunk && a.microbatch == b.microbatch;
}

// Ranks that wait for each other after a replay.
class Deadlock {
 public:
  Deadlock(const ExplicitOrder& order, const Replay& played) : order_{order}, places_{order} {
    for (const auto& passes : played.ranks)
      next_.push_back(passes.empty() ? 0 : passes.back().slot + at(passes.back().count));
  }

  OrderFault circle() const {
    // The waits are followed from any waiting rank until a rank comes again.
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
      circle += (circle.empty() ? "" : "; ") + wait_text(waits[i]);
    return {stage, "the passes wait for each other in a circle: " + circle,
            "move one of them to another place"};
  }

 private:
  struct Wait {
    int stage;
    Slot slot;  // The waiting slot.
    Need need;  // The pass that it waits for.
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
    if (!need || is_done(*need)) {  // The second pass of a pair waits.
      assert(slot->with_next);
      need = need_of(order_, places_, stage, *++slot);
    }
    assert(need);
    return {stage, *slot, *need};
  }

  std::string wait_text(const Wait& wait) const {
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

  const ExplicitOrder& order_;
  const Places places_;
  std::vector<std::size_t> next_;  // The next slot of each rank.
};

// Transfers from one rank to another, in the sender's order and in the receiver's.
struct Channel {
  std::vector<Slot> sent, taken;  // Both as the receiver's passes.
};

// The pass of another virtual stage that needs the output of a pass.
std::optional<Need> taker_of(const ExplicitOrder& order, const Places& places, int stage,
                             const Slot& slot) {
  const bool forward = slot.pass == Pass::forward;
  const int taker = order.holds[at(stage)][at(slot.chunk)] + (forward ? 1 : -1);
  if (slot.pass == Pass::weight_gradient || taker < 0 || taker == order.virtual_stages())
    return std::nullopt;
  const ChunkPlace to = places(taker, order.copy_of(slot.chunk));
  return Need{to.stage, {slot.pass, to.chunk, slot.microbatch}};
}

std::optional<OrderFault> fault_of_channels(const ExplicitOrder& order, const Places& places) {
  // Keys are sender, receiver and direction.
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

std::optional<OrderFault> fault_of_waits(const ExplicitOrder& order) {
  const Replay played = replay(order, {}, {});
  if (!played.complete) return Deadlock{order, played}.circle();
  return fault_of_channels(order, Places{order});
}

}  // namespace orrery
