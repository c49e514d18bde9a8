#include "sim/reliability/fault_replay.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// Random streams that must not repeat those of FailureDraws.
constexpr std::uint64_t of_origins = 4, of_places = 5;

Micros beginning(const FaultRecord& record, std::uint64_t seed, std::uint64_t replicate) {
  if (replicate == 0) return 0;
  Random random{seed, replicate, of_origins};
  return static_cast<Micros>(random.below(static_cast<std::uint64_t>(record.length)));
}

}  // namespace

FaultReplay::FaultReplay(const FaultRecord& record, std::uint64_t seed, std::uint64_t replicate)
    : FailureSource{seed, replicate},
      record_{record},
      random_{seed, replicate, of_places},
      begins_at_{beginning(record, seed, replicate)},
      origin_{begins_at_} {
  assert(record.length > 0 && !record.faults.empty());
  next_ = static_cast<std::size_t>(
      std::lower_bound(record.faults.begin(), record.faults.end(), origin_,
                       [](const auto& fault, Micros at) { return fault.at < at; }) -
      record.faults.begin());
}

std::vector<Micros> FaultReplay::down_at_start() const {
  std::vector<Micros> until;
  for (const FaultRecord::Fault& fault : record_.faults)
    if (fault.at < begins_at_ && fault.at + fault.repair > begins_at_)
      until.push_back(fault.at + fault.repair - begins_at_);
  return until;
}

Failure FaultReplay::next() {
  if (next_ == record_.faults.size()) next_ = 0, origin_ -= record_.length;
  const FaultRecord::Fault& fault = record_.faults[next_++];
  return {fault.at - origin_, fault.cause, random_.unit(), random_.unit(), fault.repair, fault.up};
}

std::vector<double> batches_of_part(const std::vector<double>& batches, double part) {
  std::vector<double> smaller(batches.size());
  // Chances that 0, 1, ... failures of a batch strike; each further failure strikes or does not.
  // Only products and sums are used: the same bits on every machine.
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

FailureDistribution distribution_of(const Reliability& profile, int gpus) {
  FailureDistribution distribution;
  for (const FailureCause& cause : profile.causes)
    distribution.per_day.push_back(cause.per_day(gpus));
  distribution.error = {profile.events(), profile.spread};
  distribution.month_deviation = profile.month_deviation;
  distribution.month = whole_micros(profile.month);
  if (!profile.batches.empty())
    distribution.batches = batches_of_part(
        profile.batches, std::min(1.0, static_cast<double>(gpus) / profile.batch_gpus));
  for (const Seconds quantile : profile.repair)
    distribution.repair_us.push_back(quantile.si() * 1e6);
  return distribution;
}

Micros refill_of(const Reliability& profile) {
  return profile.refill ? whole_micros(*profile.refill) : ReplicateSetup{}.refill;
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

std::vector<ReplicateCause> causes_of(const Reliability& profile,
                                      const std::vector<CheckpointRule>& tiers) {
  std::vector<ReplicateCause> causes;
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
