#include "sim/work/replay/fleet.hpp"

#include <utility>

namespace orrery {

Fleet::Fleet(const RequestList& list, const ReplicaShape& shape, std::uint32_t replicas,
             StepTimes& times, RequestRouter router)
    : list_{list},
      router_{std::move(router)},
      versions_(replicas),
      busy_(replicas),
      starts_(replicas) {
  // Those that share a pipeline are numbered one behind the other.
  const auto stages = static_cast<std::uint32_t>(shape.stages);
  for (std::uint32_t r = 0; r < replicas; ++r)
    replicas_.emplace_back(list, shape, times, stages > 1 ? &busy_[r / stages] : nullptr);
}

Seconds Fleet::next_change() {
  while (!changes_.empty() && changes_.top().version != versions_[changes_.top().replica])
    changes_.pop();
  return changes_.empty() ? Replica::never : changes_.top().time;
}

void Fleet::expect(std::uint32_t replica) {
  ++versions_[replica];
  if (!replicas_[replica].is_idle())
    changes_.push({replicas_[replica].change_at(), replica, versions_[replica]});
}

void Fleet::will_start(std::uint32_t replica) {
  if (starts_[replica]) return;
  starts_[replica] = true;
  to_start_.push_back(replica);
}

void Fleet::start_all() {
  for (const std::uint32_t replica : to_start_) {
    replicas_[replica].start();
    expect(replica);
    starts_[replica] = false;
  }
  to_start_.clear();
}

void Fleet::deliver(std::uint32_t index, Seconds now) {
  const std::uint32_t r = router_.choose(list_.requests[index], index, replicas_);
  Replica& replica = replicas_[r];
  const bool was_idle = replica.is_idle();
  const Seconds before = replica.change_at();
  replica.arrive(index, now);
  if (was_idle)
    will_start(r);
  else if (!starts_[r] && replica.change_at() != before)
    expect(r);
}

}  // namespace orrery
