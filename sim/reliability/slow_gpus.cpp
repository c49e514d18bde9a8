#include "sim/reliability/slow_gpus.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "sim/core/random.hpp"

namespace orrery {
namespace {

constexpr Micros no_change = std::numeric_limits<Micros>::max() / 4;

}  // namespace

double largest_of_normal(int count, double u) {
  // The largest of n has P(x)^n = u, and 1 - P(x) = q.
  const double q = 1.0 - portable_exp(portable_log(std::max(u, 1e-300)) / count);
  if (q >= 0.5) return 0.0;
  const double t = std::sqrt(-2.0 * portable_log(std::max(q, 1e-300)));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double Slowness::step_ratio(int stage, double slower) const {
  const std::vector<double>& ratio = ratios[static_cast<std::size_t>(stage)];
  assert(knots.size() >= 2 && ratio.size() == knots.size());
  std::size_t above = 1;
  while (above + 1 < knots.size() && knots[above] < slower) ++above;
  const double part = (slower - knots[above - 1]) / (knots[above] - knots[above - 1]);
  return ratio[above - 1] + part * (ratio[above] - ratio[above - 1]);
}

double Slowness::slower_for(int stage, double longer) const {
  const std::vector<double>& ratio = ratios[static_cast<std::size_t>(stage)];
  std::size_t above = 1;
  while (above + 1 < knots.size() && ratio[above] < 1.0 + longer) ++above;
  const double rise = ratio[above] - ratio[above - 1];
  if (rise <= 0.0) return std::numeric_limits<double>::infinity();
  const double part = (1.0 + longer - ratio[above - 1]) / rise;
  return knots[above - 1] + part * (knots[above] - knots[above - 1]);
}

SlowFleet::SlowFleet(const Slowness& slowness, Random random)
    : slowness_{slowness}, random_{random} {
  if (!slowness.any()) {
    next_at_ = no_change;
    return;
  }
  per_us_ = slowness.per_day / micros_per_day * draw_rate_factor(slowness.error, random_);
  if (slowness.deviation > 0.0)
    for (std::size_t stage = 0; stage < slowness.gpus_of_stage.size(); ++stage) {
      const double slowest =
          slowness.deviation * largest_of_normal(slowness.gpus_of_stage[stage], random_.unit());
      healthy_ = std::max(healthy_, slowness.step_ratio(static_cast<int>(stage), slowest));
    }
  draw_next();
}

void SlowFleet::draw_next() {
  if (per_us_ == 0.0) {
    next_at_ = no_change;
    return;
  }
  const double wait = -portable_log(1.0 - random_.unit()) / per_us_;
  next_at_ = wait < static_cast<double>(no_change - next_at_) ? next_at_ + static_cast<Micros>(wait)
                                                              : no_change;
  const int stage =
      static_cast<int>(random_.below(static_cast<std::uint64_t>(slowness_.gpus_of_stage.size())));
  const double slower = slowness_.least + (slowness_.most - slowness_.least) * random_.unit();
  next_.found = next_at_ + slowness_.found_low +
                static_cast<Micros>(random_.unit() * static_cast<double>(slowness_.found_high -
                                                                         slowness_.found_low));
  next_.ratio = std::max(1.0, slowness_.step_ratio(stage, slower));
  next_.unit = static_cast<int>(random_.below(static_cast<std::uint64_t>(slowness_.units)));
  next_.repair = repair_at(slowness_.repair_us, random_.unit());
}

Micros SlowFleet::next_change() const {
  Micros at = next_at_;
  if (slowness_.evict)
    for (const SlowGpu& gpu : slow_)
      if (!gpu.stays) at = std::min(at, gpu.found);
  return at;
}

void SlowFleet::settle(Micros now) {
  while (next_at_ <= now) {
    slow_.push_back(next_);
    draw_next();
  }
}

double SlowFleet::step_ratio() const {
  double ratio = healthy_;
  for (const SlowGpu& gpu : slow_) ratio = std::max(ratio, gpu.ratio);
  return ratio;
}

std::vector<SlowFleet::Evicted> SlowFleet::evict(Micros now, Micros stop, Micros left) {
  if (!slowness_.evict) return {};
  std::vector<int> units;
  std::vector<Evicted> evicted;
  for (SlowGpu& gpu : slow_) {
    if (gpu.stays || gpu.found > now) continue;
    const double longer = gpu.ratio / healthy_ - 1.0;
    const bool pays = *slowness_.evict > 0.0
                          ? longer >= *slowness_.evict
                          : longer * static_cast<double>(left) > static_cast<double>(stop);
    // The remaining time shrinks: a GPU that does not pay now never will.
    gpu.stays = !pays;
    if (!pays || std::find(units.begin(), units.end(), gpu.unit) != units.end()) continue;
    units.push_back(gpu.unit);
    evicted.push_back({gpu.repair, static_cast<double>(gpu.unit) / slowness_.units});
  }
  std::erase_if(slow_, [&](const SlowGpu& gpu) {
    return std::find(units.begin(), units.end(), gpu.unit) != units.end();
  });
  return evicted;
}

void SlowFleet::replace_unit(double place) {
  const int unit = static_cast<int>(place * slowness_.units);
  std::erase_if(slow_, [&](const SlowGpu& gpu) { return gpu.unit == unit; });
}

}  // namespace orrery
