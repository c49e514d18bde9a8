#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/cluster/system.hpp"
#include "sim/layers/memory.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/search/dimension.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Which money counts.
enum class PayBy {
  rent,  ///< GPU-hours.
  own    ///< The share of a cluster's life, and electricity.
};

struct PurchaseRequest {
  Model model;
  double tokens = 0.0;
  std::vector<System> systems;
  std::vector<int> gpus;
  std::int64_t most_batch = 0;        ///< Sequences. Of batches up to it the fastest is taken.
  bool usual_batch = false;           ///< The user did not say it: usual_most_batch_tokens.
  std::vector<std::int64_t> batches;  ///< Instead, if any: one of these.
  std::vector<Fixed> fixed;           ///< As of a search.
  /// Files over the catalog's prices; one that names a GPU counts for that alone.
  std::vector<std::string> economics;
  double max_memory = safe_share_of_memory;
  PayBy pay = PayBy::rent;
  std::optional<Seconds> deadline;
  std::optional<double> budget_usd;
  std::optional<Reliability> reliability;  ///< What fails how often; nothing: nothing does.
  int workers = 1;
};

/// The best plan with batches of one level.
struct BatchChoice {
  std::int64_t level = 0;  ///< Sequences; no batch of it is larger.
  std::int64_t gbs = 0;
  Seconds step;
  Seconds time;  ///< Of the whole training, without interruption.
  std::string flags;
  bool beyond = false;  ///< Larger than training can use.
};

/// What would shorten the training of a row. Scale-up is NVLink, or PCIe where there is none.
enum class Binding { compute, memory, batch, network, scale_up, exchange };
inline constexpr std::size_t bindings = 6;
const std::string& name(Binding binding);

/// What each of them holds up, as a share of the days. Memory: by how much the best plan would be
/// faster if all plans fitted; batch: with twice the batch; others: their share of the step's
/// deciding path, of which no faster part could save more.
using BindingShares = std::array<double, bindings>;
/// That with the largest share but compute, where it is a twentieth or more; else compute.
Binding what_binds(const BindingShares& shares);

/// A system in one size, with its best plan.
struct PurchaseRow {
  std::size_t system = 0;  ///< Of the request.
  int gpus = 0;
  std::string refused;      ///< Why there is no plan; "" where there is one.
  bool unfinished = false;  ///< Ctrl-C came first.

  std::optional<Result> result;      ///< With its bill; nothing where refused or unfinished.
  std::string flags;                 ///< For `orrery estimate`, beside the batch.
  std::vector<BatchChoice> batches;  ///< By falling size.
  BindingShares shares{};
  Range days;  ///< Without failures; low and high: nine in ten.
  double days_middle = 0.0;
  std::optional<Range> days_failing;  ///< With failures: likewise.
  double days_failing_middle = 0.0;
  int bought = 0;         ///< GPUs of whole nodes, or of whole NVLink domains.
  Range to_buy_usd;       ///< All of them, with switches and cables.
  Range own_usd;          ///< Written off over the training, with electricity.
  Range break_even_days;  ///< Of renting, that cost what the cluster does beside its electricity.
  std::vector<std::string> unknown_prices;
  std::int64_t groups = 0, uneven = 0, simulated = 0;  ///< As BestPlanSearch, of all levels.

  bool has_plan() const { return result.has_value(); }
  /// With failures where a profile was given.
  double time_days() const { return days_failing ? days_failing_middle : days_middle; }
  const Range& time_range() const { return days_failing ? *days_failing : days; }
};

/// What `pay` counts of a row, at the prices' ends and the predicted time; unknown where a price
/// is.
Range cost_of(const PurchaseRow& row, PayBy pay);
/// Its electricity; as the rent, for as long as failures make it.
Range energy_cost(const PurchaseRow& row);
Range energy_kwh(const PurchaseRow& row);

/// Those of the files that count for a GPU.
std::vector<std::string> files_for(const std::string& gpu, const std::vector<std::string>& files);

struct Purchase {
  std::vector<PurchaseRow> rows;  ///< By system, then size.
  bool interrupted = false;
};

struct PurchaseProgress {
  std::size_t rows = 0, done = 0;
};

/// For each system and size the plan that trains in the fewest days: of each row what
/// `orrery search --objective training_time` would list first among the plans of its batches, found
/// by BestPlanFinder, but for plans that lie unevenly in NVLink domains, which are taken only where
/// there are no others. `request.workers` changes nothing but the time. Rows without a plan say
/// why. Where an Interruption lives, Ctrl-C leaves the rows out that are not done.
/// Errors: infeasible where no row has a plan, with each one's reason; as of reading economics;
/// a file of prices for a GPU that no system has.
Purchase buy(const PurchaseRequest& request,
             const std::function<void(const PurchaseProgress&)>& watch = {});

/// How a row stands to a limit, whose figure is a range: at its worst below it, in the middle, at
/// its best, or never.
enum class Meets { surely, likely, perhaps, no };
const std::string& name(Meets meets);

/// Where a row stands among the others in cost and days, which both should be low.
enum class Standing {
  unknown,  ///< No plan, or no price.
  front,    ///< No other has less of one and not more of the other, by the middles of the ranges.
  perhaps,  ///< It may in truth be on the front: no row is significantly better in both.
  beaten
};
const std::string& name(Standing standing);

struct RowChoice {
  Standing standing = Standing::unknown;
  std::optional<Meets> deadline, budget;  ///< Where there is a limit, and for it a figure.
};

/// A row that is the best within a deadline.
struct DeadlineChoice {
  double days = 0.0;
  std::optional<std::size_t> row;  ///< The cheapest that likely meets it; nothing: none does.
};

/// What a table of rows says to somebody who has to choose. Rows are numbers of Purchase::rows.
struct PurchaseChoice {
  std::vector<RowChoice> rows;        ///< Of each row.
  std::vector<std::size_t> front;     ///< By rising days.
  std::vector<std::size_t> within;    ///< That surely or likely keep to all limits, by cost.
  std::vector<std::size_t> perhaps;   ///< That may keep to them, by cost.
  std::vector<DeadlineChoice> strip;  ///< What usual deadlines leave, by rising days.
  /// Where there are limits and nothing is within: the row nearest to them.
  std::optional<std::size_t> nearest;
};
PurchaseChoice choose(const Purchase& purchase, const PurchaseRequest& request);

/// Whether row `b` takes more days than `a`, for certain (9 in 10). Failures move both alike.
bool is_slower(const PurchaseRow& a, const PurchaseRow& b);
/// Whether it costs more, for certain: on one kind of GPU the price is the same, whatever it is,
/// and GPU-time differs; on two the ranges of their costs are apart.
bool is_dearer(const PurchaseRow& a, const PurchaseRow& b, PayBy pay);

}  // namespace orrery
