#include "sim/schedule/schedule.hpp"

#include <algorithm>

namespace orrery {

int peak_in_flight(const std::vector<Slot>& order) {
  int held = 0;
  int peak = 0;
  for (const Slot& slot : order) {
    held += slot.pass == Pass::forward ? 1 : -1;
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
  }
  return {};
}

}  // namespace orrery
