#include "sim/pipeline/schedule_file.hpp"

namespace orrery {
namespace {

// Whether rank s holds s, p + s, 2 p + s, ..., which need not be said.
bool wraps(const SpeltOrder& order) {
  for (int stage = 0; stage < order.stages; ++stage)
    for (int chunk = 0; chunk < order.chunks; ++chunk)
      if (order.holds[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)] !=
          chunk * order.stages + stage)
        return false;
  return true;
}

}  // namespace

std::string schedule_text(const SpeltOrder& order) {
  std::string text = "orrery.schedule/1\nstages " + std::to_string(order.stages) + "\n";
  if (order.chunks > 1) text += "chunks " + std::to_string(order.chunks) + "\n";
  text += "microbatches " + std::to_string(order.microbatches) + "\n";
  if (order.recomputes_for_weights) text += "recomputes_for_weights 1\n";
  if (!wraps(order))
    for (std::size_t stage = 0; stage < order.holds.size(); ++stage) {
      text += "holds " + std::to_string(stage) + ":";
      for (int virtual_stage : order.holds[stage]) text += " " + std::to_string(virtual_stage);
      text += "\n";
    }
  for (std::size_t stage = 0; stage < order.orders.size(); ++stage) {
    text += "runs " + std::to_string(stage) + ":";
    bool together = false;
    for (const Slot& slot : order.orders[stage]) {
      text += (together ? "+" : " ") + pass_name(slot, order.chunks);
      together = slot.with_next;
    }
    text += "\n";
  }
  return text;
}

}  // namespace orrery
