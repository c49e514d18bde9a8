#include "sim/search/purchase.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/search/row_search.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

constexpr double day_s = 86400.0;
constexpr double days_in_year = 365.25;

// The product of two independent factors, as logarithms, has nine in ten of its values within the
// root of the sum of squares.
double combined(double one, double other) {
  return std::exp(std::hypot(std::log(one), std::log(other)));
}

BottleneckShares shares_of(const Result& result) {
  BottleneckShares shares{};
  const TimeByPrice& path = result.range.path;
  const auto add = [&](RowBottleneck bottleneck, PriceKind kind) {
    for (const Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
      shares[static_cast<std::size_t>(bottleneck)] += path.at(kind, tag) / path.total();
  };
  for (const PriceKind kind : {PriceKind::network_latency, PriceKind::network_bytes})
    add(RowBottleneck::network, kind);
  for (const PriceKind kind : {PriceKind::nvlink_latency, PriceKind::nvlink_bytes})
    add(RowBottleneck::scale_up, kind);
  add(RowBottleneck::exchange, PriceKind::exchange);
  shares[static_cast<std::size_t>(RowBottleneck::compute)] = path.kernels().total() / path.total();
  return shares;
}

// The share of a price that a training of `days` uses up in a life of `years`.
Range written_off(Range usd, Range years, double days) {
  if (!usd.known() || !years.known()) return {};
  const double share = days / days_in_year;
  return {usd.low * share / years.high, usd.high * share / years.low};
}

Range break_even(Range usd, Range rent_a_day, Range energy_a_day) {
  if (!usd.known() || !rent_a_day.known() || !energy_a_day.known()) return {};
  const double most = rent_a_day.high - energy_a_day.low;
  const double least = rent_a_day.low - energy_a_day.high;
  if (least <= 0.0) return {};  // Buying may never break even.
  return {usd.low / most, usd.high / least};
}

void add_money(PurchaseRow& row, const System& system, const Economics& economics) {
  const int spare_gpus = row.failing ? row.failing->spare_gpus : 0;
  row.unknown_prices = row.result->bill->unknown_prices;
  row.hardware = hardware_for(system, row.gpus + spare_gpus, economics);
  row.own_usd =
      written_off(row.hardware.usd, economics.hardware_years, row.time_days()) + energy_cost(row);
  const double days = row.time_days();
  row.break_even_days = break_even(row.hardware.usd, cost_of(row, PayBy::rent) * (1.0 / days),
                                   energy_cost(row) * (1.0 / days));
}

PurchaseRow row_of(const PurchaseRequest& request, std::size_t s, int gpus, const RowAnswer& answer,
                   EstimateContext& context, const Economics& economics) {
  PurchaseRow row;
  row.system = s;
  row.gpus = gpus;
  row.refused = answer.refused;
  row.groups = answer.groups;
  row.uneven = answer.uneven;
  row.simulated = answer.simulated;
  if (!row.refused.empty()) return row;
  const System& system = request.systems[s];
  for (std::size_t i = 0; i < answer.levels.size(); ++i) {
    const RowAnswer::Level& level = answer.levels[i];
    const PlanSpace space{request.model, system, gpus, level.gbs, request.fixed};
    const Scenario scenario = space.scenario(level.choice);
    const double tokens = static_cast<double>(level.gbs) * static_cast<double>(scenario.plan.seq);
    BatchChoice choice{level.limit,
                       level.gbs,
                       Seconds{level.step_s},
                       std::ceil(request.tokens / tokens) * Seconds{level.step_s},
                       space.flags(level.choice),
                       level.beyond};
    if (i == answer.best) {
      row.flags = choice.flags;
      row.result = estimate(scenario, context).result;
      row.result->bill = bill_of(scenario, row.result->step_time, request.tokens, economics);
    }
    row.batches.push_back(std::move(choice));
  }
  const RowAnswer::Level& best = answer.levels[answer.best];
  const Result& result = *row.result;
  row.shares = shares_of(result);
  const auto gain = [&](double score) { return std::max(0.0, 1.0 - score / best.score); };
  row.shares[static_cast<std::size_t>(RowBottleneck::memory)] = gain(answer.score_if_all_fitted);
  if (answer.best > 0)
    row.shares[static_cast<std::size_t>(RowBottleneck::batch)] =
        gain(answer.levels[answer.best - 1].score);
  row.days_middle = result.bill->time.si() / day_s;
  const double shorter = result.range.step / result.range.low();
  const double longer = result.range.high() / result.range.step;
  row.days = {row.days_middle / shorter, row.days_middle * longer};
  row.failing = answer.failing;
  if (row.failing) {
    const ChanceRange& failing = row.failing->days;
    row.days_failing = {failing.mean / combined(shorter, failing.mean / failing.low),
                        failing.mean * combined(longer, failing.high / failing.mean)};
  }
  add_money(row, system, economics);
  return row;
}

void fail_if_empty(const Purchase& purchase, const PurchaseRequest& request) {
  std::string reasons;
  for (const PurchaseRow& row : purchase.rows) {
    if (row.has_plan()) return;
    reasons += (reasons.empty() ? "" : "; ") + request.systems[row.system].name + ", " +
               grouped(row.gpus) + " GPUs: " + row.refused;
  }
  // A refusal of the model holds for every row and names its own remedy.
  const bool by_model = reasons.find(" GPUs: --model:") != std::string::npos;
  fail_infeasible({}, "no row has a plan: " + reasons,
                  by_model ? "" : "use more GPUs, or fewer --fix");
}

}  // namespace

