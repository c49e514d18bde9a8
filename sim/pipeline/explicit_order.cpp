#include "sim/pipeline/explicit_order.hpp"

#include <algorithm>

#include "sim/core/units.hpp"

namespace orrery {
namespace {

std::string digits(int number) { return std::to_string(number); }

}  // namespace

Places::Places(const ExplicitOrder& order)
    : virtual_stages_{order.virtual_stages()}, places_(at(order.stages * order.chunks)) {
  for (int stage = 0; stage < order.stages; ++stage)
    for (int chunk = 0; chunk < order.chunks; ++chunk)
      places_[at(order.copy_of(chunk) * virtual_stages_ + order.holds[at(stage)][at(chunk)])] = {
          stage, chunk};
}

ExplicitOrder explicit_order(const Schedule& schedule, const Pipeline& pipeline,
                             const std::vector<PassLengths>& lengths, Seconds transfer) {
  ExplicitOrder order;
  order.stages = pipeline.stages;
  order.chunks = pipeline.chunks;
  order.microbatches = pipeline.microbatches;
  order.copies = schedule.copies();
  order.recomputes_for_weights = schedule.recomputes_for_weights();
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    std::vector<int>& held = order.holds.emplace_back();
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
      held.push_back(schedule.virtual_stage(pipeline.stages, stage, chunk));
  }
  order.orders = schedule.orders(pipeline, lengths, transfer);
  return order;
}

std::string pass_name(const Slot& slot, int chunks) {
  const char* letter = slot.pass == Pass::forward           ? "F"
                       : slot.pass == Pass::weight_gradient ? "W"
                       : slot.inputs_only                   ? "I"
                                                            : "B";
  return letter + digits(slot.microbatch) + (chunks > 1 ? "." + digits(slot.chunk) : "");
}

std::optional<OrderFault> fault_of_places(const ExplicitOrder& order) {
  const auto rank = [](int stage) { return "rank " + digits(stage); };
  if (order.copies == 2) {
    for (int stage = 0; stage < order.stages; ++stage) {
      const std::vector<int> mirrored{stage, order.stages - 1 - stage};
      if (order.holds[at(stage)] != mirrored || order.stages % 2 != 0)
        return OrderFault{stage,
                          rank(stage) + " does not hold " + digits(stage) + " and its mirror",
                          "where the model is there twice, rank s of an even number p holds "
                          "s and p - 1 - s; else number the virtual stages from 0 to " +
                              digits(order.stages * order.chunks - 1)};
    }
    return std::nullopt;
  }
  std::vector<int> held_by(at(order.virtual_stages()), -1);
  for (int stage = 0; stage < order.stages; ++stage)
    for (int virtual_stage : order.holds[at(stage)]) {
      int& holder = held_by[at(virtual_stage)];
      if (holder >= 0)
        return OrderFault{
            stage,
            "virtual stage " + digits(virtual_stage) + " is on rank " + digits(holder) +
                " and on rank " + digits(stage),
            "give each of 0 to " + digits(order.virtual_stages() - 1) + " to one rank"};
      holder = stage;
    }
  const int last = order.virtual_stages() - 1;
  if (held_by.front() != 0)
    return OrderFault{held_by.front(), "virtual stage 0 is on rank " + digits(held_by.front()),
                      "number the ranks from the one that micro-batches enter at"};
  for (int v = 0; v < last; ++v) {
    const int from = held_by[at(v)];
    const int to = held_by[at(v + 1)];
    const int step = (to - from + order.stages) % order.stages;
    if (step > 1 && step < order.stages - 1)
      return OrderFault{to,
                        "virtual stage " + digits(v) + " is on rank " + digits(from) + " and " +
                            digits(v + 1) + " on rank " + digits(to),
                        "put what follows on the same rank or on a neighbour"};
  }
  if (held_by.back() != 0 && held_by.back() != order.stages - 1)
    return OrderFault{held_by.back(), "the last virtual stage is on rank " + digits(held_by.back()),
                      "end on the last rank or on the first"};
  return std::nullopt;
}

}  // namespace orrery
