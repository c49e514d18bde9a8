#include <utility>

#include "sim/core/index.hpp"
#include "sim/pipeline/spelt_order.hpp"

namespace orrery {
namespace {

// What has been seen of a micro-batch in a chunk.
struct Seen {
  bool forward = false, backward = false, inputs = false, weights = false;
  bool complete() const { return forward && (backward || (inputs && weights)); }
};

// The passes of one rank.
class Rank {
 public:
  Rank(const SpeltOrder& order, int stage)
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

  // What is wrong with a pass after those before it.
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
  // last backward pass: these run by themselves.
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

  const SpeltOrder& order_;
  const int stage_;
  std::vector<std::vector<Seen>> seen_;  // By chunk, then micro-batch.
};

}  // namespace

std::optional<OrderFault> fault_of_passes(const SpeltOrder& order) {
  for (int stage = 0; stage < order.stages; ++stage)
    if (const auto fault = Rank{order, stage}.fault()) return fault;
  return std::nullopt;
}

}  // namespace orrery
