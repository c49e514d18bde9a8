#pragma once

#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// The job between two interruptions: it steps, takes checkpoints, and their writes become safe.
/// Nothing here is random.
class SteppingJob {
 public:
  SteppingJob(const ReplicateSetup& setup, RunTotals& totals);

  /// Goes on from `now` until `limit`, until the first step ends at `pause` or later, or until
  /// everything is trained and safe; returns that time. A step that `limit` cuts is lost.
  Micros run(Micros now, Micros limit, Micros pause);
  bool finished() const { return finished_; }

  /// Falls back to the newest durable checkpoint in tiers from `first_tier` on; those before it
  /// lose theirs. Returns the time to read it.
  Micros fall_back(Micros now, std::size_t first_tier);
  /// Only the step under way is lost.
  void keep();
  /// Takes a checkpoint in the last tier, and waits until it is safe.
  Micros save(Micros now, Micros limit);
  void set_away(int groups) { away_ = static_cast<std::size_t>(groups); }
  /// Factor of the step by slow GPUs, over a cluster without them.
  void set_slow(double ratio) { slow_ = ratio; }
  /// Time of the remaining steps on the whole and undisturbed cluster.
  Micros left() const;

 private:
  /// Progress of the job, and the time of the steps that led there.
  struct Progress {
    std::int64_t samples = 0;
    std::size_t phase = 0;
    Micros stepped = 0;
    Micros slowed = 0;
    Micros shrunk = 0;
    Micros lagged = 0;
  };
  struct Tier {
    bool holds = false;
    Progress safe;
    bool writes = false;
    Progress on_its_way;
    Micros write_ends = 0;
    std::int64_t since = 0;  ///< Steps since its last checkpoint.
  };

  const ReplicatePhase& phase() const { return setup_.phases[at_.phase]; }
  StepState state() const {
    const StepState whole = phase().by_away[away_];
    return {whole.step + step_lag(), whole.samples};
  }
  Micros step_lag() const {
    return static_cast<Micros>((slow_ - 1.0) * static_cast<double>(phase().by_away[away_].step));
  }
  std::int64_t steps_to_phase_end() const;
  /// Extra time of the present replicas for a step's samples, over that of all replicas.
  Micros step_shrunk() const;
  void settle(Micros now);
  bool spend(Micros& now, Micros until, Micros limit, RunTime as);
  void advance(std::int64_t steps, Micros slowed);
  bool step(Micros& now, Micros limit, Micros pause);
  bool take_checkpoints(Micros& now, Micros limit, const std::vector<bool>& due);
  void skip_cycles(Micros& now, Micros limit);
  bool finish(Micros& now, Micros limit);

  const ReplicateSetup& setup_;
  RunTotals& totals_;
  std::vector<std::int64_t> phase_ends_;  ///< Cumulative samples.
  Progress at_;
  std::vector<Tier> tiers_;
  std::size_t away_ = 0;
  double slow_ = 1.0;
  bool finished_ = false;
};

}  // namespace orrery
