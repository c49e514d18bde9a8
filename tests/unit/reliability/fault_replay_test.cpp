#include "sim/reliability/fault_replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/reliability/run_simulation.hpp"

namespace orrery::fault_replay_test {
namespace {

constexpr Micros second = 1'000'000;
constexpr Micros day = 86'400 * second;

// `faults` of one of `fleet` units after another, at whole days, for 1, 2, 3, 1, ... days.
FaultRecord record_of(int fleet, int faults, Micros length) {
  FaultRecord record;
  record.length = length;
  for (int i = 0; i < faults; ++i)
    record.faults.push_back({(i + 1) * day, (i % 3 + 1) * day, i % 2, 0});
  for (std::size_t i = 0; i < record.faults.size(); ++i) {
    record.faults[i].up = fleet;
    for (std::size_t j = 0; j < i; ++j)
      record.faults[i].up -= record.faults[j].at + record.faults[j].repair > record.faults[i].at;
  }
  return record;
}

// How long 0, 1, ... units of the fleet were down between `from` and `end` after it, by counting
// anew between any two events.
std::vector<Micros> down_until(const FaultRecord& record, Micros from, Micros end) {
  std::vector<Micros> borders{0, end};
  const auto in_run = [&](Micros at, Micros pass) { return pass * record.length + at - from; };
  std::vector<std::pair<Micros, Micros>> spans;
  for (Micros pass = 0; in_run(0, pass) < end; ++pass)
    for (const FaultRecord::Fault& fault : record.faults)
      spans.emplace_back(in_run(fault.at, pass), in_run(fault.at + fault.repair, pass));
  for (const auto& [start, finish] : spans)
    for (const Micros at : {start, finish})
      if (at > 0 && at < end) borders.push_back(at);
  std::sort(borders.begin(), borders.end());
  std::vector<Micros> with(50);
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    std::size_t down = 0;
    for (const auto& [start, finish] : spans) down += start <= borders[i] && borders[i] < finish;
    with[down] += borders[i + 1] - borders[i];
  }
  while (with.back() == 0) with.pop_back();
  return with;
}

ReplicateSetup job(int units, int fleet, double days) {
  ReplicateSetup setup;
  setup.phases = {
      {static_cast<std::int64_t>(days * 8640.0) * 100, {{10 * second, 100}}, {360}, {0}}};
  setup.tiers = {{second, 5 * second, 5 * second}};
  setup.causes = {{0, 600 * second, true, false, 0}, {60 * second, 60 * second, true, false, 0}};
  setup.restart = 200 * second;
  setup.spares = unlimited_spares;
  setup.units = units;
  setup.fleet = fleet;
  return setup;
}

// To the microsecond, whatever part of the fleet the job is, wherever it begins, and where it takes
// longer than the record.
TEST(FaultReplay, TheFleetIsDownAsItWas) {
  const FaultRecord record = record_of(20, 40, 60 * day);
  for (const int units : {1, 12, 17})
    for (std::uint64_t replicate = 0; replicate < 20; ++replicate) {
      const RunTotals run = run_replicate(job(units, 20, 75.0), FaultReplay{record, 7, replicate});
      ASSERT_TRUE(run.finished);
      const Micros from = FaultReplay{record, 7, replicate}.begins_at();
      EXPECT_EQ(from > 0, replicate > 0);
      EXPECT_EQ(run.with_away, down_until(record, from, run.total()))
          << units << " units, replicate " << replicate;
    }
}

TEST(FaultReplay, TimeAddsUpAndTheSameSeedIsTheSameRun) {
  const FaultRecord record = record_of(20, 40, 60 * day);
  const auto runs = run_replicates(job(12, 20, 75.0), record, 3, 50);
  const auto again = run_replicates(job(12, 20, 75.0), record, 3, 50);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(std::accumulate(runs[i].with_away.begin(), runs[i].with_away.end(), Micros{}),
              runs[i].total());
    EXPECT_EQ(runs[i].of, again[i].of);
    EXPECT_EQ(runs[i].interruptions, again[i].interruptions);
  }
}

// A job on the whole fleet meets every fault and waits for each repair; one on half of it meets
// half of them on average.
TEST(FaultReplay, StrikesTheUnitsInUse) {
  FaultRecord apart;
  apart.length = 400 * day;
  for (int i = 0; i < 40; ++i) apart.faults.push_back({(10 * i + 5) * day, day, 0, 10});
  const RunTotals whole = run_replicate(job(10, 10, 300.0), FaultReplay{apart, 1, 0});
  EXPECT_EQ(whole.all_interruptions(), static_cast<int>((whole.total() + 5 * day) / (10 * day)));
  EXPECT_GT(whole[RunTime::waiting], whole.all_interruptions() * (day - 700 * second));
  EXPECT_EQ(run_replicate(job(5, 10, 300.0), FaultReplay{apart, 1, 0})[RunTime::waiting], 0);
  double struck = 0.0;
  for (const RunTotals& run : run_replicates(job(5, 10, 300.0), apart, 1, 1000))
    struck += run.all_interruptions() / 1000.0;
  EXPECT_NEAR(struck, 15.0, 0.3);
}

}  // namespace
}  // namespace orrery::fault_replay_test
