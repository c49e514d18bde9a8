#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/slow_gpus.hpp"

namespace orrery {

enum class RunTime;

/// An interval of a run with one activity.
struct RunStretch {
  Micros from = 0, to = 0;
  RunTime as{};
};

/// The contiguous timeline of a run from 0. Steps are productive until a failure takes them back;
/// the stalls of their checkpoints are counted with them.
class RunLog {
 public:
  void add(Micros from, Micros to, RunTime as);
  /// Marks the last productive time `steps` as lost.
  void take_back(Micros steps);
  const std::vector<RunStretch>& stretches() const { return stretches_; }

 private:
  std::vector<RunStretch> stretches_;
};

/// Classes of a run's time. They add up to the run.
enum class RunTime {
  productive,        ///< Retained steps, at the speed of a whole and undisturbed cluster.
  slowed_by_writes,  ///< Time that such steps lost to concurrent writes.
  replicas_away,     ///< Time that they lost to missing replicas.
  redone,            ///< Steps, and parts of steps, that a failure took back.
  saving,            ///< The job stalls while a checkpoint is taken.
  detecting,         ///< The job is stopped by a failure that is not found yet.
  waiting,           ///< No spare is ready.
  restarting,        ///< Start of processes, communicators, reading of the checkpoint.
  slow_gpus          ///< Time that retained steps lost to slow GPUs.
};
template <>
inline const std::vector<std::string> enum_words<RunTime>{
    "productive", "slowed_by_writes", "replicas_away", "redone",   "saving",
    "detecting",  "waiting",          "restarting",    "slow_gpus"};
inline constexpr std::size_t run_times = 9;

/// ETTR, the effective training time ratio of Kokolis et al. (arXiv 2410.21680), from the classes
/// of a run's time: it counts retained steps as fast as they were.
template <class Time>
double ettr_of(const std::array<Time, run_times>& of) {
  Time steps{}, all{};
  for (std::size_t i = 0; i < run_times; ++i) {
    all += of[i];
    const auto time = static_cast<RunTime>(i);
    if (time == RunTime::productive || time == RunTime::slowed_by_writes ||
        time == RunTime::replicas_away || time == RunTime::slow_gpus)
      steps += of[i];
  }
  return static_cast<double>(steps) / static_cast<double>(all);
}

/// A step with some replica groups away: its time and its sequences.
struct StepState {
  Micros step = 0;
  std::int64_t samples = 0;
};

/// A stretch of a run on one plan: a batch ramp has several.
struct ReplicatePhase {
  std::int64_t samples = 0;         ///< Samples to train on in this phase.
  std::vector<StepState> by_away;   ///< States with 0, 1, ... groups away; more cannot run.
  std::vector<std::int64_t> every;  ///< Steps from one checkpoint to the next, by tier.
  /// Extra time of a step that begins during a write, by tier.
  std::vector<Micros> slowed;
};

/// A place where checkpoints are kept.
struct ReplicateTier {
  Micros stall = 0;  ///< Time that steps wait.
  Micros write = 0;  ///< Time from the stall until the checkpoint is durable. One at a time.
  Micros load = 0;   ///< Time to read it back.
};

struct ReplicateCause {
  Micros detect_low = 0, detect_high = 0;
  bool replaces = false;       ///< The failed unit leaves until it is repaired.
  bool planned = false;        ///< Announced: the job saves and stops.
  std::size_t first_tier = 0;  ///< Copies in tiers before this one are lost.
};

/// Unlimited spares.
inline constexpr int unlimited_spares = 1 << 20;

/// The racks of a job whose units share NVLink. An *island* is the units that must be of one rack,
/// as their ranks would not fit otherwise; an island of one unit takes any unit's place.
struct Racks {
  int count = 1;                ///< That the job occupies.
  int size = unlimited_spares;  ///< Units in each.
  int island = 1;               ///< Units.
  int surplus = 0;              ///< Islands that these racks have room for besides the job's.

  /// Islands for which a rack has no room while some of its units are down.
  int islands_lost(int down) const {
    return size / island - (size - std::min(down, size)) / island;
  }
  /// Islands for which there is room besides the job's, with spare units in further racks.
  int spare_islands(int spares) const {
    if (spares >= unlimited_spares) return unlimited_spares;
    return surplus + spares / size * (size / island) + spares % size / island;
  }
  /// The least spare units that make up for lost islands.
  int spares_for(int lost) const {
    const int more = lost - surplus - 1, of_rack = size / island;
    return more < 0 ? 0 : more / of_rack * size + (more % of_rack + 1) * island;
  }
};

/// The deterministic inputs of a replicate. A *unit* fails, is repaired and is replaced as a whole:
/// a node. The replicas of a job leave and join it in *groups*; units of a group that is away are
/// at hand for the others.
struct ReplicateSetup {
  std::vector<ReplicatePhase> phases;
  std::vector<ReplicateTier> tiers;  ///< The least durable first; the last one is never lost.
  std::vector<ReplicateCause> causes;
  Micros restart = 0;  ///< Time to start all processes.
  Micros regroup = 0;  ///< Time to rebuild the communicators where groups leave or join.
  bool elastic = false;
  bool replicas_hold_all = false;  ///< A lost replica holds nothing that others lack.
  int units = 1;                   ///< Of the job.
  int groups = 1;                  ///< Of its replicas, alike.
  Racks racks;
  int spares = 0;  ///< Units.
  /// A unit that is in repair for so long is replaced by a fresh one.
  Micros refill = std::numeric_limits<Micros>::max();
  int fleet = 0;  ///< Units of the fleet, at least the job's; 0: failures are of the job.
  Slowness slowness;
  Micros give_up = std::numeric_limits<Micros>::max() / 4;
  bool step_by_step = false;  ///< Skips no identical cycles of checkpoints: for tests.
  bool keeps_log = false;     ///< RunTotals::log is wanted.

  /// Groups that cannot run where so many units are missing.
  int groups_away(int missing) const;
};

/// The result of one replicate.
struct RunTotals {
  std::array<Micros, run_times> of{};
  std::vector<int> interruptions;  ///< Count of each cause.
  int evictions = 0;               ///< Stops to replace slow GPUs.
  /// Times during which 0, 1, ... units were away: as many spares as make up for those in repair.
  std::vector<Micros> with_away;
  double rate_factor = 1.0;     ///< Random factor of the failure rate.
  std::vector<RunStretch> log;  ///< Timeline, if the setup keeps a log.
  bool finished = true;

  Micros& operator[](RunTime time) { return of[static_cast<std::size_t>(time)]; }
  Micros operator[](RunTime time) const { return of[static_cast<std::size_t>(time)]; }
  Micros total() const;
  int all_interruptions() const;
  /// Shares of the run: retained steps as fast as they were, and as fast as they might have been.
  double ettr() const { return ettr_of(of); }
  double goodput() const;
};

}  // namespace orrery
