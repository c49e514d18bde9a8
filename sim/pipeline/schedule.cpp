#include "sim/pipeline/schedule.hpp"

#include <algorithm>

namespace orrery {

Orders repeated(Orders orders, int once, int all) {
  for (std::vector<Slot>& order : orders) {
    const std::size_t passes = order.size();
    order.reserve(passes * static_cast<std::size_t>(all / once));
    for (int first = once; first < all; first += once)
      for (std::size_t i = 0; i < passes; ++i) {
        Slot slot = order[i];
        slot.microbatch += first;
        order.push_back(slot);
      }
  }
  return orders;
}

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

Pairing Schedule::pairing(int, int) const { return Pairing::none; }

int Schedule::virtual_stage(int stages, int stage, int chunk) const {
  return chunk * stages + stage;
}

ChunkPlace Schedule::place(int stages, int virtual_stage, int) const {
  return {virtual_stage % stages, virtual_stage / stages};
}

std::optional<Recurrence> Schedule::recurrence(int, int) const { return std::nullopt; }

int Schedule::default_vpp(int) const { return 1; }

std::optional<ScheduleRefusal> Schedule::refuses(const ScheduleUse& use) const {
  if (use.vpp == 1) return std::nullopt;
  return ScheduleRefusal{
      true, "schedule",
      "schedule=" + name() + " has one chunk a stage, but vpp=" + std::to_string(use.vpp),
      "use schedule=" + default_schedule(use.vpp).name() + ", or vpp=1"};
}

const std::vector<const Schedule*>& built_in_schedules() {
  static const std::vector<const Schedule*> all{&gpipe(),      &one_f_one_b(), &interleaved(),
                                                &looped_bfs(), &zb_h1(),       &zb_h2(),
                                                &zb_1p(),      &zb_2p(),       &dualpipe()};
  return all;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Schedule* schedule : built_in_schedules()) list.push_back(schedule->name());
    return list;
  }();
  return names;
}

const Schedule* find_schedule(const std::string& name) {
  const auto& all = built_in_schedules();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const Schedule* schedule) { return schedule->name() == name; });
  return found == all.end() ? nullptr : *found;
}

const Schedule& default_schedule(int vpp) { return vpp > 1 ? interleaved() : one_f_one_b(); }

std::vector<std::string> schedules_of_one_chunk() {
  constexpr int some_stages = 2;
  std::vector<std::string> names{default_schedule(1).name()};
  for (const Schedule* schedule : built_in_schedules())
    if (schedule->default_vpp(some_stages) == 1 && schedule->name() != names.front())
      names.push_back(schedule->name());
  return names;
}

}  // namespace orrery
