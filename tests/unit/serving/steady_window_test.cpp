#include "sim/serving/steady_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/core/random.hpp"

namespace orrery::steady_window_test {
namespace {

struct Made {
  RequestList list;
  std::vector<RequestTimes> times;
  ReplayCounts counts;

  SteadyWindow measured(std::int64_t skipped = -1, const std::optional<Slo>& slo = {}) {
    return measure_steady(list, times, skipped, slo, counts);
  }
};

// Requests sent every `gap` seconds, each of 11 tokens: the first after a tenth of its time.
Made every(double gap, int requests, const std::function<double(int)>& e2e) {
  Made made;
  for (int i = 0; i < requests; ++i) {
    Request request;
    request.arrival = Seconds{gap * i};
    request.prompt_tokens = 100;
    request.output_tokens = 11;
    made.list.requests.push_back(request);
    RequestTimes of;
    of.request = static_cast<std::uint32_t>(i);
    of.arrival = request.arrival;
    of.e2e = Seconds{e2e(i)};
    of.ttft = 0.1 * of.e2e;
    of.tpot = (of.e2e - of.ttft) / 10.0;
    made.times.push_back(of);
    made.counts.finish(of, 100, 11, {});
    ReplayTotals& totals = made.counts.totals;
    totals.first_arrival = std::min(totals.first_arrival, of.arrival);
    totals.end = std::max(totals.end, of.arrival + of.e2e);
  }
  return made;
}

TEST(SteadyWindow, RatesAreThoseOfTheLoadHoweverLongTheDrain) {
  for (const double e2e : {0.5, 5.0, 20.0}) {
    Made made = every(0.1, 3000, [&](int) { return e2e; });
    const SteadyWindow window = made.measured();
    ASSERT_FALSE(window.whole);
    EXPECT_NEAR(window.output_tokens / window.span().si(), 110.0, 0.5) << e2e;
    EXPECT_NEAR(window.prompt_tokens / window.span().si(), 1000.0, 5.0) << e2e;
    EXPECT_NEAR(window.ended / window.span().si(), 10.0, 0.1) << e2e;
    EXPECT_NEAR(window.ttft.mean, 0.1 * e2e, 1e-9);
    EXPECT_NEAR(window.ttft.half, 0.0, 1e-9);
    // One request's time is left out at each end.
    EXPECT_NEAR(window.begin.si(), e2e, 0.11);
    EXPECT_NEAR(window.end.si(), 299.9 - e2e, 0.11);
    EXPECT_TRUE(window.steady);
    EXPECT_EQ(made.counts.totals.finished, window.requests);
    EXPECT_EQ(made.counts.ttft.count(), static_cast<std::uint64_t>(window.requests));
  }
}

TEST(SteadyWindow, LeavesOutAWarmUpThatShows) {
  Made made = every(0.1, 4000, [](int i) { return (i < 300 ? 6.0 : 1.0) + 0.01 * (i % 7); });
  const SteadyWindow window = made.measured();
  EXPECT_GE(window.warm_up, 300);
  EXPECT_LE(window.warm_up, 400);
  EXPECT_NEAR(made.counts.e2e.mean().si(), 1.03, 1e-3);
}

TEST(SteadyWindow, TheUsersWarmUpIsTakenAsItIs) {
  for (const int skipped : {0, 1, 500}) {
    Made made = every(0.1, 1000, [](int) { return 1.0; });
    const SteadyWindow window = made.measured(skipped);
    EXPECT_EQ(window.warm_up, skipped);
    EXPECT_NEAR(window.begin.si(), 0.1 * skipped, 1e-9);
  }
}

TEST(SteadyWindow, ABacklogThatGrowsIsAnOverload) {
  // A server answers 9 a second of 10 that come.
  Made made = every(0.1, 3000, [](int i) { return 1.0 + i * (1.0 / 9.0 - 0.1); });
  EXPECT_TRUE(made.measured().overloaded);
  Made steady = every(0.1, 3000, [](int i) { return 1.0 + 0.3 * (i % 10); });
  EXPECT_FALSE(steady.measured().overloaded);
}

// An engine that takes `slots` requests at once, each for `service` seconds, first come first
// served; all have eleven tokens. `a_second` requests come.
Made engine_of(double a_second, int requests, int slots, double service) {
  std::vector<double> free(static_cast<std::size_t>(slots), 0.0);
  std::vector<double> begun;
  for (int i = 0; i < requests; ++i) {
    const auto first = std::min_element(free.begin(), free.end());
    begun.push_back(std::max(*first, i / a_second));
    *first = begun.back() + service;
  }
  Made made = every(1.0 / a_second, requests, [&](int i) {
    return begun[static_cast<std::size_t>(i)] + service - i / a_second;
  });
  for (std::size_t i = 0; i < begun.size(); ++i) {
    RequestTimes& of = made.times[i];
    of.queue = Seconds{begun[i] - static_cast<double>(i) / a_second};
    of.ttft = of.queue + Seconds{0.1 * service};
    of.tpot = (of.e2e - of.ttft) / 10.0;
  }
  return made;
}

// 40 slots of 4 s answer ten requests a second, however many come.
TEST(SteadyWindow, AnOverloadedEngineMakesWhatItCan) {
  for (const double a_second : {11.0, 20.0, 100.0, 1000.0})
    for (const int requests : {1000, 4000, 20000}) {
      if (a_second < 15.0 && requests < 4000) continue;  // Chance would do as much.
      Made made = engine_of(a_second, requests, 40, 4.0);
      const SteadyWindow window = made.measured();
      EXPECT_TRUE(window.overloaded) << a_second << " " << requests;
      const double rate = window.ended / window.span().si();
      EXPECT_NEAR(rate, 10.0, 0.6) << a_second << " " << requests;
    }
}

// Nine of ten slots are in use, and a tenth of a run fills them.
TEST(SteadyWindow, ARunThatFillsTheEngineIsNoOverload) {
  for (const int requests : {60, 80, 120, 200, 400, 4000}) {
    Made made = engine_of(9.0, requests, 40, 4.0);
    EXPECT_FALSE(made.measured().overloaded) << requests;
  }
}

TEST(SteadyWindow, FewRequestsCountAsAWhole) {
  Made made = every(1.0, 20, [](int) { return 5.0; });
  const SteadyWindow window = made.measured();
  EXPECT_TRUE(window.whole);
  EXPECT_EQ(window.requests, 20);
  EXPECT_NEAR(window.span().si(), 24.0, 1e-9);
}

TEST(SteadyWindow, AttainmentIsThatOfItsRequests) {
  Slo slo;
  slo.ttft = Seconds{0.1};
  Made made = every(0.1, 2000, [](int i) { return i % 4 == 0 ? 2.0 : 1.0; });
  const SteadyWindow window = made.measured(-1, slo);
  EXPECT_NEAR(window.attainment.mean, 0.75, 0.002);
  EXPECT_NEAR(static_cast<double>(made.counts.totals.within_slo) /
                  static_cast<double>(made.counts.totals.finished),
              window.attainment.mean, 1e-12);
}

// Independent values, and ones that each follow the last.
TEST(BatchMean, HoldsTheTrueMeanInNineOfTen) {
  for (const double correlation : {0.0, 0.9}) {
    int inside = 0;
    constexpr int draws = 1000;
    for (int draw = 0; draw < draws; ++draw) {
      Random random{static_cast<std::uint64_t>(draw) + 1};
      std::vector<double> values;
      double last = random.normal();
      for (int i = 0; i < 2000; ++i) {
        last = correlation * last + std::sqrt(1.0 - correlation * correlation) * random.normal();
        values.push_back(last);
      }
      const SampledMean found = batch_mean(values);
      inside += std::abs(found.mean) <= found.half ? 1 : 0;
    }
    EXPECT_GE(inside, 0.88 * draws) << correlation;
    EXPECT_LE(inside, 0.96 * draws) << correlation;
  }
}

}  // namespace
}  // namespace orrery::steady_window_test
