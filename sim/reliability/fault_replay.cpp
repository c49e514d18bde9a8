#include "sim/reliability/fault_replay.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

// Of streams that must not repeat those of a law.
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

}  // namespace orrery
