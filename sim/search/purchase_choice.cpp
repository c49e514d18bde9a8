#include "sim/search/purchase_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

// A figure that a limit or a front compares.
struct Figure {
  double low = 0.0, middle = 0.0, high = 0.0;
};

Figure days_of(const PurchaseRow& row) {
  return {row.time_range().low, row.time_days(), row.time_range().high};
}

// At the ends of prices and of the time. Nothing where a price is not known.
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
bool is_at_least(const std::optional<Meets>& verdict, Meets wanted, bool asked) {
  return !asked || (verdict && *verdict <= wanted);
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

const std::string& name(Standing standing) {
  static const std::array<std::string, 4> names{"unknown", "front", "perhaps", "beaten"};
  return names[static_cast<std::size_t>(standing)];
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
    const bool beaten =
        any([&](const PurchaseRow& other) { return beats(other, rows[i], request.pay); });
    const bool surely =
        beaten && any([&](const PurchaseRow& other) {
          return is_slower(other, rows[i]) && is_dearer(other, rows[i], request.pay);
        });
    choice.rows[i].standing = !beaten  ? Standing::front
                              : surely ? Standing::beaten
                                       : Standing::perhaps;
    if (!beaten) choice.front.push_back(i);
  }
  std::stable_sort(choice.front.begin(), choice.front.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].time_days() < rows[b].time_days();
  });

  const auto cheaper = [&](std::size_t a, std::size_t b) {
    const Range cost_a = cost_of(rows[a], request.pay), cost_b = cost_of(rows[b], request.pay);
    // Without a price behind those with one, the fastest first.
    if (cost_a.known() != cost_b.known()) return cost_a.known();
    return cost_a.known() ? cost_a.midpoint() < cost_b.midpoint()
                          : rows[a].time_days() < rows[b].time_days();
  };
  const bool by_deadline = request.deadline.has_value(), by_budget = request.budget_usd.has_value();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].has_plan()) continue;
    const auto keeps = [&](Meets wanted) {
      return is_at_least(choice.rows[i].deadline, wanted, by_deadline) &&
             is_at_least(choice.rows[i].budget, wanted, by_budget);
    };
    if (keeps(Meets::likely))
      choice.within.push_back(i);
    else if (keeps(Meets::perhaps))
      choice.perhaps.push_back(i);
  }
  std::stable_sort(choice.within.begin(), choice.within.end(), cheaper);
  std::stable_sort(choice.perhaps.begin(), choice.perhaps.end(), cheaper);

  // By how much the limits would have to give, as a factor on all of them.
  double least = std::numeric_limits<double>::infinity();
  if ((by_deadline || by_budget) && choice.within.empty())
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].has_plan() || (by_budget && !cost_of(rows[i], request.pay).known())) continue;
      double over = 0.0;
      if (by_deadline)
        over = std::max(over, rows[i].time_days() * 86400.0 / request.deadline->si());
      if (by_budget)
        over = std::max(over, cost_of(rows[i], request.pay).midpoint() / *request.budget_usd);
      if (over < least) least = over, choice.nearest = i;
    }

  for (const double days : {30.0, 60.0, 90.0, 180.0, 365.0}) {
    DeadlineChoice& of = choice.strip.emplace_back(DeadlineChoice{days, {}});
    for (const std::size_t i : known)
      if (rows[i].time_days() <= days && (!of.row || cheaper(i, *of.row))) of.row = i;
  }
  return choice;
}

}  // namespace orrery
