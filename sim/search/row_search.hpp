#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/reliability/run_replicates.hpp"
#include "sim/search/batch_levels.hpp"
#include "sim/search/known_pass_times.hpp"
#include "sim/search/plan_space.hpp"
#include "sim/search/purchase.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// What the rows of one system have in common.
struct SystemGround {
  explicit SystemGround(const System& system) : context{system}, passes{context} {}

  EstimateContext context;
  KnownPassTimes passes;
};

/// What a worker finds out about a row.
struct RowAnswer {
  struct Level {
    PlanSpace::Choice choice{};
    std::int64_t limit = 0, gbs = 0;
    double step_s = 0.0;
    double score = 0.0;  ///< Seconds a token.
    bool beyond = false;
  };
  std::string refused;                 ///< "": there is a plan.
  std::vector<Level> levels;           ///< Those with a plan, in their order.
  std::size_t best = 0;                ///< Of the levels, none beyond.
  double score_if_all_fitted = 0.0;    ///< The best one's, with batches of its level.
  std::optional<ChanceRange> failing;  ///< Days with failures.
  std::int64_t groups = 0, uneven = 0, simulated = 0;  ///< As BestPlanSearch, of all levels.
};

/// Searches the levels of a row. What the row cannot be for is its `refused`.
RowAnswer search_row(const PurchaseRequest& request, const System& system, int gpus,
                     SystemGround& ground);

/// For the way from a worker to its parent.
std::string packed(const RowAnswer& answer);
RowAnswer unpacked_row(const std::string& bytes);

}  // namespace orrery
