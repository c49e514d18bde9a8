#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/slow_gpus.hpp"

namespace orrery {

enum class RunTime;

/// What a job did from one moment to another.
struct RunStretch {
  Micros from = 0, to = 0;
  RunTime as{};
};

/// When a run did what, without a gap: from 0 on, one stretch after the other. Steps are productive
/// until a failure takes them back; checkpoints that they stand for are counted with them.
class RunLog {
 public:
  void add(Micros from, Micros to, RunTime as);
  /// The last steps, so much of them, turn out to be lost.
  void take_back(Micros steps);
  const std::vector<RunStretch>& stretches() const { return stretches_; }

 private:
  std::vector<RunStretch> stretches_;
};

/// Where the time of a run goes. Adds up to the run.
enum class RunTime {
  productive,        ///< Steps that last, at the speed of a whole and undisturbed cluster.
  slowed_by_writes,  ///< What such steps lost to checkpoints that were on their way.
  replicas_away,     ///< What they lost because replicas were missing.
  redone,            ///< Steps, and parts of steps, that a failure took back.
  saving,            ///< The job stands while a checkpoint is taken.
  detecting,         ///< The job stands, and nobody has found out why.
  waiting,           ///< No spare is ready.
  restarting,        ///< Start of processes, communicators, reading of the checkpoint.
  slow_gpus          ///< What steps that last lost to GPUs that are slower than others.
};
template <>
inline const std::vector<std::string> enum_words<RunTime>{
    "productive", "slowed_by_writes", "replicas_away", "redone",   "saving",
    "detecting",  "waiting",          "restarting",    "slow_gpus"};
inline constexpr std::size_t run_times = 9;

/// How the job steps with so many replicas away: how long a step takes, and what it trains on.
struct StepState {
  Micros step = 0;
  std::int64_t samples = 0;
};

/// A stretch of a run on one plan: a batch ramp has several.
struct WalkPhase {
  std::int64_t samples = 0;         ///< To train on in this phase.
  std::vector<StepState> by_away;   ///< Of 0, 1, ... replicas away; what is not here cannot run.
  std::vector<std::int64_t> every;  ///< Steps from one checkpoint to the next, by tier.
  /// By tier: by which each step is longer that begins while a write is on its way.
  std::vector<Micros> slowed;
};

/// A place where checkpoints are kept.
struct WalkTier {
  Micros stall = 0;  ///< For which steps wait.
  Micros write = 0;  ///< From then until the checkpoint is safe. One at a time.
  Micros load = 0;   ///< To read it back.
};

struct WalkCause {
  Micros detect_low = 0, detect_high = 0;
  bool replaces = false;       ///< What failed leaves until it is repaired.
  bool planned = false;        ///< Announced: the job saves and stops.
  std::size_t first_tier = 0;  ///< Copies in tiers before this one are lost with it.
};

/// So many spares that there is always one.
inline constexpr int always_one = 1 << 20;

/// What is known before chance plays. A *unit* is what leaves and is replaced as a whole: a node,
/// or a rack that shares NVLink.
struct WalkSetup {
  std::vector<WalkPhase> phases;
  std::vector<WalkTier> tiers;  ///< Those that lose the least first; the last one is never lost.
  std::vector<WalkCause> causes;
  Micros restart = 0;  ///< Of all processes.
  Micros regroup = 0;  ///< Of the communicators alone, where replicas leave or join.
  bool elastic = false;
  bool replicas_hold_all = false;  ///< A lost replica takes nothing with it that others have not.
  int replicas = 1;
  int replicas_of_unit = 1;  ///< That a unit's loss stops.
  int spares = 0;            ///< Units.
  int units = 0;             ///< Of the job, where failures are of a fleet.
  int fleet = 0;             ///< Units, where failures are of a fleet: no fewer than the job's.
  Slowness slowness;
  Micros give_up = std::numeric_limits<Micros>::max() / 4;
  bool step_by_step = false;  ///< No cycles of checkpoints at once: for tests.
  bool keeps_log = false;     ///< RunTally::log is wanted.
};

/// What became of a run.
struct RunTally {
  std::array<Micros, run_times> of{};
  std::vector<int> interruptions;  ///< By cause.
  int evictions = 0;               ///< Stops to replace slow GPUs.
  std::vector<Micros> with_away;   ///< For how long 0, 1, ... units were in repair.
  double rate_factor = 1.0;        ///< That chance gave the failures of this run.
  std::vector<RunStretch> log;     ///< When it did what, if the setup keeps a log.
  bool finished = true;

  Micros& operator[](RunTime time) { return of[static_cast<std::size_t>(time)]; }
  Micros operator[](RunTime time) const { return of[static_cast<std::size_t>(time)]; }
  Micros total() const;
  int all_interruptions() const;
  /// Shares of the run. ETTR, the effective training time ratio of Kokolis et al. (arXiv
  /// 2410.21680), counts steps that last as they were; goodput as fast as they might have been.
  double ettr() const;
  double goodput() const;
};

}  // namespace orrery
