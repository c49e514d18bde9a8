#pragma once

#include <optional>
#include <vector>

#include "sim/reliability/failure_draws.hpp"

namespace orrery {

/// The model of GPUs that are slower than others and do not fail, and of their replacement.
struct Slowness {
  double per_day = 0.0;  ///< GPUs of the job that become slow. 0: none does.
  RateError error;
  double least = 0.0, most = 0.0;        ///< Slowdown of kernels: 0.05 is 5 %.
  Micros found_low = 0, found_high = 0;  ///< Time to detection.
  /// Standard deviation of the kernel times of healthy GPUs over their median. 0: all are as fast
  /// as the step's times assume.
  double deviation = 0.0;
  std::vector<int> gpus_of_stage;
  int units = 1;  ///< Units of the job: a slow GPU leaves with its unit.

  /// Steps with one GPU of a stage slower by `knots[i]`, over one without, by stage. Convex in it,
  /// as a step is a longest path; linear between two knots, extrapolated beyond the last. The first
  /// knot is 0.
  std::vector<double> knots;
  std::vector<std::vector<double>> ratios;

  /// A GPU is replaced if its stage makes the step longer by so much; 0: if the remaining steps
  /// would lose more than the replacement takes. Unset: it stays.
  std::optional<double> evict;
  std::vector<double>
      repair_us;  ///< Quantiles of repairs of replaced units, as in FailureDistribution.

  bool any() const { return per_day > 0.0 || deviation > 0.0; }
  /// The step over that of a whole cluster, if a GPU of `stage` is slower by `slower`.
  double step_ratio(int stage, double slower) const;
  /// The slowdown of a GPU of `stage` that makes the step longer by `longer`; infinite if none
  /// does.
  double slower_for(int stage, double longer) const;
};

/// The slow GPUs over time in one replicate. It samples from a stream of its own: the failures of a
/// run do not depend on it.
class SlowFleet {
 public:
  SlowFleet(const Slowness& slowness, Random random);

  /// The next time at which a GPU becomes slow, or one is found.
  Micros next_change() const;
  /// Advances to `now`.
  void settle(Micros now);
  /// Ratio of the step, set by the GPU that makes it the longest; 1 without one.
  double step_ratio() const;

  /// Removes slow GPUs that are known by `now` and worth a stop, if replacing all of them takes
  /// `stop` and undisturbed steps of `left` remain. Returns their units.
  struct Evicted {
    Micros repair = 0;
    double place = 0.0;  ///< As that of replace_unit().
  };
  std::vector<Evicted> evict(Micros now, Micros stop, Micros left);
  /// A unit is replaced for another reason, with the slow GPUs in it. `place` in [0, 1).
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
  double healthy_ = 1.0;  ///< Step ratio of the slowest healthy GPU.
  std::vector<SlowGpu> slow_;
  Micros next_at_ = 0;
  SlowGpu next_;
};

/// Standard deviations by which the largest of `count` normal samples lies above their mean, at
/// quantile `u`; 0 below it. Accurate to 5e-4 (Abramowitz and Stegun, 26.2.23).
double largest_of_normal(int count, double u);

}  // namespace orrery
