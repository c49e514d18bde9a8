#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
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

/// One collective of one group: what a sweep was measured for.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  bool operator==(const CollectiveShape&) const = default;
};

/// The group of `ranks` spread evenly over the nodes of `system`. Errors (infeasible): more ranks
/// than the nodes have GPUs, or not as many on each.
GroupShape group_on(const System& system, int ranks, int nodes);

/// Sweeps of one system, and what they say about a formula: how many times longer than it says
/// does a collective take?
class CollectiveMeasurements {
 public:
  using Formula = std::function<CollectiveCost(Bytes, GroupShape)>;
  struct Correction {
    double factor = 1.0;
    Tag tag = Tag::interpolated;
  };

  /// Sweeps of the system's calibration count where they were taken, and there no others do; those
  /// of `gpu` count inside a domain only, those of the system everywhere. All sweeps of `left_out`
  /// are left out.
  CollectiveMeasurements(const System& system, const std::string& gpu,
                         const std::optional<CollectiveShape>& left_out);

  /// Where this very group was measured, its curve: between sizes log-log, below the first the
  /// formula scaled to it, beyond the last the formula and what it missed there. Between two
  /// measured numbers of ranks for which the formula takes the same algorithm: both's residuals at
  /// the same bytes a rank, weighted by log ranks. Over a number of domains between two that were
  /// measured: both's residuals at the same bytes a NIC, weighted by log domains; over more
  /// domains, that of the most. Else nothing.
  std::optional<Correction> correction(const CollectiveShape& shape, Bytes tensor,
                                       const Formula& formula) const;

  bool empty() const { return curves_.empty(); }

 private:
  // All sweeps of one shape as one: at each size the geometric mean of those that cover it, but
  // that a larger message is never faster than a smaller one. Whoever has the larger one could send
  // the smaller in its place; where a sweep says otherwise, it was disturbed.
  struct Curve {
    CollectiveShape shape;
    std::vector<double> log_bytes, log_time;
    std::vector<bool> as_measured;  // Whether the time of that size is what sweeps say.
    bool own = true;                // Measured on such GPUs, not on those that stand in for them.

    bool is_measured(double log_of_bytes) const;
  };

  void add(const System& system, const std::vector<MeasuredCurve>& sweeps, bool one_domain,
           bool own, const std::optional<CollectiveShape>& left_out);
  static double beyond(const Curve& curve, Bytes tensor, const Formula& formula);
  std::optional<Correction> between_domains(const CollectiveShape& shape, Bytes tensor,
                                            const Formula& formula) const;
  std::optional<double> residual(const Curve& curve, double log_bytes, const Formula& formula,
                                 std::string_view algorithm) const;

  std::vector<Curve> curves_;
};

}  // namespace orrery
