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
#include "sim/reliability/training_run.hpp"
#include "sim/search/dimension.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// The kind of cost that counts.
enum class PayBy {
  rent,  ///< GPU-hours.
  own    ///< The share of a cluster's life, and electricity.
};

struct PurchaseRequest {
  Model model;
  double tokens = 0.0;
  std::vector<System> systems;
  std::vector<int> gpus;
  std::int64_t most_batch = 0;        ///< Sequences; the fastest batch up to it is taken.
  bool usual_batch = false;           ///< Unspecified by the user: usual_most_batch_tokens.
  std::vector<std::int64_t> batches;  ///< Instead, if any: one of these.
  std::vector<Fixed> fixed;           ///< Fixed keys, as a search has them.
  /// Files over the catalog's prices; one that names a GPU counts for that alone.
  std::string economics;
  double max_memory = safe_share_of_memory;
  PayBy pay = PayBy::rent;
  std::optional<Seconds> deadline;
  std::optional<double> budget_usd;        ///< Of one training, as `pay` counts it.
  std::optional<double> capital_usd;       ///< Of the purchase.
  std::optional<Reliability> reliability;  ///< Failure model; nothing: no failures.
  int workers = 1;
};

/// The best plan with batches of one level.
struct BatchChoice {
  std::int64_t level = 0;  ///< Sequences; no batch of it is larger.
  std::int64_t gbs = 0;
  Seconds step;
  Seconds time;  ///< Whole training, without interruption.
  std::string flags;
  bool beyond = false;  ///< Larger than training can use.
};

/// Resources that limit the training of a row. Scale-up is NVLink, or PCIe in its absence.
enum class RowBottleneck { compute, memory, batch, network, scale_up, exchange };
inline constexpr std::size_t row_bottlenecks = 6;
const std::string& name(RowBottleneck bottleneck);

/// Share of the days that each resource costs. Memory: the share by which the best plan would be
/// faster if all plans fitted; batch: the same with twice the batch; others: their share of the
/// step's critical path, which no faster part could exceed.
using BottleneckShares = std::array<double, row_bottlenecks>;
/// The resource with the largest share but compute, if it is a twentieth or more; else compute.
RowBottleneck row_bottleneck(const BottleneckShares& shares);

/// A row's training with failures, as `orrery run` answers by itself.
struct FailingRun {
  ChanceRange days;
  RunBill bill;        ///< Spares included.
  int spares = 0;      ///< Units that are paid for: enough for 99 % of the time.
  int spare_gpus = 0;  ///< All of them.
};

/// A system in one size, with its best plan.
struct PurchaseRow {
  std::size_t system = 0;  ///< Its index in the request.
  int gpus = 0;
  std::string refused;      ///< The reason that there is no plan; "": there is one.
  bool unfinished = false;  ///< Ctrl-C came first.

  std::optional<Result> result;      ///< Contains its bill; nothing if refused or unfinished.
  std::string flags;                 ///< Flags of `orrery estimate`, but the batch.
  std::vector<BatchChoice> batches;  ///< Largest first.
  BottleneckShares shares{};
  Range days;  ///< Without failures; low and high: nine in ten.
  double days_middle = 0.0;
  std::optional<FailingRun> failing;
  Range days_failing;     ///< Failures included: likewise.
  Hardware hardware;      ///< For the job and its spares.
  Range own_usd;          ///< Written off over the training, with electricity.
  Range break_even_days;  ///< Time until rent exceeds the price, less electricity.
  std::vector<std::string> unknown_prices;
  std::int64_t groups = 0, uneven = 0, simulated = 0;  ///< Sums of BestPlanSearch's.

  bool has_plan() const { return result.has_value(); }
  /// Failures are included if a profile was given.
  double time_days() const { return failing ? failing->days.mean : days_middle; }
  const Range& time_range() const { return failing ? days_failing : days; }
};

/// The cost of a row that `pay` counts, at the prices' ends and the predicted time; unknown if a
/// price is.
Range cost_of(const PurchaseRow& row, PayBy pay);
/// The cost by which rows are compared: the purchase price of the cluster if capital is limited,
/// else cost_of().
Range limited_cost(const PurchaseRow& row, const PurchaseRequest& request);
Range energy_cost(const PurchaseRow& row);
Range energy_kwh(const PurchaseRow& row);

/// The most whole units whose price is within a sum, at a system's highest and lowest prices.
struct Affordable {
  Hardware surely, perhaps;
};
/// Nothing where a price is unknown.
std::optional<Affordable> affordable(const System& system, const Economics& economics, double usd);

struct Purchase {
  std::vector<PurchaseRow> rows;  ///< Sorted by system, then size.
  /// What `capital_usd` buys of each system; nothing where a price is unknown. Empty: no limit.
  std::vector<std::optional<Affordable>> affordable;
  bool interrupted = false;
};

struct PurchaseProgress {
  std::size_t rows = 0, done = 0;
};

/// Finds the plan with the fewest days of training for each system and size: the one that `orrery
/// search --objective training_time` would list first among the plans of its batches.
/// BestPlanFinder takes plans that lie unevenly in NVLink domains only if there are no others.
/// `request.workers` changes nothing but the time. Rows without a plan give the reason. An
/// Interruption lets Ctrl-C leave out the rows that are not done.
Purchase buy(const PurchaseRequest& request,
             const std::function<void(const PurchaseProgress&)>& watch = {});

/// A row's place relative to a limit, whose figure is a range: below it at its worst, in the
/// middle, at its best, or never.
enum class Meets { surely, likely, perhaps, no };
const std::string& name(Meets meets);

/// A row's place among the others in cost and days, which both should be low.
enum class ParetoStatus {
  unknown,  ///< No plan, or no price.
  front,    ///< Pareto-optimal at the midpoints of the ranges.
  perhaps,  ///< Possibly Pareto-optimal: no row is significantly better in both.
  dominated
};
const std::string& name(ParetoStatus status);

struct RowChoice {
  ParetoStatus status = ParetoStatus::unknown;
  /// Known if there is a limit, and a figure for it.
  std::optional<Meets> deadline, budget, capital;
};

/// The cheapest row within a deadline, which replaces the request's own, and within the request's
/// other limits.
struct DeadlineChoice {
  double days = 0.0;
  std::optional<std::size_t> row;      ///< The cheapest that likely keeps to all; nothing: none.
  std::optional<std::size_t> nearest;  ///< Where none does: as PurchaseChoice::nearest.
};

/// Conclusions from a table of rows for a buyer. Rows are numbers of Purchase::rows.
struct PurchaseChoice {
  std::vector<RowChoice> rows;     ///< One for each row.
  std::vector<std::size_t> front;  ///< Fewest days first.
  /// Surely or likely within all limits, cheapest by limited_cost() first; fastest first if capital
  /// alone is one.
  std::vector<std::size_t> within;
  std::vector<std::size_t> perhaps;   ///< Possibly within all limits, likewise.
  std::vector<DeadlineChoice> strip;  ///< The best rows for usual deadlines, shortest first.
  /// The row nearest to the limits, if no row is within them.
  std::optional<std::size_t> nearest;
};
PurchaseChoice choose(const Purchase& purchase, const PurchaseRequest& request);

/// True if row `b` takes more days than `a`, for certain (9 in 10). Failures move both alike.
bool is_slower(const PurchaseRow& a, const PurchaseRow& b);
/// True if it costs more, for certain: on one kind of GPU the price is the same, whatever it is,
/// and GPU-time differs; on two the ranges of their costs are apart.
bool is_dearer(const PurchaseRow& a, const PurchaseRow& b, PayBy pay);

}  // namespace orrery
