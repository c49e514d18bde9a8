#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/bound.hpp"
#include "sim/search/plan_space.hpp"
#include "sim/search/purchase.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Tokens of the largest batch that a buyer should count on, unless he knows better: what Llama 3
/// 405B was trained with after 2.87 trillion tokens (arXiv 2407.21783, section 3.4.1: "16M", 2,048
/// sequences of 8,192).
inline constexpr std::int64_t usual_most_batch_tokens = std::int64_t{2048} * 8192;

/// Global batches, in sequences, that are tried together and of which the best counts.
struct BatchLevel {
  std::int64_t limit = 0;             ///< No batch is larger.
  std::vector<std::int64_t> batches;  ///< Rising.
  bool beyond = false;  ///< Larger than training can use: what it would bring, and no choice.
};

/// Levels for batches up to `most` sequences on `gpus` GPUs: those near twice as many, `most`, a
/// half and a quarter of it, in this order. A batch divides among the replicas, whose number is
/// that of the GPUs over a model-parallel degree; so each level has, for a degree of 1, 2, 4, 8 and
/// 16, the largest multiple of gpus / degree up to it that is over half of it. A level that has
/// none is left out.
std::vector<BatchLevel> usual_batch_levels(std::int64_t most, int gpus);
/// Twice the largest of the user's batches, then each of them as a level of its own, falling.
std::vector<BatchLevel> batch_levels_of(const std::vector<std::int64_t>& batches);

/// Prices that the rows of one system share.
struct SystemContext {
  explicit SystemContext(const System& system) : estimates{system}, passes{estimates} {}

  EstimateContext estimates;
  KnownPassTimes passes;
};

/// A worker's result of a row.
struct RowAnswer {
  struct Level {
    PlanSpace::Choice choice{};
    std::int64_t limit = 0, gbs = 0;
    double step_s = 0.0;
    double score = 0.0;  ///< Seconds a token.
    bool beyond = false;
  };
  std::string refused;               ///< "": there is a plan.
  std::vector<Level> levels;         ///< Those with a plan, in their order.
  std::size_t best = 0;              ///< Place among the levels; not one beyond the limit.
  double score_if_all_fitted = 0.0;  ///< The best one's, with batches of its level.
  std::optional<FailingRun> failing;
  std::int64_t groups = 0, uneven = 0, simulated = 0;  ///< Sums of BestPlanSearch over all levels.
};

/// Searches the levels of a row. `refused` is the reason that there is no plan.
RowAnswer search_row(const PurchaseRequest& request, const System& system, int gpus,
                     SystemContext& context, const Economics& economics);

/// The bytes that a worker sends to its parent.
std::string packed(const RowAnswer& answer);
RowAnswer unpacked_row(const std::string& bytes);

}  // namespace orrery
