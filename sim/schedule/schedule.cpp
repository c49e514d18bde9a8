#include "sim/schedule/schedule.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {

int peak_in_flight(const std::vector<Slot>& order) {
  int held = 0;
  int peak = 0;
  for (const Slot& slot : order) {
    if (slot.pass == Pass::forward) ++held;
    if (completes_gradients(slot)) --held;
    peak = std::max(peak, held);
  }
  return peak;
}

std::vector<Slot> order_of_passes(ScheduleKind kind, int stage, int stages, int chunks,
                                  int microbatches, bool paired) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return gpipe(microbatches);
    case ScheduleKind::one_f_one_b:
      return one_f_one_b(stage, stages, microbatches, paired);
    case ScheduleKind::interleaved:
      return interleaved(stage, stages, chunks, microbatches, paired);
    case ScheduleKind::zb_h1:
      return zb_h1(stage, stages, microbatches);
    case ScheduleKind::zb_h2:
      return zb_h2(stage, stages, microbatches);
    case ScheduleKind::dualpipe:
      return dualpipe(stage, stages, microbatches, paired);
    case ScheduleKind::zb_1p:
    case ScheduleKind::zb_2p:
      break;
  }
  assert(!follows_lengths(kind));
  return {};
}

std::vector<std::vector<Slot>> orders_of_passes(const Plan& plan,
                                                const std::vector<PassLengths>& lengths,
                                                Seconds transfer) {
  if (follows_lengths(plan.schedule))
    return zero_bubble(lengths, plan.microbatches, plan.most_held(), transfer);
  std::vector<std::vector<Slot>> orders;
  for (int stage = 0; stage < plan.pp; ++stage)
    orders.push_back(order_of_passes(plan.schedule, stage, plan.pp, plan.chunks(),
                                     plan.microbatches, plan.ep_overlap));
  return orders;
}

}  // namespace orrery
