#include "sim/search/purchase.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/write_file.hpp"
#include "sim/search/search.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::purchase_test {
namespace {

constexpr double day = 86400.0;

PurchaseRequest small_request() {
  PurchaseRequest request;
  request.model = read_model("llama3-8b", test_place);
  request.tokens = 1e12;
  request.systems = {read_system("dgx-h100", test_place), read_system("gb200-nvl72", test_place)};
  request.gpus = {16, 64};
  request.most_batch = 128;
  request.fixed = {{"cp", {"1"}}};
  return request;
}

// Each row and each batch of it is what one search of them says.
TEST(Purchase, RowsAreSingleSearches) {
  const PurchaseRequest request = small_request();
  const Purchase purchase = buy(request);
  ASSERT_EQ(purchase.rows.size(), 4u);
  for (const PurchaseRow& row : purchase.rows) {
    ASSERT_TRUE(row.has_plan());
    EXPECT_EQ(row.uneven, 0);
    SearchRequest single;
    single.model = request.model;
    single.systems = {request.systems[row.system]};
    single.gpus = {row.gpus};
    single.gbs = {128, 64, 32};
    single.fixed = request.fixed;
    single.goal = Goal::training_time;
    single.tokens = request.tokens;
    single.list.most = 1;
    const Found best = search(single).plans.front();
    EXPECT_EQ(row.flags, best.flags);
    EXPECT_EQ(row.result->scenario.plan, best.result.scenario.plan);
    EXPECT_EQ(row.result->step_time, best.result.step_time);
    EXPECT_DOUBLE_EQ(row.days_middle, best.result.bill->time.si() / day);
    ASSERT_EQ(row.batches.size(), 4u);
    for (const BatchChoice& batch : row.batches) {
      single.gbs = {batch.gbs};
      const Found of_batch = search(single).plans.front();
      EXPECT_EQ(batch.flags, of_batch.flags);
      EXPECT_NEAR(batch.step / of_batch.result.step_time, 1.0, 1e-9);
      EXPECT_EQ(batch.beyond, batch.gbs == 256);
    }
  }
}

// 144 GPUs are 16 x 9 and the batch is a power of two: nine stages of 16 in domains of 72, none of
// which lies evenly. Few of their plans have to be simulated all the same.
TEST(Purchase, EndsWhereNoPlanLiesEvenly) {
  PurchaseRequest request = small_request();
  request.model = read_model("llama3-70b", test_place);
  request.systems = {read_system("gb200-nvl72", test_place)};
  request.gpus = {144};
  request.batches = {64};
  request.fixed = {{"mbs", {"1"}}, {"recompute", {"none"}}};
  const PurchaseRow row = buy(request).rows.front();
  ASSERT_TRUE(row.has_plan());
  EXPECT_EQ(row.result->scenario.plan.pp % 9, 0);
  EXPECT_GT(row.uneven, 0);  // Those whose passes straddle domains, too.
  EXPECT_LT(row.simulated, 100);
}

TEST(Purchase, WorkersChangeNothing) {
  PurchaseRequest request = small_request();
  const Purchase one = buy(request);
  request.workers = 3;
  const Purchase three = buy(request);
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].flags, three.rows[i].flags);
    EXPECT_EQ(one.rows[i].days_middle, three.rows[i].days_middle);
    EXPECT_EQ(one.rows[i].shares, three.rows[i].shares);
    EXPECT_EQ(one.rows[i].simulated, three.rows[i].simulated);
  }
}