const std::string& name(RowBottleneck bottleneck) {
  static const std::array<std::string, row_bottlenecks> names{"compute", "memory",   "batch",
                                                              "network", "scale_up", "exchange"};
  return names[static_cast<std::size_t>(bottleneck)];
}

RowBottleneck row_bottleneck(const BottleneckShares& shares) {
  constexpr double enough = 0.05;
  std::size_t most = static_cast<std::size_t>(RowBottleneck::memory);
  for (std::size_t i = most; i < row_bottlenecks; ++i)
    if (shares[i] > shares[most]) most = i;
  return shares[most] >= enough ? static_cast<RowBottleneck>(most) : RowBottleneck::compute;
}

Range cost_of(const PurchaseRow& row, PayBy pay) {
  if (pay == PayBy::own) return row.own_usd;
  return row.failing ? row.failing->bill.rent_usd : row.result->bill->rent_usd;
}

Range limited_cost(const PurchaseRow& row, const PurchaseRequest& request) {
  return request.capital_usd ? row.hardware.usd : cost_of(row, request.pay);
}

Range energy_cost(const PurchaseRow& row) {
  return row.failing ? row.failing->bill.energy_usd : row.result->bill->energy_usd;
}
Range energy_kwh(const PurchaseRow& row) {
  return row.failing ? row.failing->bill.energy_kwh : row.result->bill->energy_kwh;
}

std::optional<Affordable> affordable(const System& system, const Economics& economics, double usd) {
  const auto of_units = [&](int units) {
    return hardware_for(system, units * system.sold_together(), economics);
  };
  if (!of_units(2).usd.known()) return std::nullopt;
  constexpr int most_gpus = 1 << 20;
  const int most = (system.max_gpus > 0 ? std::min(system.max_gpus, most_gpus) : most_gpus) /
                   system.sold_together();
  const auto largest = [&](double Range::*end) {  // More units never cost less.
    int fits = 0, above = most + 1;
    while (above - fits > 1) {
      const int middle = (fits + above) / 2;
      (of_units(middle).usd.*end <= usd ? fits : above) = middle;
    }
    return of_units(fits);
  };
  return Affordable{largest(&Range::high), largest(&Range::low)};
}

