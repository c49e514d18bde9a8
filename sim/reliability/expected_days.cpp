#include "sim/reliability/expected_days.hpp"

#include <algorithm>
#include <cmath>

#include "sim/training/step_range.hpp"

namespace orrery {

PolicyShares expected_shares(const PreparedRun& run, double factor) {
  const WalkSetup& setup = run.setup;
  if (!setup.elastic && setup.spares == always_one) {
    const double ettr = expected_ettr(run, run.tiers().size() - 1, factor);
    return {ettr, ettr};
  }
  std::vector<double> per_day;
  for (const double rate : run.law.per_day) per_day.push_back(factor * rate);
  double work = 0.0, all = 0.0, steps = 0.0;
  WalkSetup phase = setup;
  phase.tiers = {setup.tiers.back()};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    WalkPhase only = setup.phases[i];
    only.every = {only.every.back()};
    only.slowed = {only.slowed.back()};
    phase.phases = {only};
    const double whole = (run.phases[i].step * run.phases[i].steps).si() * 1e6;
    const PolicyShares shares = policy_shares(phase, per_day, run.law.repair_us, whole);
    work += whole;
    all += whole / shares.goodput;
    steps += whole / shares.goodput * shares.ettr;
  }
  return {steps / all, work / all};
}

bool has_expected_shares(const RunQuestion& question) {
  const RunPolicy& policy = question.policy;
  if (policy.checkpoints.size() != 1) return false;
  if (!policy.spares && !policy.elastic) return true;
  return !question.faults && question.reliability.batches.size() <= 1;
}

ChanceRange expected_days(const PreparedRun& run) {
  const FailureLaw& law = run.law;
  const double days = run.without_interruption().si() / 86400.0;
  double variance = law.error.events > 0.0
                        ? 1.0 / law.error.events
                        : std::pow(std::log(law.error.factor) / range_deviations, 2.0);
  if (law.month > 0) {
    const double months = days * micros_per_day / static_cast<double>(law.month);
    variance += std::log1p(law.month_deviation * law.month_deviation / std::max(1.0, months));
  }
  const double factor = std::exp(range_deviations * std::sqrt(variance));
  const auto at = [&](double times) { return days / expected_shares(run, times).goodput; };
  return {at(1.0), at(1.0 / factor), at(factor)};
}

}  // namespace orrery
