#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
#include "sim/measurements/collective_constants.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/nccl/collective_cost.hpp"

namespace orrery {

/// The sequence that never falls and differs least from `values`, as a sum of absolute
/// differences: where values fall, they and as few neighbours as it takes become their median, of
/// an even number the lower one. A single outlier thus moves nothing else, as a mean or a running
/// maximum would let it. Source: pool adjacent violators, of Barlow, Bartholomew, Bremner and
/// Brunk, "Statistical Inference under Order Restrictions", 1972; medians: Robertson and Wright,
/// "Multiple isotonic median regression", Annals of Statistics 1, 1973.
std::vector<double> never_falling(const std::vector<double>& values);

/// A collective and group that a sweep was measured for.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  bool operator==(const CollectiveShape&) const = default;
};

/// The group of `ranks` spread evenly over the nodes of `system`. Errors (infeasible): more ranks
/// than the nodes have GPUs, or not as many on each.
GroupShape group_on(const System& system, int ranks, int nodes);

/// Sweeps of one system, and their corrections of a formula: the ratio of measured to its time.
class CollectiveMeasurements {
 public:
  using Formula = std::function<CollectiveCost(Bytes, GroupShape)>;
  struct Correction {
    double factor = 1.0;
    Tag tag = Tag::interpolated;
  };

  /// Sweeps of the system's calibration replace others for their shapes; those of the constants'
  /// GPU count inside a domain only, those of the system everywhere. All sweeps of `left_out` are
  /// left out.
  CollectiveMeasurements(const System& system, const CollectiveConstants& constants,
                         const std::optional<CollectiveShape>& left_out, bool alone = false);

  /// The correction from the curve of this very group: between sizes log-log, below the first the
  /// formula scaled to it, beyond the last the formula and its deviation there. Between two
  /// measured numbers of ranks: both residuals at the same bytes a rank, weighted by log ranks. For
  /// a number of domains between two measured ones: both residuals at the same bytes a NIC,
  /// weighted by log domains; for more domains, that of the most. Else nullopt.
  std::optional<Correction> correction(const CollectiveShape& shape, Bytes tensor,
                                       const Formula& formula) const;

  bool empty() const { return curves_.empty(); }

 private:
  // All sweeps of one shape merged: at each size the geometric mean of those that cover it, but a
  // larger message is never faster than a smaller one. A sender could pad the smaller; a sweep with
  // the opposite was disturbed.
  struct Curve {
    CollectiveShape shape;
    std::vector<double> log_bytes, log_time;
    std::vector<bool> as_measured;  // True for unchanged sizes.
    bool own = true;                // Measured on such GPUs, not on proxies.

    bool is_measured(double log_of_bytes) const;
  };

  void add(const System& system, const std::vector<MeasuredCurve>& sweeps, bool one_domain,
           bool own, const std::optional<CollectiveShape>& left_out);
  void add_of_system(const System& system, bool own, bool alone,
                     const std::optional<CollectiveShape>& left_out);
  static double beyond(const Curve& curve, Bytes tensor, const Formula& formula);
  const Curve& between_domains(const CollectiveShape& shape, const Formula& formula) const;
  static Seconds time_on(const Curve& curve, Bytes tensor, const Formula& formula);
  const Curve& between_ranks(const CollectiveShape& shape, const Formula& formula) const;

  CollectiveConstants constants_;
  bool mesh_ = false;
  std::vector<Curve> curves_;
  mutable std::deque<Curve> between_;  // Between curves, as they are asked for.
};

}  // namespace orrery
