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

/// Mean of max(0, X - capacity) for a binomial X of `n` trials with probability `p`: the copies
/// that a rank drops of an expert that a share p of its tokens visit.
double binomial_excess(std::int64_t n, double p, std::int64_t capacity);

/// One expert-parallel group and its share of one micro-batch.
struct RoutingShape {
  Experts experts;
  int layers = 1;  ///< Layers with experts, numbered from 0 in the order of the model.
  int ranks = 1;
  int per_domain = 1;
  std::int64_t tokens = 0;  ///< Tokens of one rank in one micro-batch.

  std::int64_t copies() const { return tokens * ranks * experts.per_token; }
  bool operator==(const RoutingShape&) const = default;
};

/// The routes of one layer's tokens of one micro-batch. A copy is one token at one expert.
struct RoutedBatch {
  int slots_per_rank = 0;
  std::vector<std::int64_t> kept;      ///< Copies of each expert slot, rank after rank.
  std::vector<std::int64_t> computed;  ///< The same with padding to capacity.
  std::vector<std::int64_t> dropped;   ///< Copies of each expert that exceeded its capacity.
  ExchangeLoad exchange;

  std::span<const std::int64_t> computed_by(int rank) const {
    return std::span{computed}.subspan(static_cast<std::size_t>(rank * slots_per_rank),
                                       static_cast<std::size_t>(slots_per_rank));
  }
  std::int64_t total_kept() const;
  std::int64_t total_dropped() const;
};

/// Samples, or looks up, the experts of tokens. The same plan, shape, layer, micro-batch and
/// replica give the same answer in any order of calls.
///
/// An expert that a share v of the tokens visit gets a binomial number of the group's tokens,
/// conditioned on the sum of tokens x per_token (independent normals conditioned on their sum;
/// exact binomials below a variance of 25). Source ranks are alike: each sends an equal part, so
/// that loads are sampled for the group and not for each of its ranks. Limited routing only changes
/// distinct_shares(); its groups' correlation of loads is left out.
class Router {
 public:
  /// Errors (infeasible): slots that the ranks do not divide, a capacity below one token, a hot
  /// expert in a model whose tokens visit all.
  Router(RoutingPlan plan, const RoutingShape& shape, const Place& at);

  /// The number `layer` counts layers with experts. A trace with fewer micro-batches repeats.
  RoutedBatch route(int layer, int micro_batch, int replica) const;

  const RoutingPlan& plan() const { return plan_; }
  const RoutingShape& shape() const { return shape_; }
  const ExpertPlacement& placement(int layer) const {
    return placements_[static_cast<std::size_t>(layer) % placements_.size()];
  }

 private:
  std::vector<double> shares_of(int layer) const;
  std::vector<std::int64_t> sample(int layer, int micro_batch, int replica) const;
  std::int64_t dropped_of(std::int64_t copies) const;
  void settle(RoutedBatch& batch, const std::vector<std::int64_t>& kept, int layer) const;
  RoutedBatch routed_evenly(const std::vector<std::int64_t>& experts, int layer) const;
  RoutedBatch routed_by_trace(int layer, int micro_batch) const;

  RoutingPlan plan_;
  RoutingShape shape_;
  std::vector<double> shares_;  ///< The visit_shares(), falling.
  std::int64_t capacity_ = 0;   ///< Copies for one expert from one rank; 0 is unlimited.
  std::vector<ExpertPlacement> placements_;  ///< One for each layer, or one for all.
  std::vector<ExchangeCounter> counters_;    ///< One for each placement.
  mutable std::unordered_map<std::int64_t, std::int64_t> known_drops_;
};

}  // namespace orrery
