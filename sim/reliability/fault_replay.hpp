#pragma once

#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/replicate_setup.hpp"
#include "sim/reliability/run_policy.hpp"

namespace orrery {

/// Faults that a fleet had.
struct FaultRecord {
  struct Fault {
    Micros at = 0;
    Micros repair = 0;
    int cause = 0;
    int up = 0;  ///< Units that are up when it comes.
  };
  std::vector<Fault> faults;  ///< Sorted by time. None lasts beyond the record.
  Micros length = 0;
};

/// Replays recorded faults: times, causes and repairs are the record's; which of the units that are
/// up is struck, and when it is found, is random. Replicate 0 begins with the record, the others at
/// a random moment of it. The record repeats after its end.
class FaultReplay final : public FailureSource {
 public:
  FaultReplay(const FaultRecord& record, std::uint64_t seed, std::uint64_t replicate);
  Failure next() override;
  std::vector<Micros> down_at_start() const override;
  Micros begins_at() const { return begins_at_; }  ///< Time within the record.

 private:
  const FaultRecord& record_;
  Random random_;
  Micros begins_at_ = 0;
  Micros origin_ = 0;  ///< begins_at_ less the record's length for each repetition.
  std::size_t next_ = 0;
};

Micros whole_micros(Seconds time);

/// The profile's failures of a job of `gpus` GPUs.
FailureDistribution distribution_of(const Reliability& profile, int gpus);
/// Batches of 1, 2, ... failures that strike a job on `part` of a fleet, from the fleet's: each
/// failure strikes it by that chance.
std::vector<double> batches_of_part(const std::vector<double>& batches, double part);
/// ReplicateSetup::refill of the profile.
Micros refill_of(const Reliability& profile);
FaultRecord record_of(const FaultTrace& trace);
std::vector<ReplicateCause> causes_of(const Reliability& profile,
                                      const std::vector<CheckpointRule>& tiers);

}  // namespace orrery
