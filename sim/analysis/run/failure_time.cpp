#include "sim/analysis/run/failure_time.hpp"

#include <algorithm>

#include "sim/analysis/run/checkpoint_size.hpp"
#include "sim/analysis/run/run_law.hpp"

namespace orrery {
namespace {

Seconds seconds(Micros time) { return Seconds{static_cast<double>(time) / 1e6}; }

}  // namespace

FailureTime::FailureTime(const std::vector<WalkCause>& causes, const std::vector<double>& per_day,
                         double factor) {
  for (std::size_t i = 0; i < causes.size(); ++i)
    (causes[i].planned ? planned_ : unplanned_) += factor * per_day[i] / 86400.0;
  double found = 0.0;
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (!causes[i].planned)
      found += factor * per_day[i] / 86400.0 *
               untouched(unplanned_, seconds(causes[i].detect_low), seconds(causes[i].detect_high));
  if (unplanned_ > 0.0) found_ = found / unplanned_;
}

double FailureTime::over_steps(const CheckpointCycle& cycle, Seconds start, Seconds stop) const {
  const Interruptions interruptions{unplanned_, found_ * untouched(unplanned_, start)};
  // Planned stops lose no steps: they take their share of the time.
  return time_over_work(interruptions, cycle) * (1.0 + planned_ * stop.si());
}

double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store) {
  const int gpus = scenario.plan.gpus();
  const CheckpointTimes times =
      checkpoint_times(scenario, checkpoint_size(scenario), profile, CheckpointTier::store,
                       store.value_or(profile.store_per_gpu * gpus));
  const FailureTime failures{causes_of(profile, {CheckpointRule{}}), law_of(profile, gpus).per_day};
  const Seconds start = profile.restart.at(gpus) + times.load;
  const Seconds stop = times.stall + times.write + start;
  const double rate = failures.unplanned();
  // Without failures none is the best; a day is near to it.
  const Seconds work =
      rate > 0.0 ? std::max(best_work(rate, times.stall), times.write) : Seconds{86400.0};
  return failures.over_steps({work, times.stall, times.write}, start, stop);
}

}  // namespace orrery