// With prices that a hand can add up. 64 GPUs of GB200 lie in one domain of 72, which is bought.
TEST(Purchase, AddsMoneyUp) {
  const TemporaryFolder folder;
  const std::string prices = (folder.path() / "prices.json").string();
  write_file(prices, R"({"schema": "orrery.economics/1", "rent_usd_per_gpu_hour": 2,
    "server_usd_per_gpu": 30000, "server_watts_per_gpu": 1000, "pue": 1, "usd_per_kwh": 0.1,
    "switch_usd": 0, "switch_watts": 0, "cable_usd": 0, "hardware_years": 4})");
  PurchaseRequest request = small_request();
  request.economics = {prices};
  request.gpus = {64};
  for (const PurchaseRow& row : buy(request).rows) {
    const double days = row.days_middle;
    EXPECT_DOUBLE_EQ(cost_of(row, PayBy::rent).low, 64 * 24 * days * 2);
    EXPECT_EQ(row.hardware.gpus(), row.system == 0 ? 64 : 72);
    EXPECT_DOUBLE_EQ(row.hardware.usd.high, row.hardware.gpus() * 30000.0);
    EXPECT_DOUBLE_EQ(energy_kwh(row).low, 64 * 24 * days);
    // Of 4 x 365.25 days so many, and a tenth of a dollar for each kWh.
    EXPECT_NEAR(cost_of(row, PayBy::own).low,
                row.hardware.gpus() * 30000.0 * days / 1461 + 64 * 24 * days * 0.1, 1e-6);
    // A day costs 64 x 24 x $2 to rent, of which 64 x 24 x $0.10 would be paid anyway.
    EXPECT_NEAR(row.break_even_days.low, row.hardware.gpus() * 30000.0 / (64 * 24 * 1.9), 1e-6);
  }
}

TEST(Purchase, QuotesOfAGpuCountForIt) {
  const TemporaryFolder folder;
  const auto quote = [&](const std::string& gpu, double usd) {
    const std::string file = (folder.path() / (gpu + ".json")).string();
    write_file(file, R"({"schema": "orrery.economics/1", "gpu": ")" + gpu +
                         R"(", "rent_usd_per_gpu_hour": )" + std::to_string(usd) + "}");
    return file;
  };
  PurchaseRequest request = small_request();
  request.gpus = {16};
  request.economics = quote("h100-sxm", 2.0) + "," + quote("gb200", 5.0);
  const Purchase purchase = buy(request);
  for (const PurchaseRow& row : purchase.rows) {
    const Range usd = cost_of(row, PayBy::rent);
    const double hours = 16 * 24 * row.days_middle;
    EXPECT_NEAR(usd.low / hours, row.system == 0 ? 2.0 : 5.0, 1e-9);
    EXPECT_EQ(usd.low, usd.high);
  }
  request.economics += "," + quote("b200-sxm", 3.0);
  EXPECT_THROW(buy(request), Error);
}

TEST(Purchase, FailuresTakeTimeAndMoney) {
  PurchaseRequest request = small_request();
  request.gpus = {64};
  const Purchase calm = buy(request);
  request.reliability = read_reliability("meta-llama3", test_place);
  const Purchase rough = buy(request);
  for (std::size_t i = 0; i < calm.rows.size(); ++i) {
    const PurchaseRow &a = calm.rows[i], &b = rough.rows[i];
    EXPECT_EQ(a.days_middle, b.days_middle);
    EXPECT_GT(b.time_days(), a.time_days());
    EXPECT_LT(b.time_days(), 1.2 * a.time_days());
    EXPECT_LT(b.time_range().low, b.time_days());
    // Two independent errors: wider than each, narrower than both together.
    EXPECT_GT(b.time_range().high / b.time_days(), a.time_range().high / a.time_days());
    EXPECT_GT(cost_of(b, PayBy::rent).high, cost_of(a, PayBy::rent).high);
    EXPECT_GT(energy_kwh(b).low, energy_kwh(a).low);
  }
}

// Each row's days and money are those of orrery run with the same profile, and the spares that it
// pays for are bought.
TEST(Purchase, FailuresAndSparesAreThoseOfARun) {
  PurchaseRequest request = small_request();
  request.gpus = {64, 100, 1024};
  request.most_batch = 1024;
  request.fixed.push_back({"mbs", {"1"}});
  request.reliability = read_reliability("meta-llama3", test_place);
  const Purchase purchase = buy(request);
  int rows = 0, with_spares = 0;
  for (const PurchaseRow& row : purchase.rows) {
    if (!row.has_plan()) continue;
    const System& system = request.systems[row.system];
    RunQuestion question;
    question.tokens = request.tokens;
    question.reliability = *request.reliability;
    const Economics economics = read_economics(system.gpu.name, "");
    const TrainingRun run =
        training_run(row.result->scenario, row.result->step_time, question, economics);
    EXPECT_EQ(row.time_days(), run.figures.days.mean);
    EXPECT_EQ(cost_of(row, PayBy::rent).low, run.bill.rent_usd.low);
    EXPECT_EQ(cost_of(row, PayBy::rent).high, run.bill.rent_usd.high);
    EXPECT_EQ(energy_kwh(row).high, run.bill.energy_kwh.high);
    EXPECT_EQ(energy_cost(row).low, run.bill.energy_usd.low);
    const int spare_gpus = run.spares.kept * run.prepared.gpus_of_unit;
    with_spares += spare_gpus > 0;
    EXPECT_EQ(row.hardware.usd.low, hardware_for(system, row.gpus + spare_gpus, economics).usd.low);
    ++rows;
  }
  EXPECT_GE(rows, 5);
  EXPECT_GE(with_spares, 3);  // Idle trays of partly used racks need none.
}

