#include "sim/reliability/run_law.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {

std::vector<double> batches_of_part(const std::vector<double>& batches, double part) {
  std::vector<double> smaller(batches.size());
  // Of a batch of that size, the chance that 0, 1, ... of it strike; one more failure strikes or
  // does not. Products and sums alone: the same bits on every machine.
  std::vector<double> struck{1.0};
  for (const double count : batches) {
    struck.push_back(0.0);
    for (std::size_t k = struck.size() - 1; k > 0; --k)
      struck[k] = struck[k] * (1.0 - part) + struck[k - 1] * part;
    struck[0] *= 1.0 - part;
    for (std::size_t k = 1; k < struck.size(); ++k) smaller[k - 1] += count * struck[k];
  }
  return smaller;
}

Micros whole_micros(Seconds time) { return std::llround(time.si() * 1e6); }

FailureLaw law_of(const Reliability& profile, int gpus) {
  FailureLaw law;
  for (const FailureCause& cause : profile.causes) law.per_day.push_back(cause.per_day(gpus));
  law.error = {profile.events(), profile.spread};
  law.month_deviation = profile.month_deviation;
  law.month = whole_micros(profile.month);
  if (!profile.batches.empty())
    law.batches = batches_of_part(profile.batches,
                                  std::min(1.0, static_cast<double>(gpus) / profile.batch_gpus));
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
