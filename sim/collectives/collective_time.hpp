#pragma once

#include <map>
#include <memory>
#include <optional>

#include "sim/collectives/collective_sweeps.hpp"
#include "sim/measurements/exchange_constants.hpp"
#include "sim/nccl/collective_formula.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {

/// Options of a user or a validation.
struct CollectiveOptions {
  NcclSelection selection;
  std::optional<CollectiveShape> left_out;         ///< Predict without any sweep of this shape.
  std::optional<ExchangeTable> left_out_exchange;  ///< Nor with any constant from this table.
  bool alone = false;                              ///< As of CollectiveModel.
};

/// NCCL's time for collectives on one system, uncontended: measured if possible, else by formula.
class CollectiveTime {
 public:
  explicit CollectiveTime(const System& system, const CollectiveOptions& options = {});

  /// `tensor`: the whole tensor's bytes, as nccl-tests count (all-gather: of all ranks together). A
  /// group of one rank, or no bytes, takes no time. Sweeps include the hops of the fabric that they
  /// were measured on, so that only further hops of this group are added. Errors (infeasible): none
  /// of the algorithms that options allow applies.
  CollectiveCost operator()(CollectiveKind kind, Bytes tensor, GroupShape group) const;

  /// One rank sends `bytes` to another, inside a domain or over the network. `further_switches`: as
  /// in GroupShape.
  CollectiveCost send(Bytes bytes, bool same_domain, Seconds further_switches = {}) const;

  const System& system() const { return system_; }
  /// Constants of ExpertExchange for kernels other than NCCL's. Read on first use: plans without
  /// experts do not need them.
  const ExchangeKernels& exchange_kernels() const;

 private:
  CollectiveCost behind_one_switch(const CollectiveCall& call) const;
  const CollectiveTime& over_bridge(BytesPerSecond rate) const;
  CollectiveCost stretched(CollectiveCost cost, double factor, int members) const;
  CollectiveCost free_choice(const CollectiveCall& call) const;
  CollectiveCost forced_choice(const NcclTuner::Choice& chosen, const NcclTuner::Choice& free,
                               const CollectiveCall& call) const;
  CollectiveCost carried_by(const NcclTuner::Choice& chosen, CollectiveCost cost,
                            const CollectiveCall& call) const;
  void name_pairs(CollectiveCost& cost, const CollectiveCall& call) const;

  System system_;
  CollectiveOptions options_;
  CollectiveModel model_;
  CollectiveMeasurements measurements_;
  mutable std::optional<ExchangeKernels> exchange_kernels_;
  mutable std::map<BytesPerSecond, std::shared_ptr<const CollectiveTime>> over_bridges_;
};

}  // namespace orrery