// A row is priced as orrery estimate prices its plan, also where NVLink domains are not full.
TEST(Purchase, IsPricedAsAnEstimate) {
  PurchaseRequest request = small_request();
  request.gpus = {16, 100, 120, 144};
  for (const PurchaseRow& row : buy(request).rows) {
    if (!row.has_plan()) continue;
    const Bill& bill = *row.result->bill;
    EXPECT_EQ(row.hardware.usd.low, bill.hardware.usd.low);
    EXPECT_EQ(row.hardware.gpus(), bill.hardware.gpus());
    EXPECT_EQ(cost_of(row, PayBy::rent).high, bill.rent_usd.high);
    const int unit = row.system == 0 ? 8 : 72;
    EXPECT_EQ(row.hardware.units, (row.gpus + unit - 1) / unit);
  }
}

TEST(Affordable, IsTheLastSizeWithinTheSum) {
  const System nvl = read_system("gb200-nvl72", test_place),
               hgx = read_system("dgx-h100", test_place);
  for (const System& system : {nvl, hgx}) {
    const Economics economics = read_economics(system.gpu.name, "");
    const auto price = [&](int units) {
      return hardware_for(system, units * system.sold_together(), economics).usd;
    };
    for (const int units : {1, 2, 14, 100, 1000}) {
      EXPECT_EQ(affordable(system, economics, price(units).high)->surely.units, units);
      EXPECT_EQ(affordable(system, economics, price(units).low)->perhaps.units, units);
      EXPECT_EQ(affordable(system, economics, price(units).low - 1.0)->perhaps.units, units - 1);
      EXPECT_GE(affordable(system, economics, price(units).high)->perhaps.units, units);
    }
    EXPECT_EQ(affordable(system, economics, 1.0)->perhaps.units, 0);
    Economics unpriced = economics;
    unpriced.server_usd_per_gpu = {};
    EXPECT_FALSE(affordable(system, unpriced, 1e9));
  }
}

// Rent of one training does not matter to it, and the fastest comes first.
TEST(PurchaseChoice, CapitalLimitsThePurchase) {
  PurchaseRequest request = small_request();
  request.gpus = {16, 32, 64};
  const Purchase purchase = buy(request);
  const PurchaseRow& largest = purchase.rows[2];  // dgx-h100, 64 GPUs.
  for (const auto& [usd, expected] : {std::pair{largest.hardware.usd.high, Meets::surely},
                                      {largest.hardware.usd.midpoint(), Meets::likely},
                                      {largest.hardware.usd.low, Meets::perhaps},
                                      {largest.hardware.usd.low - 1.0, Meets::no}}) {
    request.capital_usd = usd;
    const PurchaseChoice choice = choose(purchase, request);
    EXPECT_EQ(choice.rows[2].capital, expected);
    EXPECT_FALSE(choice.rows[2].budget);
    const bool within = expected <= Meets::likely;
    EXPECT_EQ(std::count(choice.within.begin(), choice.within.end(), std::size_t{2}), within);
    for (std::size_t i = 1; i < choice.within.size(); ++i)
      EXPECT_LE(purchase.rows[choice.within[i - 1]].time_days(),
                purchase.rows[choice.within[i]].time_days());
  }
  request.capital_usd = 1.0;
  const PurchaseChoice none = choose(purchase, request);
  EXPECT_TRUE(none.within.empty());
  ASSERT_TRUE(none.nearest);
  EXPECT_EQ(purchase.rows[*none.nearest].gpus, 16);
}

