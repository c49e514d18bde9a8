#include "sim/serving/scheduler.hpp"

#include "sim/core/nearest.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {

void Scheduler::end(ServingBatch& batch, std::uint32_t place) { batch.leave(place); }

const SchedulerKind& vllm_scheduler();
const SchedulerKind& sglang_scheduler();
const SchedulerKind& trtllm_scheduler();
const SchedulerKind& static_scheduler();

const std::vector<const SchedulerKind*>& schedulers() {
  static const std::vector<const SchedulerKind*> all{&vllm_scheduler(), &sglang_scheduler(),
                                                     &trtllm_scheduler(), &static_scheduler()};
  return all;
}

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const SchedulerKind* kind : schedulers()) list.push_back(kind->name);
    return list;
  }();
  return names;
}

std::string schedulers_with(bool SchedulerKind::*property) {
  std::vector<std::string> names;
  for (const SchedulerKind* kind : schedulers())
    if (kind->*property) names.push_back(kind->name);
  return alternatives(names);
}

}  // namespace orrery
