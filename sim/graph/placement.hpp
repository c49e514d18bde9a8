#pragma once

#include <vector>

#include "sim/core/ids.hpp"
#include "sim/cost/step_cost.hpp"
#include "sim/input/plan.hpp"
#include "sim/input/system.hpp"

namespace orrery {

/// Where in the plan a rank stands.
struct Coordinates {
  int stage = 0;
  int data = 0;
  int tensor = 0;
  bool operator==(const Coordinates&) const = default;
};

/// Ranks lie in Megatron's order, tensor fastest, then data, then pipeline
/// (megatron/core/parallel_state.py, order "tp-cp-ep-dp-pp"), and fill NVLink domains in turn:
///
///     rank = (stage dp + data) tp + tensor
class Placement {
 public:
  Placement(const Plan& plan, const System& system);

  int ranks() const { return tp_ * dp_ * pp_; }
  int tp() const { return tp_; }
  int dp() const { return dp_; }
  int pp() const { return pp_; }
  Rank rank(Coordinates at) const;
  Coordinates coordinates(Rank rank) const;
  int domain(Rank rank) const { return rank.value / domain_size_; }
  int nic(Rank rank) const;       ///< Numbered over the cluster; GPUs may share one.
  int gpus_per_nic() const { return gpus_per_nic_; }
  bool same_domain(Rank a, Rank b) const { return domain(a) == domain(b); }

  std::vector<Rank> tensor_group(Coordinates at) const;
  std::vector<Rank> data_group(Coordinates at) const;

  /// Whether stages fill whole domains or domains whole stages, and tensor groups likewise: every
  /// rank of a stage then sees the same picture, and one may stand for all.
  bool regular() const;

  /// Of the groups that are spread the most; of all of them where the placement is regular.
  GroupShapes shapes() const;

 private:
  GroupShape shape(const std::vector<Rank>& group) const;

  int tp_, dp_, pp_;
  int domain_size_;
  int gpus_per_node_;
  int nics_per_node_;
  int gpus_per_nic_;
};

}  // namespace orrery