// For each usual deadline the row is within all other limits, no other such row costs less of what
// is limited, and where none is, the answer is the one that misses by the least factor.
TEST(PurchaseChoice, RowsOfDeadlinesKeepToAllLimits) {
  PurchaseRequest request = small_request();
  request.gpus = {16, 32, 64};
  const Purchase purchase = buy(request);
  const std::vector<PurchaseRow>& rows = purchase.rows;
  std::vector<double> capitals, budgets;
  for (const PurchaseRow& row : rows) {
    capitals.push_back(row.hardware.usd.midpoint());
    budgets.push_back(cost_of(row, PayBy::rent).midpoint());
  }
  int found = 0, none = 0;
  const auto check = [&](std::optional<double> budget, std::optional<double> capital) {
    request.budget_usd = budget;
    request.capital_usd = capital;
    for (const DeadlineChoice& of : choose(purchase, request).strip) {
      const auto misses = [&](std::size_t i) {  // By the factor of its worst limit.
        return std::max({rows[i].time_days() / of.days, budget ? budgets[i] / *budget : 0.0,
                         capital ? capitals[i] / *capital : 0.0});
      };
      const std::vector<double>& cost = capital ? capitals : budgets;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (of.row && misses(i) <= 1.0) {
          EXPECT_LE(cost[*of.row], cost[i]);
        }
        if (!of.row) {
          EXPECT_GT(misses(i), 1.0);
          EXPECT_LE(misses(*of.nearest), misses(i));
        }
      }
      if (of.row) {
        EXPECT_LE(misses(*of.row), 1.0);
      }
      EXPECT_NE(of.row.has_value(), of.nearest.has_value());
      ++(of.row ? found : none);
    }
  };
  check({}, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check({}, capitals[i]);
    check(budgets[i], {});
    check(budgets[i], capitals[i]);
    check({}, 0.9 * capitals[i]);
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(none, 10);
}

TEST(Purchase, SaysWhyThereIsNoPlan) {
  PurchaseRequest request = small_request();
  request.systems = {read_system("dgx-a100-superpod", test_place)};
  request.gpus = {8, 64, 2048};
  request.model = read_model("llama3-70b", test_place);
  const Purchase purchase = buy(request);
  EXPECT_FALSE(purchase.rows[0].has_plan());
  EXPECT_NE(purchase.rows[0].refused.find("none fits"), std::string::npos);
  EXPECT_TRUE(purchase.rows[1].has_plan());
  EXPECT_FALSE(purchase.rows[2].has_plan());
  EXPECT_NE(purchase.rows[2].refused.find("1120"), std::string::npos);
  request.gpus = {8, 2048};
  EXPECT_THROW(buy(request), Error);
}

TEST(WhatBinds, IsTheLargestShareFromATwentiethOn) {
  //                   compute memory batch network scale-up exchange
  EXPECT_EQ(row_bottleneck({0.97, 0.01, 0.02, 0.03, 0.00, 0.0}), RowBottleneck::compute);
  EXPECT_EQ(row_bottleneck({0.90, 0.05, 0.02, 0.03, 0.00, 0.0}), RowBottleneck::memory);
  EXPECT_EQ(row_bottleneck({0.90, 0.05, 0.06, 0.03, 0.00, 0.0}), RowBottleneck::batch);
  EXPECT_EQ(row_bottleneck({0.60, 0.05, 0.06, 0.10, 0.30, 0.0}), RowBottleneck::scale_up);
  EXPECT_EQ(row_bottleneck({0.60, 0.05, 0.06, 0.10, 0.05, 0.2}), RowBottleneck::exchange);
}

// More memory, and a batch that every replica has work for.
TEST(WhatBinds, FollowsFromWhatIsShort) {
  PurchaseRequest request = small_request();
  request.systems = {read_system("dgx-h100", test_place)};
  request.gpus = {64};
  request.most_batch = 64;
  const PurchaseRow tight = buy(request).rows.front();
  EXPECT_GT(tight.shares[static_cast<std::size_t>(RowBottleneck::batch)], 0.0);
  request.max_memory = 0.5;
  const PurchaseRow small = buy(request).rows.front();
  EXPECT_GT(small.shares[static_cast<std::size_t>(RowBottleneck::memory)],
            tight.shares[static_cast<std::size_t>(RowBottleneck::memory)]);
}

