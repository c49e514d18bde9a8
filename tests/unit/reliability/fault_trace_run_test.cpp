// The fleet of workloads/faults/stepfun.json: published figures of its first half, its replay, and
// what a profile of its first half predicts of the second.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/run_simulation.hpp"

namespace orrery::fault_trace_run_test {
namespace {

constexpr Seconds day{86400.0};
constexpr Seconds half = 174.49 * day;

// From `begin` on for half of the record. What lasts beyond the part ends with it.
FaultTrace part(Seconds begin) {
  FaultTrace trace = read_fault_trace("stepfun", {}, {});
  trace.length = half;
  std::vector<ServerFault> faults;
  for (FaultTrace::Cause& cause : trace.causes) cause.faults = 0;
  for (ServerFault fault : trace.faults) {
    fault.start = fault.start - begin;
    fault.end = fault.end - begin;
    if (fault.start >= half || fault.end <= Seconds{}) continue;
    trace.causes[fault.cause].faults += fault.start >= Seconds{};
    faults.push_back(fault);
  }
  trace.faults = std::move(faults);
  return trace;
}

// Of the time until `end`, the shares in which 0, 1, ... servers were down.
std::vector<double> down_in(const FaultTrace& trace, Seconds end) {
  std::vector<std::pair<double, int>> steps;
  for (const ServerFault& fault : trace.faults) {
    if (fault.start >= end) continue;
    steps.emplace_back(std::max(0.0, fault.start.si()), 1);
    steps.emplace_back(std::min(end, fault.end).si(), -1);
  }
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return a.first < b.first || (a.first == b.first && a.second > b.second);
  });
  std::vector<double> shares;
  double last = 0.0;
  int down = 0;
  steps.emplace_back(end.si(), 0);
  for (const auto& [at, by] : steps) {
    shares.resize(std::max(shares.size(), static_cast<std::size_t>(down) + 1));
    shares[static_cast<std::size_t>(down)] += (at - last) / end.si();
    last = at;
    down += by;
  }
  return shares;
}

int quantile(const std::vector<double>& shares, double share) {
  double sum = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if ((sum += shares[i]) >= share) return static_cast<int>(i);
  return static_cast<int>(shares.size());
}

// A job on `units` of 400 servers, all others of which are its spares.
ReplicateSetup job_of(int units, std::size_t causes) {
  ReplicateSetup setup;
  setup.phases = {{whole_micros(half) / 1'000'000, {{1'000'000, 1}}, {3600}, {0}}};
  setup.tiers = {{0, 0, 0}};
  setup.causes.assign(causes, {0, 0, true, false, 0});
  setup.spares = unlimited_spares;
  setup.units = units;
  setup.fleet = 400;
  return setup;
}

// Shou et al., as counted in the first half: 11.65 servers down on average, 7 in half of the time,
// 26, 28 and 32 in 90, 95 and 99 % of it.
TEST(FaultReplay, StepFunsFleetIsDownAsPublished) {
  const std::vector<double> shares = down_in(part(Seconds{}), half);
  double mean = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) mean += static_cast<double>(i) * shares[i];
  EXPECT_NEAR(mean, 11.65, 0.005);
  EXPECT_EQ(quantile(shares, 0.5), 7);
  EXPECT_EQ(quantile(shares, 0.9), 26);
  EXPECT_EQ(quantile(shares, 0.95), 28);
  EXPECT_EQ(quantile(shares, 0.99), 32);

  const FaultTrace trace = read_fault_trace("stepfun", {}, {});
  const FaultRecord record = record_of(trace);
  const RunTotals run = run_replicate(job_of(256, trace.causes.size()), FaultReplay{record, 1, 0});
  const std::vector<double> replayed = shares_away({&run, 1});
  const Seconds end{static_cast<double>(run.total()) / 1e6};
  EXPECT_GT(end, half);  // By what was redone.
  const std::vector<double> was = down_in(trace, end);
  ASSERT_EQ(replayed.size(), was.size());
  for (std::size_t i = 0; i < was.size(); ++i) EXPECT_NEAR(replayed[i], was[i], 1e-9) << i;
}

// 11 servers in 90 % and 13 in 99 % of the second half are within what the first half's profile
// says of single fleets.
TEST(FaultReplay, StepFunsFirstHalfPredictsTheSecond) {
  const std::vector<double> second = down_in(part(half), half);
  EXPECT_EQ(quantile(second, 0.9), 11);
  EXPECT_EQ(quantile(second, 0.99), 13);
  const Reliability profile = profile_of(part(Seconds{}), read_reliability("default", {}), 8);
  const FailureDistribution distribution = distribution_of(profile, 3200);
  const auto runs = run_replicates(job_of(0, profile.causes.size()), distribution, 1, 1000);
  for (const double share : {0.9, 0.99}) {
    std::vector<double> sampled;
    for (const RunTotals& run : runs) sampled.push_back(units_away({&run, 1}, share));
    const ChanceRange range = chance_range(sampled);
    const int was = quantile(second, share);
    EXPECT_LE(range.low, was) << share;
    EXPECT_GE(range.high, was) << share;
  }
}

}  // namespace
}  // namespace orrery::fault_trace_run_test
