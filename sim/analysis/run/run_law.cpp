#include "sim/analysis/run/run_law.hpp"

#include <cmath>

namespace orrery {

Micros whole_micros(Seconds time) { return std::llround(time.si() * 1e6); }

FailureLaw law_of(const Reliability& profile, int gpus) {
  FailureLaw law;
  for (const FailureCause& cause : profile.causes) law.per_day.push_back(cause.per_day(gpus));
  law.error = {profile.events(), profile.spread};
  law.month_deviation = profile.month_deviation;
  law.month = whole_micros(profile.month);
  for (const Seconds quantile : profile.repair) law.repair_us.push_back(quantile.si() * 1e6);
  return law;
}

FaultRecord record_of(const FaultTrace& trace) {
  FaultRecord record;
  record.length = whole_micros(trace.length);
  for (const ServerFault& fault : trace.faults) {
    const Micros at = whole_micros(fault.start);
    record.faults.push_back({at, whole_micros(fault.end) - at, static_cast<int>(fault.cause),
                             trace.servers - fault.down_before});
  }
  return record;
}

std::vector<WalkCause> causes_of(const Reliability& profile,
                                 const std::vector<CheckpointRule>& tiers) {
  std::vector<WalkCause> causes;
  for (const FailureCause& cause : profile.causes) {
    const FailureGroup& group = profile.groups[cause.group];
    std::size_t first = 0;
    while (first + 1 < tiers.size() && tiers[first].tier < group.survives) ++first;
    causes.push_back({whole_micros(group.detection.low), whole_micros(group.detection.high),
                      group.replaces, group.planned, first});
  }
  return causes;
}

}  // namespace orrery
