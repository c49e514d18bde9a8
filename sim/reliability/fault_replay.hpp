#pragma once

#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/reliability/walk_setup.hpp"

namespace orrery {

/// Faults that a fleet had.
struct FaultRecord {
  struct Fault {
    Micros at = 0;
    Micros repair = 0;
    int cause = 0;
    int up = 0;  ///< Units that are up when it comes.
  };
  std::vector<Fault> faults;  ///< In order. None lasts beyond the record.
  Micros length = 0;
};

/// The same faults once more: times, causes and repairs are the record's; chance says only which of
/// the units that are up each of them strikes, and when it is found. Replicate 0 begins with the
/// record, the others at any moment of it. After its end the record begins anew.
class FaultReplay final : public FailureSource {
 public:
  FaultReplay(const FaultRecord& record, std::uint64_t seed, std::uint64_t replicate);
  Failure next() override;
  std::vector<Micros> down_at_start() const override;
  Micros begins_at() const { return begins_at_; }  ///< In the record.

 private:
  const FaultRecord& record_;
  Random random_;
  Micros begins_at_ = 0;
  Micros origin_ = 0;  ///< begins_at_, less by the record's length each time that it begins anew.
  std::size_t next_ = 0;
};

Micros whole_micros(Seconds time);

/// What a profile says, as a walk takes it.
FailureLaw law_of(const Reliability& profile, int gpus);
/// Of a fleet's batches of 1, 2, ... failures, those that strike a job on `part` of it: each
/// failure strikes it by that chance.
std::vector<double> batches_of_part(const std::vector<double>& batches, double part);
FaultRecord record_of(const FaultTrace& trace);
std::vector<WalkCause> causes_of(const Reliability& profile,
                                 const std::vector<CheckpointRule>& tiers);

}  // namespace orrery