// Rows of one system at one price: more GPUs are faster and, as overheads grow, dearer.
TEST(PurchaseChoice, TheFrontIsWhatNothingBeats) {
  PurchaseRequest request = small_request();
  const Purchase purchase = buy(request);
  const PurchaseChoice choice = choose(purchase, request);
  ASSERT_FALSE(choice.front.empty());
  for (std::size_t i = 0; i < purchase.rows.size(); ++i) {
    const auto beaten_by = [&](const PurchaseRow& other) {
      const PurchaseRow& row = purchase.rows[i];
      return other.time_days() <= row.time_days() &&
             cost_of(other, request.pay).midpoint() <= cost_of(row, request.pay).midpoint() &&
             other.gpus != row.gpus;
    };
    const bool beaten = std::any_of(purchase.rows.begin(), purchase.rows.end(), beaten_by);
    if (beaten) {
      EXPECT_NE(choice.rows[i].status, ParetoStatus::front) << i;
    }
  }
  for (std::size_t i = 1; i < choice.front.size(); ++i) {
    const PurchaseRow &a = purchase.rows[choice.front[i - 1]], &b = purchase.rows[choice.front[i]];
    EXPECT_LT(a.time_days(), b.time_days());
    EXPECT_GT(cost_of(a, request.pay).midpoint(), cost_of(b, request.pay).midpoint());
  }
}

// Limits at the ends of a row's own range.
TEST(PurchaseChoice, LimitsAreKeptToSurelyLikelyPerhapsOrNot) {
  PurchaseRequest request = small_request();
  request.gpus = {64};
  request.systems.pop_back();
  const Purchase purchase = buy(request);
  const PurchaseRow& row = purchase.rows.front();
  const auto verdict = [&](double days) {
    request.deadline = Seconds{days * day};
    return *choose(purchase, request).rows.front().deadline;
  };
  EXPECT_EQ(verdict(row.days.high * 1.001), Meets::surely);
  EXPECT_EQ(verdict(row.days.high * 0.999), Meets::likely);
  EXPECT_EQ(verdict(row.days_middle * 1.001), Meets::likely);
  EXPECT_EQ(verdict(row.days_middle * 0.999), Meets::perhaps);
  EXPECT_EQ(verdict(row.days.low * 1.001), Meets::perhaps);
  EXPECT_EQ(verdict(row.days.low * 0.999), Meets::no);
  request.deadline = Seconds{row.days_middle * 1.001 * day};
  EXPECT_EQ(choose(purchase, request).within, std::vector<std::size_t>{0});
  request.budget_usd = cost_of(row, PayBy::rent).midpoint() * 0.99;
  const PurchaseChoice dear = choose(purchase, request);
  EXPECT_TRUE(dear.within.empty());
  EXPECT_EQ(dear.perhaps, std::vector<std::size_t>{0});
  EXPECT_EQ(dear.nearest, std::optional<std::size_t>{0});
}

// A price that is not known is no price: the row has days, and keeps to no budget.
TEST(PurchaseChoice, AnUnknownPriceIsNotGuessed) {
  PurchaseRequest request = small_request();
  request.systems = {read_system("l40s-pcie", test_place)};
  request.gpus = {16};
  request.budget_usd = 1e12;
  const Purchase purchase = buy(request);
  ASSERT_TRUE(purchase.rows.front().has_plan());
  EXPECT_FALSE(cost_of(purchase.rows.front(), PayBy::rent).known());
  EXPECT_FALSE(purchase.rows.front().own_usd.known());
  const PurchaseChoice choice = choose(purchase, request);
  EXPECT_EQ(choice.rows.front().status, ParetoStatus::unknown);
  EXPECT_FALSE(choice.rows.front().budget);
  EXPECT_TRUE(choice.within.empty());
}

}  // namespace
}  // namespace orrery::purchase_test