Purchase buy(const PurchaseRequest& request,
             const std::function<void(const PurchaseProgress&)>& watch) {
  std::vector<std::unique_ptr<SystemContext>> contexts;  // Workers are forked with them.
  std::vector<Economics> economics;
  const std::vector<PricedMachine> machines{request.systems.begin(), request.systems.end()};
  for (const System& system : request.systems) {
    contexts.push_back(std::make_unique<SystemContext>(system));
    economics.push_back(read_economics(system, request.economics, machines));
  }
  const std::size_t sizes = request.gpus.size();
  PurchaseProgress progress{request.systems.size() * sizes, 0};
  Purchase purchase;
  for (std::size_t i = 0; i < progress.rows; ++i) {
    PurchaseRow& row = purchase.rows.emplace_back();
    row.system = i / sizes;
    row.gpus = request.gpus[i % sizes];
    row.unfinished = true;
  }
  std::size_t next = 0;
  if (watch) watch(progress);
  run_tasks(
      request.workers, {},
      [&]() -> std::optional<std::int64_t> {
        return next < progress.rows ? std::optional{static_cast<std::int64_t>(next++)}
                                    : std::nullopt;
      },
      [&](std::int64_t task) {
        const PurchaseRow& row = purchase.rows[static_cast<std::size_t>(task)];
        RowAnswer answer;
        try {
          answer = search_row(request, request.systems[row.system], row.gpus, *contexts[row.system],
                              economics[row.system]);
        } catch (const Error& error) {
          answer = {};
          answer.refused = error.what();
        }
        return Answer{packed(answer), false};
      },
      [&](const Outcome& outcome) {
        PurchaseRow& row = purchase.rows[static_cast<std::size_t>(outcome.task)];
        if (!outcome.failure.empty())
          throw std::runtime_error{"a worker at " + request.systems[row.system].name + ", " +
                                   std::to_string(row.gpus) + " GPUs: " + outcome.failure};
        row = row_of(request, row.system, row.gpus, unpacked_row(outcome.bytes),
                     contexts[row.system]->estimates, economics[row.system]);
        ++progress.done;
        if (watch) watch(progress);
        return true;
      },
      Delivery::as_finished);
  if (request.capital_usd)
    for (std::size_t s = 0; s < request.systems.size(); ++s)
      purchase.affordable.push_back(
          affordable(request.systems[s], economics[s], *request.capital_usd));
  purchase.interrupted = Interruption::requested();
  if (!purchase.interrupted) fail_if_empty(purchase, request);
  return purchase;
}

namespace {

// A figure that a limit or a front compares.
struct Figure {
  double low = 0.0, middle = 0.0, high = 0.0;
};

Figure days_of(const PurchaseRow& row) {
  return {row.time_range().low, row.time_days(), row.time_range().high};
}

// The cost at the ends of prices and of the time; nothing if a price is unknown.
std::optional<Figure> cost_figure(const PurchaseRow& row, PayBy pay) {
  const Range usd = cost_of(row, pay);
  if (!usd.known()) return std::nullopt;
  const Figure days = days_of(row);
  return Figure{usd.low * days.low / days.middle, usd.midpoint(),
                usd.high * days.high / days.middle};
}

Meets meets(const Figure& figure, double limit) {
  if (figure.high <= limit) return Meets::surely;
  if (figure.middle <= limit) return Meets::likely;
  return figure.low <= limit ? Meets::perhaps : Meets::no;
}

// No figure, no verdict: what is not known is not kept to.
bool is_at_least(const std::optional<Meets>& verdict, Meets wanted, bool requested) {
  return !requested || (verdict && *verdict <= wanted);
}

bool beats(const PurchaseRow& a, const PurchaseRow& b, PayBy pay) {
  const double cost_a = cost_of(a, pay).midpoint(), cost_b = cost_of(b, pay).midpoint();
  return a.time_days() <= b.time_days() && cost_a <= cost_b &&
         (a.time_days() < b.time_days() || cost_a < cost_b);
}

StepRange training_range(const PurchaseRow& row, double factor) {
  return row.result->range.scaled(row.result->bill->steps * factor);
}

}  // namespace

const std::string& name(Meets meets) {
  static const std::array<std::string, 4> names{"surely", "likely", "perhaps", "no"};
  return names[static_cast<std::size_t>(meets)];
}

const std::string& name(ParetoStatus status) {
  static const std::array<std::string, 4> names{"unknown", "front", "perhaps", "beaten"};
  return names[static_cast<std::size_t>(status)];
}

bool is_slower(const PurchaseRow& a, const PurchaseRow& b) {
  return difference(training_range(a, a.time_days() / a.days_middle),
                    training_range(b, b.time_days() / b.days_middle))
             .low() > Seconds{};
}

bool is_dearer(const PurchaseRow& a, const PurchaseRow& b, PayBy pay) {
  const auto cost_a = cost_figure(a, pay), cost_b = cost_figure(b, pay);
  if (!cost_a || !cost_b) return false;
  if (a.result->range.gpu != b.result->range.gpu) return cost_b->low > cost_a->high;
  const auto money = [](const PurchaseRow& row, const Figure& cost) {
    return training_range(row, cost.middle / row.result->bill->time.si());
  };
  return difference(money(a, *cost_a), money(b, *cost_b)).low() > Seconds{};
}

