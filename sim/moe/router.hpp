#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/moe/exchange_counter.hpp"
#include "sim/moe/routing_plan.hpp"

namespace orrery {

/// Copies that an expert takes from one rank in one micro-batch, of `tokens` tokens with
/// `per_token` experts each: ceil(factor tokens per_token / experts), as in Megatron-LM
/// (megatron/core/transformer/moe/moe_utils.py, get_capacity).
std::int64_t expert_capacity(double factor, std::int64_t tokens, std::int64_t per_token,
                             std::int64_t experts);

/// Mean of max(0, X - capacity), X a binomial of `n` trials of probability `p`: the copies that a
/// rank drops of an expert that a share p of its tokens visit.
double binomial_excess(std::int64_t n, double p, std::int64_t capacity);

/// Who routes: one expert-parallel group, and what it holds in one micro-batch.
struct RoutingShape {
  Experts experts;
  int layers = 1;  ///< With experts; they are numbered from 0 in the order of the model.
  int ranks = 1;
  int per_domain = 1;
  std::int64_t tokens = 0;  ///< Of one rank in one micro-batch.

  std::int64_t copies() const { return tokens * ranks * experts.per_token; }
  bool operator==(const RoutingShape&) const = default;
};

/// Where one layer's tokens of one micro-batch went. A copy is one token at one expert.
struct RoutedBatch {
  int slots_per_rank = 0;
  std::vector<std::int64_t> kept;      ///< Copies of each expert slot, rank after rank.
  std::vector<std::int64_t> computed;  ///< The same with padding to capacity.
  std::vector<std::int64_t> dropped;   ///< Copies of each expert that capacity turned away.
  ExchangeLoad exchange;

  std::span<const std::int64_t> computed_by(int rank) const {
    return std::span{computed}.subspan(static_cast<std::size_t>(rank * slots_per_rank),
                                       static_cast<std::size_t>(slots_per_rank));
  }
  std::int64_t total_kept() const;
  std::int64_t total_dropped() const;
};

/// Draws, or looks up, where tokens go. The same plan, shape, layer, micro-batch and replica give
/// the same answer in any order of asking.
///
/// Drawn: an expert that a share v of the tokens visit gets a binomial of all of the group's
/// tokens, given that all together are tokens x per_token (independent normals conditioned on their
/// sum; below a variance of 25 exact binomials). Source ranks are alike: each sends its equal part,
/// so that loads are drawn for the group and not for each of its ranks. Of limited routing only
/// what tokens share counts (distinct_shares()); its groups' correlation of loads is left out.
class Router {
 public:
  /// Errors (infeasible): slots that the ranks do not divide, a capacity below one token, a hot
  /// expert in a model whose tokens visit all.
  Router(RoutingPlan plan, const RoutingShape& shape, const Place& at);

  /// `layer` counts layers with experts. A trace that has fewer micro-batches begins again.
  RoutedBatch route(int layer, int micro_batch, int replica) const;

  const RoutingPlan& plan() const { return plan_; }
  const RoutingShape& shape() const { return shape_; }
  const ExpertPlacement& placement(int layer) const {
    return placements_[static_cast<std::size_t>(layer) % placements_.size()];
  }

 private:
  std::vector<double> shares_of(int layer) const;
  std::vector<std::int64_t> draw(int layer, int micro_batch, int replica) const;
  std::int64_t dropped_of(std::int64_t copies) const;
  void settle(RoutedBatch& batch, const std::vector<std::int64_t>& kept, int layer) const;
  RoutedBatch routed_evenly(const std::vector<std::int64_t>& experts, int layer) const;
  RoutedBatch routed_by_trace(int layer, int micro_batch) const;

  RoutingPlan plan_;
  RoutingShape shape_;
  std::vector<double> shares_;               ///< visit_shares(), falling.
  std::int64_t capacity_ = 0;                ///< Of one rank's copies for one expert; 0: none.
  std::vector<ExpertPlacement> placements_;  ///< One for each layer, or one for all.
  std::vector<ExchangeCounter> counters_;    ///< As placements_.
  mutable std::unordered_map<std::int64_t, std::int64_t> known_drops_;
};

}  // namespace orrery
