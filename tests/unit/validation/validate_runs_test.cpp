// Each published figure of whole runs, within a tolerance that was set before it was predicted.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "sim/validation/validate.hpp"

namespace orrery::validate_runs_test {
namespace {

/// Of a figure: by how much a prediction may differ, in its unit or as a share of it.
struct Tolerance {
  double absolute = 0.0, share = 0.0;
};

Tolerance absolute(double by) { return {by, 0.0}; }
Tolerance share(double of) { return {0.0, of}; }

// Bounds that were published ("above 0.9") have none: they hold.
const std::map<std::string, Tolerance>& tolerances() {
  static const std::map<std::string, Tolerance> all{
      {"rsc-mttf-16384 mttf_h", share(0.02)},
      {"rsc-mttf-131072 mttf_h", share(0.021)},  // 0.2254 h, published as 0.23.
      {"rsc-ettr-16000-hourly ettr", absolute(0.03)},
      {"rsc-ettr-16000-5min ettr", absolute(0.03)},
      {"rsc-ettr-8000-30min ettr", absolute(0.03)},
      {"rsc-ettr-4096-hourly ettr", {}},
      {"rsc-ettr-100k ettr", absolute(0.05)},
      {"rsc-ettr-12k-write-10s ettr", absolute(0.03)},
      {"llama3-interruptions interruptions", absolute(1.0)},
      {"llama3-effective-time ettr", {}},
      // Hardware alone is to give 0.97 to 0.985 of the 0.922 that were derived.
      {"bloom-run ettr", absolute(0.063)},
      // Of 176.247 billion parameters; published is 14 bytes of 176.
      {"bloom-checkpoint checkpoint_bytes", share(0.0015)},
      {"bloom-checkpoint write_s", share(0.1)},
      // Not more than the benchmark's 2.5 % and 0.2 points; published are 5.7 under load.
      {"bloom-slow-gpu slow_step_ratio", absolute(0.05)},
      {"bloom-ramp-192 throughput_ratio", absolute(0.05)},
      {"bloom-ramp-16 throughput_ratio", absolute(0.05)},
      {"bytecheckpoint-405b-save write_s", share(0.1)},
      {"bytecheckpoint-405b-load load_s", share(0.1)},
      {"bytecheckpoint-175b-hdfs write_s", share(0.1)},
      {"fthsdp-restart-16000 restart_s", share(0.2)},
      {"fthsdp-restart-22000 restart_s", share(0.2)},
      {"fthsdp-restart-64000 restart_s", share(0.2)},
      {"fthsdp-restart-98000 restart_s", share(0.2)},
      {"fthsdp-rate mttf_h", share(0.001)},
      {"megascale-effective-rate ettr", {}},
      {"stepfun-servers-in-repair away_mean", share(0.05)},
      {"stepfun-servers-in-repair away_p90", share(0.2)},
      {"stepfun-servers-in-repair away_p99", share(0.2)},
      {"stepfun-servers-in-repair interruptions", absolute(1.0)}};
  return all;
}

// A contrast to a fleet: at one rate it has half as many servers in repair in 99 % of the time as
// StepFun's had.
bool is_a_contrast(const Comparison& one) {
  if (one.id == "stepfun-at-one-rate" && one.quantity == "away_p99") {
    EXPECT_LT(one.predicted, 0.65 * one.measured);
    EXPECT_GT(one.predicted, 0.4 * one.measured);
  }
  return one.id == "stepfun-at-one-rate" || one.quantity == "away_p50";
}

TEST(ValidateRuns, EachPublishedFigureIsWithinItsTolerance) {
  const ValidationReport report =
      validate_file(std::string{ORRERY_TEST_SOURCE} + "/tests/validation/runs/goodput.json");
  for (const Refusal& refused : report.refusals)
    ADD_FAILURE() << refused.id << ": " << refused.reason;
  std::size_t held = 0;
  for (const Comparison& one : report.comparisons) {
    if (is_a_contrast(one)) continue;
    SCOPED_TRACE(one.id + " " + one.quantity);
    const auto found = tolerances().find(one.id + " " + one.quantity);
    ASSERT_NE(found, tolerances().end());
    const auto& [by, part] = found->second;
    EXPECT_EQ(one.bounds.has_value(), by == 0.0 && part == 0.0);
    EXPECT_LE(std::abs(one.predicted - one.measured), by + part * one.measured);
    ++held;
  }
  EXPECT_EQ(held, tolerances().size());
}

}  // namespace
}  // namespace orrery::validate_runs_test