PurchaseChoice choose(const Purchase& purchase, const PurchaseRequest& request) {
  const std::vector<PurchaseRow>& rows = purchase.rows;
  PurchaseChoice choice;
  choice.rows.resize(rows.size());
  std::vector<std::size_t> known;  // Rows with days and cost.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].has_plan()) continue;
    RowChoice& of = choice.rows[i];
    if (request.deadline) of.deadline = meets(days_of(rows[i]), request.deadline->si() / 86400.0);
    if (const Range usd = rows[i].hardware.usd; request.capital_usd && usd.known())
      of.capital = meets({usd.low, usd.midpoint(), usd.high}, *request.capital_usd);
    const auto cost = cost_figure(rows[i], request.pay);
    if (!cost) continue;
    if (request.budget_usd) of.budget = meets(*cost, *request.budget_usd);
    known.push_back(i);
  }
  for (const std::size_t i : known) {
    const auto any = [&](const auto& is_so) {
      return std::any_of(known.begin(), known.end(),
                         [&](std::size_t k) { return k != i && is_so(rows[k]); });
    };
    const bool dominated =
        any([&](const PurchaseRow& other) { return beats(other, rows[i], request.pay); });
    const bool surely =
        dominated && any([&](const PurchaseRow& other) {
          return is_slower(other, rows[i]) && is_dearer(other, rows[i], request.pay);
        });
    choice.rows[i].status = !dominated ? ParetoStatus::front
                            : surely   ? ParetoStatus::dominated
                                       : ParetoStatus::perhaps;
    if (!dominated) choice.front.push_back(i);
  }
  std::stable_sort(choice.front.begin(), choice.front.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].time_days() < rows[b].time_days();
  });

  const bool by_deadline = request.deadline.has_value(), by_budget = request.budget_usd.has_value(),
             by_capital = request.capital_usd.has_value();
  const bool fastest_first = by_capital && !by_deadline && !by_budget;
  const auto cheaper = [&](std::size_t a, std::size_t b) {
    const Range cost_a = limited_cost(rows[a], request), cost_b = limited_cost(rows[b], request);
    // Without a price behind those with one, the fastest first.
    if (cost_a.known() != cost_b.known()) return cost_a.known();
    return cost_a.known() ? cost_a.midpoint() < cost_b.midpoint()
                          : rows[a].time_days() < rows[b].time_days();
  };
  const auto better = [&](std::size_t a, std::size_t b) {
    return fastest_first ? rows[a].time_days() < rows[b].time_days() : cheaper(a, b);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].has_plan()) continue;
    const auto keeps = [&](Meets wanted) {
      return is_at_least(choice.rows[i].deadline, wanted, by_deadline) &&
             is_at_least(choice.rows[i].budget, wanted, by_budget) &&
             is_at_least(choice.rows[i].capital, wanted, by_capital);
    };
    if (keeps(Meets::likely))
      choice.within.push_back(i);
    else if (keeps(Meets::perhaps))
      choice.perhaps.push_back(i);
  }
  std::stable_sort(choice.within.begin(), choice.within.end(), better);
  std::stable_sort(choice.perhaps.begin(), choice.perhaps.end(), better);

  // The row for which all limits would have to be relaxed by the least factor.
  const auto nearest_to = [&](const std::optional<double>& deadline_days) {
    std::optional<std::size_t> nearest;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].has_plan() || (by_budget && !cost_of(rows[i], request.pay).known()) ||
          (by_capital && !rows[i].hardware.usd.known()))
        continue;
      double over = 0.0;
      if (deadline_days) over = std::max(over, rows[i].time_days() / *deadline_days);
      if (by_budget)
        over = std::max(over, cost_of(rows[i], request.pay).midpoint() / *request.budget_usd);
      if (by_capital) over = std::max(over, rows[i].hardware.usd.midpoint() / *request.capital_usd);
      if (over < least) least = over, nearest = i;
    }
    return nearest;
  };
  if ((by_deadline || by_budget || by_capital) && choice.within.empty())
    choice.nearest =
        nearest_to(by_deadline ? std::optional{request.deadline->si() / 86400.0} : std::nullopt);

  for (const double days : {30.0, 60.0, 90.0, 180.0, 365.0}) {
    DeadlineChoice& of = choice.strip.emplace_back(DeadlineChoice{days, {}, {}});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].has_plan() || !limited_cost(rows[i], request).known()) continue;
      const bool keeps = rows[i].time_days() <= days &&
                         is_at_least(choice.rows[i].budget, Meets::likely, by_budget) &&
                         is_at_least(choice.rows[i].capital, Meets::likely, by_capital);
      if (keeps && (!of.row || cheaper(i, *of.row))) of.row = i;
    }
    if (!of.row) of.nearest = nearest_to(days);
  }
  return choice;
}

}  // namespace orrery
