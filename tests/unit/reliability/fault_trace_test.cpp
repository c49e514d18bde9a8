#include "sim/reliability/fault_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::fault_trace_test {
namespace {

constexpr Seconds day{86400.0};

FaultTrace parsed(const std::string& text, std::optional<int> servers = {}) {
  return parse_fault_trace(JsonValue::parse(text, "x.json"), servers);
}

FaultTrace small() {
  return parsed(R"({"schema": "orrery.faults/1", "servers": 4, "length": "100 d", "faults": [
    {"server": "b", "start": "50 d", "cause": "fan", "group": "host"},
    {"server": "a", "start": "1 d", "end": "3 d", "cause": "GPU", "group": "gpu"},
    {"server": "a", "start": "2 d", "end": "4 d", "cause": "NIC", "group": "network"},
    {"server": "c", "start": "3 d", "end": "5 d", "cause": "GPU", "group": "gpu"}]})");
}

// Overlapping faults of one server are one, of the cause that took it away; a fault without an end
// lasts until the end of the record.
TEST(FaultTrace, SpansOfEachServer) {
  const FaultTrace trace = small();
  ASSERT_EQ(trace.faults.size(), 3u);
  EXPECT_EQ(trace.faults[0].start, day);
  EXPECT_EQ(trace.faults[0].end, 4.0 * day);
  EXPECT_EQ(trace.faults[1].down_before, 1);
  EXPECT_EQ(trace.faults[2].end, 100.0 * day);
  EXPECT_EQ(trace.faults[2].down_before, 0);
  ASSERT_EQ(trace.causes.size(), 2u);  // No fault is the NIC's.
  EXPECT_EQ(trace.causes[0].name, "fan");
  EXPECT_EQ(trace.causes[1].faults, 2);
  EXPECT_EQ(trace.faults[0].cause, 1u);
}

TEST(FaultTrace, TheListThatInfiniteHbdPublished) {
  const std::string text = R"([
    {"node_id": "a", "event_time": 1.0, "event_type": "fault_start",
     "fault_type": {"Level": "Hardware Failure", "Class": "Parameter Plane Cable", "Desc": ""}},
    {"node_id": "b", "event_time": 1.5, "event_type": "fault_start",
     "fault_type": {"Level": "Other Failure", "Class": "Unknown Error", "Desc": ""}},
    {"node_id": "a", "event_time": 2.0, "event_type": "fault_end",
     "fault_type": {"Level": "Hardware Failure", "Class": "Parameter Plane Cable", "Desc": ""}}])";
  const FaultTrace trace = parsed(text, 400);
  ASSERT_EQ(trace.faults.size(), 2u);
  EXPECT_EQ(trace.length, 2.0 * day);
  EXPECT_EQ(trace.causes[trace.faults[0].cause].group, "network");
  EXPECT_EQ(trace.causes[trace.faults[1].cause].group, "host");
  EXPECT_EQ(trace.faults[1].end, 2.0 * day);
  EXPECT_EQ(error_text([&] { parsed(text); }),
            "x.json: does not say how many servers the fleet has, with those that never failed; "
            "add --servers N");
  EXPECT_THAT(error_text([&] { parsed(text, 1); }),
              ::testing::HasSubstr("names 2 servers, more than the 1 of the fleet"));
}

// 4 servers of 8 GPUs for 100 days: 3,200 GPU-days with two faults of GPUs and one of a fan.
TEST(FaultTrace, AsAProfile) {
  const Reliability profile = profile_of(small(), read_reliability("default", {}), 8);
  ASSERT_EQ(profile.causes.size(), 2u);
  EXPECT_DOUBLE_EQ(profile.causes[1].per_gpu_day, 2.0 / 3200.0);
  EXPECT_EQ(profile.groups[profile.causes[1].group].name, "gpu");
  EXPECT_DOUBLE_EQ(profile.events(), 3.0);
  EXPECT_EQ(profile.repair.front(), 2.0 * day);
  EXPECT_EQ(profile.repair[10], 3.0 * day);
  EXPECT_EQ(profile.repair.back(), 50.0 * day);
  // In three months of 29 days 2, 1 and 0 faults: mean 1, variance 1, no more than by counting.
  EXPECT_DOUBLE_EQ(profile.month_deviation, 0.0);
  EXPECT_EQ(profile.batches, std::vector<double>{3.0});  // Each alone.
}

// What the profile `stepfun` was counted from, in its first half: 313 faults, and in six months of
// 29 days a rate that deviates by 0.70, in batches.
TEST(FaultTrace, StepFunsFirstHalfIsItsProfile) {
  FaultTrace trace = read_fault_trace("stepfun", {}, {});
  EXPECT_EQ(trace.servers, 400);
  trace.length = 174.49 * day;
  std::erase_if(trace.faults, [&](const ServerFault& one) { return one.start >= trace.length; });
  for (FaultTrace::Cause& cause : trace.causes) cause.faults = 0;
  for (const ServerFault& fault : trace.faults) ++trace.causes[fault.cause].faults;
  const Reliability counted = profile_of(trace, read_reliability("default", {}), 8);
  const Reliability profile = read_reliability("stepfun", {});
  EXPECT_EQ(trace.faults.size(), 313u);
  EXPECT_NEAR(counted.per_day(3200), profile.per_day(3200), 1e-9);
  EXPECT_NEAR(counted.month_deviation, profile.month_deviation, 0.005);
  EXPECT_EQ(counted.batches, profile.batches);
  ASSERT_EQ(counted.repair.size(), profile.repair.size());
  // Of 313 times, neighbours are up to a tenth apart.
  for (std::size_t i = 2; i < counted.repair.size(); ++i)
    EXPECT_NEAR(counted.repair[i] / profile.repair[i], 1.0, 0.1) << i;
}

}  // namespace
}  // namespace orrery::fault_trace_test
