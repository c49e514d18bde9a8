#include "sim/reliability/spare_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/core/random.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/run_simulation.hpp"

namespace orrery::spare_pool_test {
namespace {

constexpr Micros second = 1'000'000;
constexpr Micros day = 86'400 * second;

// 4 racks of 18 nodes, of which the job has `used` each.
ReplicateSetup racks_of(int island, int used) {
  ReplicateSetup setup;
  setup.units = 4 * used;
  setup.racks = {4, 18, island, 4 * (18 / island) - 4 * used / island};
  return setup;
}

// In whole racks of islands of two: a failed node takes one island, and so does a second one in the
// same rack; three take two. Four spare nodes are two islands.
TEST(SparePool, AFailedNodeTakesItsIsland) {
  const ReplicateSetup setup = racks_of(2, 18);
  SparePool pool{setup, 4};
  pool.lose(0, 10 * day, 0.0);
  pool.lose(0, 20 * day, 0.1);
  EXPECT_EQ(pool.missing(), 0);
  EXPECT_EQ(pool.ready(), 2);
  pool.lose(0, 30 * day, 0.9);
  EXPECT_EQ(pool.missing(), 0);
  pool.lose(0, 40 * day, 0.2);
  EXPECT_EQ(pool.missing(), 2);
  // The first to return leaves two in its rack: one island.
  EXPECT_EQ(pool.down_to(0), 10 * day);
  pool.settle(10 * day);
  EXPECT_EQ(pool.missing(), 0);
  // In ten days each three islands are away, two, two and one: six nodes, four and two.
  const std::vector<Micros> away = pool.with_away(50 * day);
  ASSERT_EQ(away.size(), 7u);
  EXPECT_EQ(away[0], 10 * day);
  EXPECT_EQ(away[2], 10 * day);
  EXPECT_EQ(away[4], 20 * day);
  EXPECT_EQ(away[6], 10 * day);
}

// Islands of 16 nodes in racks of 18: two nodes of each rack are idle, and take the place of two
// that fail. The third takes the island, for which a spare rack is needed.
TEST(SparePool, IdleNodesOfARackTakePlacesInIt) {
  const ReplicateSetup setup = racks_of(16, 16);
  SparePool pool{setup, 16};
  for (int node = 0; node < 2; ++node)
    for (const double rack : {0.1, 0.3, 0.6, 0.8}) pool.lose(node, day, rack);
  EXPECT_EQ(pool.missing(), 0);
  EXPECT_EQ(pool.ready(), 16);
  pool.lose(3, day, 0.1);
  EXPECT_EQ(pool.ready(), 0);
  EXPECT_EQ(pool.missing(), 0);
  pool.lose(4, day, 0.3);
  EXPECT_EQ(pool.missing(), 16);
  SparePool none{setup, 15};
  for (int node = 0; node < 3; ++node) none.lose(node, day, 0.5);
  EXPECT_EQ(none.missing(), 16);
}

// What is missing is what a count of all racks finds, whatever fails when.
TEST(SparePool, CountsAsTheRacksDo) {
  for (std::uint64_t drawn = 0; drawn < 100; ++drawn) {
    Random random{9, drawn, 0};
    const int island = 1 + static_cast<int>(random.below(6));
    const int used =
        island * (1 + static_cast<int>(random.below(static_cast<std::uint64_t>(18 / island))));
    const ReplicateSetup setup = racks_of(island, used);
    const int spares = static_cast<int>(random.below(20));
    SparePool pool{setup, spares};
    std::vector<std::pair<Micros, int>> down;  // End of the repair, rack.
    for (int event = 0; event < 40; ++event) {
      const Micros now = event * day;
      const int rack = static_cast<int>(random.below(4));
      const Micros repair = 1 + static_cast<Micros>(random.below(20 * 86'400)) * second;
      pool.lose(now, repair, (rack + 0.5) / 4.0);
      std::erase_if(down, [&](const auto& one) { return one.first <= now; });
      down.emplace_back(now + repair, rack);
      int room = spares / 18 * (18 / island) + spares % 18 / island;
      for (int i = 0; i < 4; ++i) {
        const auto of_rack = std::count_if(down.begin(), down.end(),
                                           [&](const auto& one) { return one.second == i; });
        room += std::max<int>(0, 18 - static_cast<int>(of_rack)) / island;
      }
      EXPECT_EQ(pool.missing(), std::max(0, setup.units - room * island)) << island << " " << used;
    }
  }
}

// Two racks of four nodes in islands of two, against all counts of both.
TEST(IslandsLost, AreThoseOfAllCountsOfTheRacks) {
  const Racks racks{2, 4, 2, 0};
  const double mean = 3.0;
  const auto poisson = [](int n) {
    return std::exp(-1.5 + n * std::log(1.5) - std::lgamma(n + 1));
  };
  for (int more = 0; more < 2; ++more)
    for (int most = -1; most <= 4; ++most) {
      double sum = 0.0, lost = 0.0;
      for (int a = 0; a < 40; ++a)
        for (int b = 0; b < 40; ++b) {
          const int islands = std::min(2, (a + more + 1) / 2) + std::min(2, (b + 1) / 2);
          if (islands <= most) sum += poisson(a) * poisson(b);
          lost += islands * poisson(a) * poisson(b);
        }
      EXPECT_NEAR(islands_lost_at_most(racks, most, mean, more), sum, 1e-12) << most << more;
      if (more == 0) {
        EXPECT_NEAR(islands_lost_per_unit(racks, mean), lost / mean, 1e-12);
      }
    }
}

// Islands of one node are Poisson's, and so they are in so many racks that no two of one fail.
TEST(IslandsLost, AreThoseOfPoissonWhereEachNodeIsOne) {
  for (const double mean : {0.3, 20.0, 900.0})
    for (const double part : {0.5, 1.0, 1.2}) {
      const int most = static_cast<int>(part * mean);
      EXPECT_EQ(islands_lost_at_most({}, most, mean), poisson_at_most(most, mean));
      EXPECT_NEAR(islands_lost_at_most({100'000'000, 2, 2, 0}, most, mean, 1),
                  poisson_at_most(most - 1, mean), 2e-3);
    }
}

// 8 s steps of 100 samples for so many days.
ReplicateSetup job(double days, const Racks& racks, int units) {
  ReplicateSetup setup;
  setup.phases = {{std::llround(days * 10'800) * 100, {{8 * second, 100}}, {38}, {0}}};
  setup.tiers = {{second, 20 * second, 10 * second}};
  setup.causes = {{0, 600 * second, true, false, 0}, {60 * second, 60 * second, false, false, 0}};
  setup.restart = 200 * second;
  setup.regroup = 40 * second;
  setup.units = units;
  setup.racks = racks;
  return setup;
}

FailureDistribution failures(std::vector<double> per_day) {
  FailureDistribution distribution;
  distribution.per_day = std::move(per_day);
  distribution.repair_us = {1e9, 1e11};  // Six hours on average.
  return distribution;
}

struct Sampled {
  double ettr = 0.0, goodput = 0.0;
};

// Shares of the time of all runs, without the wait for the last write.
Sampled sampled(const ReplicateSetup& setup, const FailureDistribution& distribution,
                int replicates) {
  double all = 0.0, steps = 0.0, productive = 0.0;
  for (const RunTotals& run : run_replicates(setup, distribution, 1, replicates)) {
    all += static_cast<double>(run.total() - setup.tiers.front().write);
    steps += run.ettr() * static_cast<double>(run.total());
    productive += static_cast<double>(run[RunTime::productive]);
  }
  return {steps / all, productive / all};
}

double work_of(const ReplicateSetup& setup) {
  const ReplicatePhase& phase = setup.phases.front();
  return static_cast<double>(phase.samples) / static_cast<double>(phase.by_away[0].samples) *
         static_cast<double>(phase.by_away[0].step);
}

// Jobs that wait for the nodes of their islands: 6 failures a day take a node, 1.5 of which are in
// repair on average.
TEST(PolicyShares, OfRacksAreThoseOfReplicates) {
  for (const auto& [racks, spares] : {std::pair{Racks{32, 18, 2, 0}, 8},
                                      {Racks{4, 18, 2, 0}, 6},
                                      {Racks{8, 18, 4, 0}, 16},
                                      {Racks{36, 18, 16, 0}, 0}}) {
    ReplicateSetup setup =
        job(60.0, racks, racks.count * (racks.size / racks.island * racks.island));
    setup.spares = spares;
    const FailureDistribution distribution = failures({6.0, 3.0});
    const PolicyShares shares =
        policy_shares(setup, distribution.per_day, distribution.repair_us, work_of(setup));
    const Sampled runs = sampled(setup, distribution, 3000);
    EXPECT_NEAR(runs.ettr / shares.ettr, 1.0, 2e-3) << racks.island << " " << spares;
  }
}

// Pools that are refilled, under the same failures with repairs of 0.3 hours to 23 days. Without a
// wait a pool of no spares is unlimited; refilled after the longest repair it is what it was; the
// sooner, the more of the run is retained, and as much as the closed form says.
TEST(PolicyShares, OfPoolsThatAreRefilledAreThoseOfReplicates) {
  for (const bool elastic : {false, true})
    for (const int spares : {0, 3}) {
      ReplicateSetup setup = job(1000.0, {}, 256);  // Long against a repair.
      setup.spares = spares;
      setup.elastic = elastic;
      setup.groups = elastic ? 64 : 1;
      setup.phases[0].samples *= setup.groups;
      setup.phases[0].by_away.clear();
      for (int away = 0; away < setup.groups; ++away)
        setup.phases[0].by_away.push_back({8 * second, 100 * (setup.groups - away)});
      FailureDistribution distribution = failures({0.1, 2.0});  // 0.4 are in repair on average.
      distribution.repair_us = {1e9, 1e11, 2e12};
      const auto of_goodput = [](const RunTotals& run) {
        return run.goodput() * static_cast<double>(run.total());
      };
      const auto outcome = [&](const ReplicateSetup& of) {
        double days = 0.0, steps = 0.0;
        for (const RunTotals& run : run_replicates(of, distribution, 1, 300))
          days += static_cast<double>(run.total()), steps += of_goodput(run);
        return steps / days;
      };
      const double never = outcome(setup);
      ReplicateSetup unlimited = setup, refilled = setup;
      unlimited.spares = unlimited_spares;
      double before = 1.0;
      for (const double hours : {0.0, 0.2, 2.0, 12.0, 100.0, 555.6}) {
        refilled.refill = static_cast<Micros>(hours * 3600e6);
        const double goodput = outcome(refilled);
        EXPECT_LE(goodput, before + 2e-4) << hours << " h, " << spares << " spares, " << elastic;
        EXPECT_GE(goodput, never - 2e-4) << hours << " h, " << spares << " spares, " << elastic;
        const double formula =
            policy_shares(refilled, distribution.per_day, distribution.repair_us, work_of(refilled))
                .goodput;
        EXPECT_NEAR(goodput / formula, 1.0, 1e-2) << hours << " h, " << spares << " " << elastic;
        if (hours == 0.0) {
          EXPECT_EQ(goodput, outcome(unlimited));
        }
        before = goodput;
      }
      EXPECT_EQ(before, never);
    }
}

// Little's law: units away are rate times mean repair, whatever the shape of the repair times, and
// whether or not the pool is refilled. Fleets in service: a day of each of them counts.
TEST(SparePool, UnitsAwayAreRateTimesMeanRepair) {
  const double mean = repair_within(std::vector{1e9, 1e11}, 1e300);
  for (const std::vector<double>& repair :
       {std::vector{mean, mean}, std::vector{1e9, 1e11}, std::vector{1e6, 1e8, 1e10, 1e11, 1e12}})
    for (const Micros refill : {ReplicateSetup{}.refill, day / 8}) {
      ReplicateSetup setup = job(300.0, {}, 4096);
      setup.spares = unlimited_spares;
      setup.refill = refill;
      setup.causes = {{0, 0, true, false, 0}};
      setup.restart = 0;
      FailureDistribution distribution = failures({8.0});
      distribution.repair_us = repair;
      distribution.before = static_cast<Micros>(repair.back());
      const auto runs = run_replicates(setup, distribution, 3, 60);
      const std::vector<double> shares = shares_away(runs);
      double away = 0.0;
      for (std::size_t i = 0; i < shares.size(); ++i) away += static_cast<double>(i) * shares[i];
      const double expected =
          8.0 * repair_within(repair, static_cast<double>(refill)) / static_cast<double>(day);
      EXPECT_NEAR(away / expected, 1.0, 0.02) << repair.size() << " " << refill;
    }
}

// Elastic jobs of 1,024 to 32,768 GPUs in nodes of 8, whose replicas are nodes, or 2 to 32 of them:
// fail as `default` has it with repairs of 6.6 days on average, with spares from none to more than
// are ever in repair. Runs are long against a repair. Within 0.4 % at 40 replicates.
TEST(PolicyShares, OfElasticJobsOfAllSizesAreThoseOfReplicates) {
  for (const int units : {128, 512, 2048, 4096})
    for (const int of_group : {1, 2, 16, 32}) {
      ReplicateSetup setup = job(400.0, {}, units);
      setup.elastic = true;
      setup.groups = units / of_group;
      setup.replicas_hold_all = of_group == 2;
      setup.phases[0].samples *= setup.groups;
      setup.phases[0].by_away.clear();
      for (int away = 0; away < setup.groups; ++away)
        setup.phases[0].by_away.push_back({8 * second, 100LL * (setup.groups - away)});
      FailureDistribution distribution = failures({3.23e-3 * units, 0.57e-3 * units});
      distribution.repair_us = {1e8, 1e11, 2e12};
      const double repair = repair_within(distribution.repair_us, 1e300) / static_cast<double>(day);
      const double load = 3.23e-3 * units * repair;
      double before = 0.0;
      for (const double part : {0.0, 0.3, 1.0, 2.0}) {
        setup.spares = static_cast<int>(part * load);
        const PolicyShares shares =
            policy_shares(setup, distribution.per_day, distribution.repair_us, work_of(setup));
        const Sampled runs = sampled(setup, distribution, 40);
        const std::string at = std::to_string(units) + " units, " + std::to_string(of_group) +
                               " a group, " + std::to_string(setup.spares) + " spares";
        EXPECT_NEAR(runs.goodput / shares.goodput, 1.0, 4e-3) << at;
        EXPECT_NEAR(runs.ettr / shares.ettr, 1.0, 4e-3) << at;
        EXPECT_GE(shares.goodput, before - 1e-9) << at;
        before = shares.goodput;
        // Without spares each node of its own is there for 1 / (1 + l r) of the time.
        if (of_group == 1 && part == 0.0) {
          EXPECT_NEAR(shares.goodput / shares.ettr * (1.0 + load / units), 1.0, 2e-3) << at;
        }
      }
    }
}

}  // namespace
}  // namespace orrery::spare_pool_test
