#pragma once

#include <optional>
#include <vector>

#include "sim/reliability/failure_draws.hpp"

namespace orrery {

/// GPUs that are slower than others and do not fail, and what is done about them.
struct Slowness {
  double per_day = 0.0;  ///< How many of the job become so. 0: none does.
  RateError error;
  double least = 0.0, most = 0.0;        ///< By which kernels take longer: 0.05 is 5 %.
  Micros found_low = 0, found_high = 0;  ///< From then until it is known which one it is.
  /// Standard deviation of the kernel times of GPUs that nobody calls slow, over their median. 0:
  /// all are as fast as the step's prices have it.
  double deviation = 0.0;
  std::vector<int> gpus_of_stage;
  int units = 1;  ///< Of the job: a GPU that is slow leaves with its unit.

  /// By stage: what a step takes with one GPU that is slower by `knots[i]`, over one without.
  /// Convex in it, as a step is a longest path; between two knots in proportion, beyond the last
  /// one as before it. The first knot is 0.
  std::vector<double> knots;
  std::vector<std::vector<double>> ratios;

  /// A GPU is replaced if its stage makes the step longer by so much; 0: if the steps that are left
  /// would lose more than the job stands for it. Nothing: it stays.
  std::optional<double> evict;
  std::vector<double> repair_us;  ///< As FailureLaw has it: of what was replaced.

  bool any() const { return per_day > 0.0 || deviation > 0.0; }
  /// The step over that of a whole cluster, if a GPU of `stage` is slower by `slower`.
  double step_ratio(int stage, double slower) const;
  /// By how much a GPU of `stage` must be slower that makes the step longer by `longer`; infinite
  /// where none does.
  double slower_for(int stage, double longer) const;
};

/// Which GPUs are slow at a time in one replicate. Draws what it needs from a stream of its own:
/// the failures of a run do not depend on it.
class SlowFleet {
 public:
  SlowFleet(const Slowness& slowness, Random random);

  /// Until then nothing changes: the next GPU becomes slow, or one is found.
  Micros next_change() const;
  /// Takes what has become slow by `now`.
  void settle(Micros now);
  /// Of the step, by the GPU that makes it the longest. 1 where none does.
  double step_ratio() const;

  /// Slow GPUs that are known by `now` and worth a stop, if replacing all of them takes `stop` and
  /// undisturbed steps of `left` remain: they leave. Gives their repairs; of GPUs of one unit one.
  std::vector<Micros> evict(Micros now, Micros stop, Micros left);
  /// A unit is replaced for another reason: the slow GPUs in it are gone. `place` in [0, 1).
  void replace_unit(double place);

 private:
  struct SlowGpu {
    Micros found = 0;
    double ratio = 1.0;
    int unit = 0;
    Micros repair = 0;
    bool stays = false;  ///< It was found, and is not worth a stop.
  };

  void draw_next();

  const Slowness& slowness_;
  Random random_;
  double per_us_ = 0.0;
  double healthy_ = 1.0;  ///< The step with the slowest of those that nobody calls slow.
  std::vector<SlowGpu> slow_;
  Micros next_at_ = 0;
  SlowGpu next_;
};

/// By how many standard deviations the largest of `count` normal draws lies above their mean, at
/// `u` of its distribution; 0 where it lies below. Within 5e-4 (Abramowitz and Stegun, 26.2.23).
double largest_of_normal(int count, double u);

}  // namespace orrery
