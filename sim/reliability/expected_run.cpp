#include "sim/reliability/expected_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery {

double untouched(double rate, Seconds fixed) { return std::exp(-rate * fixed.si()); }

double untouched(double rate, Seconds low, Seconds high) {
  const double width = rate * (high - low).si();
  // (1 - exp(-w)) / w, the mean of exp(-x) over [0, w].
  const double mean = width < 1e-12 ? 1.0 : -std::expm1(-width) / width;
  return untouched(rate, low) * mean;
}

double time_over_work(const Interruptions& interruptions, const CheckpointCycle& cycle) {
  const double rate = interruptions.rate;
  const Seconds between = cycle.work + cycle.stall;
  if (rate == 0.0) return between / cycle.work;
  return std::expm1(rate * between.si()) * std::exp(rate * cycle.write.si()) /
         (rate * interruptions.recovered * cycle.work.si());
}

double time_over_work_safe_recovery(double rate, Seconds recovery, const CheckpointCycle& cycle) {
  const Seconds between = cycle.work + cycle.stall;
  if (rate == 0.0) return between / cycle.work;
  return std::expm1(rate * between.si()) * std::exp(rate * cycle.write.si()) *
         (1.0 / rate + recovery.si()) / cycle.work.si();
}

double linear_ettr(double rate, Seconds recovery, const CheckpointCycle& cycle) {
  return (1.0 - rate * (recovery + 0.5 * cycle.work).si()) / (1.0 + cycle.stall / cycle.work);
}

double one_plus_lambert_w0(double s) {
  if (s > 30.0) return 1.0;  // Less exp(-31).
  // Newton's method for w = u - 1: ln(1 - u) + u + s = 0. The left side falls ever faster, and is
  // not above 0 at sqrt(2 s), as ln(1 - u) + u <= -u^2 / 2, and at 1 - exp(-1 - s): from there the
  // iterates decrease to the root.
  double u = std::fmin(std::sqrt(2.0 * s), -std::expm1(-1.0 - s));
  for (int i = 0; i < 100 && u > 0.0; ++i) {
    const double next = u + (std::log1p(-u) + u + s) * (1.0 - u) / u;
    if (!(next < u)) break;
    u = next;
  }
  return u;
}

Seconds best_work(double rate, Seconds stall) {
  return Seconds{one_plus_lambert_w0(rate * stall.si()) / rate};
}

Seconds young_work(double rate, Seconds stall) {
  return Seconds{std::sqrt(2.0 * stall.si() / rate)};
}

Seconds daly_work(double rate, Seconds stall) {
  const double mttf = 1.0 / rate;
  const double d = stall.si();
  if (d >= 2.0 * mttf) return Seconds{mttf};
  const double x = std::sqrt(d / (2.0 * mttf));
  return Seconds{std::sqrt(2.0 * d * mttf) * (1.0 + x / 3.0 + x * x / 9.0) - d};
}

namespace {

constexpr int moments = 24;  // Times of a run at which shares are taken; their mean is the run's.
constexpr int ages = 100;    // Intervals of the age of the last failure.
constexpr double rare = 1e-12;
constexpr double endless = std::numeric_limits<double>::infinity();

// repair_within() and repair_longer() of units that are replaced after setup.refill.
double away_within(const ReplicateSetup& setup, std::span<const double> repair_us, double limit) {
  return repair_within(repair_us, std::min(limit, static_cast<double>(setup.refill)));
}
double away_longer(const ReplicateSetup& setup, std::span<const double> repair_us, double age) {
  return age < static_cast<double>(setup.refill) ? repair_longer(repair_us, age) : 0.0;
}

// The moments lie denser where the run begins: units in repair grow from none there.
template <class At>
auto mean_over(double length_us, At at) {
  if (std::isinf(length_us)) return at(length_us);  // No moment is like the beginning.
  // Midpoints of t = length v^2, dt = 2 v dv.
  decltype(at(0.0)) sum{};
  for (int i = 0; i < moments; ++i) {
    const double v = (i + 0.5) / moments;
    sum += (2.0 * v / moments) * at(length_us * v * v);
  }
  return sum;
}

// int_x^inf L exp(-L y) P(D <= y) dy where D is uniform in [a, b]: with f(x) = P(D <= x), in parts,
// f(x) exp(-L x) + (exp(-L max(x, a)) - exp(-L b)) / (L (b - a)) up to b, exp(-L x) beyond.
double found_beyond(const ReplicateCause& cause, double rate, double x) {
  const auto low = static_cast<double>(cause.detect_low);
  const auto high = static_cast<double>(cause.detect_high);
  if (x >= high) return std::exp(-rate * x);
  const double width = rate * (high - low);
  const double from = std::max(x, low);
  const double part = rate * (high - from);
  // A fixed detection time has no width: exp(-L a).
  const double mean = width > 0.0 ? -std::expm1(-part) / width : 1.0;
  return std::exp(-rate * from) * (mean + (width > 0.0 ? (from - low) / (high - low) : 0.0));
}

Seconds seconds(double us) { return Seconds{us / 1e6}; }

// Identical stretches of steps, one after the other.
struct Stretch {
  double lose = 0.0;       // Failures a second that take work back.
  double recovered = 1.0;  // Interruptions::recovered, of all failures.
  double stops = 0.0;      // Time of announced stops, over steps.
  double joins = 0.0;      // Time to take in groups that return, over steps.
};

double over_steps(const ReplicateSetup& setup, const StepState& state, const Stretch& stretch) {
  const ReplicatePhase& phase = setup.phases.front();
  const ReplicateTier& tier = setup.tiers.front();
  const auto step = static_cast<double>(state.step);
  const double slow_steps = std::ceil(static_cast<double>(tier.write) / step);
  const double slowed = static_cast<double>(phase.slowed.front()) * slow_steps;
  const CheckpointCycle cycle{seconds(step * static_cast<double>(phase.every.front())),
                              seconds(static_cast<double>(tier.stall) + slowed),
                              seconds(static_cast<double>(tier.write))};
  return time_over_work({stretch.lose, 1.0}, cycle) / stretch.recovered * (1.0 + stretch.stops) +
         stretch.joins;
}

PolicyShares with_all_units(const ReplicateSetup& setup, std::span<const double> per_us,
                            std::span<const double> repair_us, double length_us) {
  const ReplicateTier& tier = setup.tiers.front();
  const Micros start = setup.restart + tier.load;
  const auto stop = static_cast<double>(tier.stall + tier.write + start);
  Stretch stretch;
  for (std::size_t c = 0; c < per_us.size(); ++c) {
    if (setup.causes[c].planned)
      stretch.stops += per_us[c] * stop;
    else
      stretch.lose += per_us[c] * 1e6;
  }
  stretch.recovered = stepping_share(setup, per_us, repair_us, start, length_us);
  const double ettr = 1.0 / over_steps(setup, setup.phases.front().by_away.front(), stretch);
  return {ettr, ettr};
}

// Shares of an elastic job in a state, after which another loss leaves so many groups away.
PolicyShares at_level(const ReplicateSetup& setup, std::span<const double> per_us,
                      const AwayLevel& level, int away_after_another) {
  const std::vector<StepState>& states = setup.phases.front().by_away;
  if (static_cast<std::size_t>(level.away) >= states.size()) return {0.0, 0.0};
  const StepState& state = states[static_cast<std::size_t>(level.away)];
  const ReplicateTier& tier = setup.tiers.front();
  const bool another = static_cast<std::size_t>(away_after_another) < states.size();
  double rate = 0.0;
  for (std::size_t c = 0; c < per_us.size(); ++c)
    if (!setup.causes[c].planned) rate += per_us[c] * level.present * 1e6;
  const double half_step = 0.5 * static_cast<double>(state.step);
  Stretch stretch;
  double recovered = 0.0;
  for (std::size_t c = 0; c < per_us.size(); ++c) {
    const ReplicateCause& cause = setup.causes[c];
    const double of_cause = per_us[c] * level.present;
    const bool keeps = cause.replaces && setup.replicas_hold_all && another;
    const double start = static_cast<double>(cause.replaces ? setup.regroup : setup.restart) +
                         static_cast<double>(keeps && !cause.planned ? 0 : tier.load);
    if (cause.planned) {
      stretch.stops += of_cause * (static_cast<double>(tier.stall + tier.write) + start);
      continue;
    }
    recovered += of_cause * 1e6 / rate * untouched(rate, seconds(start)) *
                 untouched(rate, seconds(static_cast<double>(cause.detect_low)),
                           seconds(static_cast<double>(cause.detect_high)));
    if (keeps)
      stretch.stops += of_cause * half_step;
    else
      stretch.lose += of_cause * 1e6;
  }
  if (rate > 0.0) stretch.recovered = recovered;
  // What returns while the job is stopped starts with it.
  stretch.joins = level.returns * (static_cast<double>(setup.regroup) + half_step);
  const double ettr = 1.0 / over_steps(setup, state, stretch);
  const StepState& whole = states.front();
  const double speed = static_cast<double>(state.samples) / static_cast<double>(whole.samples) *
                       static_cast<double>(whole.step) / static_cast<double>(state.step);
  return {ettr, ettr * speed};
}

PolicyShares without_some(const ReplicateSetup& setup, std::span<const double> per_us,
                          std::span<const double> repair_us, double length_us) {
  double replacing = 0.0;
  for (std::size_t c = 0; c < per_us.size(); ++c)
    if (setup.causes[c].replaces) replacing += per_us[c];
  const std::vector<AwayLevel> levels = away_levels(setup, replacing, repair_us, length_us);
  PolicyShares sum{0.0, 0.0};
  for (std::size_t missing = 0; missing < levels.size(); ++missing) {
    if (levels[missing].share == 0.0) continue;
    const AwayLevel& next = levels[std::min(missing + 1, levels.size() - 1)];
    const PolicyShares at = at_level(setup, per_us, levels[missing], next.away);
    sum.ettr += levels[missing].share * at.ettr;
    sum.goodput += levels[missing].share * at.goodput;
  }
  return sum;
}

}  // namespace

double repair_longer(std::span<const double> quantiles, double age) {
  if (age < quantiles.front()) return 1.0;
  if (age >= quantiles.back()) return 0.0;
  const auto above = std::upper_bound(quantiles.begin(), quantiles.end(), age);
  const double low = *(above - 1), high = *above;
  const double below = static_cast<double>(above - quantiles.begin() - 1);
  const double part = std::log(age / low) / std::log(high / low);
  return 1.0 - (below + part) / static_cast<double>(quantiles.size() - 1);
}

double repair_within(std::span<const double> quantiles, double limit) {
  if (quantiles.size() == 1) return std::min(limit, quantiles.front());
  // E[min(R, limit)]: in each part R is uniform in its logarithm, so that over [a, b] the mean is
  // (b - a) / ln(b / a), and up to x < b it is (x - a + x ln(b / x)) / ln(b / a).
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < quantiles.size(); ++i) {
    const double low = quantiles[i], high = quantiles[i + 1];
    if (limit <= low)
      sum += limit;
    else if (high <= low)
      sum += low;
    else if (limit >= high)
      sum += (high - low) / std::log(high / low);
    else
      sum += (limit - low + limit * std::log(high / limit)) / std::log(high / low);
  }
  return sum / static_cast<double>(quantiles.size() - 1);
}

namespace {

// More units are never in repair: twelve standard deviations above the mean.
int never_more(double mean) { return static_cast<int>(mean + 12.0 * std::sqrt(mean) + 20.0); }

}  // namespace

double poisson_at_most(int most, double mean) {
  if (most < 0) return 0.0;
  if (mean <= 0.0) return 1.0;
  // The sum starts at the largest term, whose logarithm is finite for any mean.
  const int middle = mean < most ? static_cast<int>(mean) : most;
  const double largest = std::exp(middle * std::log(mean) - mean - std::lgamma(middle + 1.0));
  double sum = largest;
  double term = largest;
  for (int k = middle; k > 0 && term > rare * sum; --k) sum += term *= k / mean;
  term = largest;
  for (int k = middle + 1; k <= most && (k < mean || term > rare * sum); ++k)
    sum += term *= mean / k;
  return std::min(1.0, sum);
}

namespace {

// P(so many islands of a rack are lost), 0 first, where its units are down as Poisson with that
// mean, and `more` for certain.
std::vector<double> lost_of_rack(const Racks& racks, double mean, int more) {
  std::vector<double> chances(static_cast<std::size_t>(racks.size / racks.island) + 1);
  double term = std::exp(-mean), rest = 1.0;
  for (int down = 0; down + more < racks.size; ++down) {
    chances[static_cast<std::size_t>(racks.islands_lost(down + more))] += term;
    rest -= term;
    term *= mean / (down + 1);
  }
  chances.back() += std::max(0.0, rest);
  return chances;
}

// P(n are lost in `racks` racks), n = 0 ... most: the coefficients of a power of the rack's
// polynomial (J. C. P. Miller's recurrence; Knuth, TAOCP 2, section 4.7).
std::vector<double> lost_of_racks(const std::vector<double>& rack, int racks, int most) {
  std::vector<double> chances{1.0};
  // The first, rack[0]^racks, may be too small for a number.
  double scale = racks * std::log(rack[0]);
  for (int n = 1; n <= most; ++n) {
    double sum = 0.0;
    for (int j = 1; j <= n && j < static_cast<int>(rack.size()); ++j)
      sum += (static_cast<double>(racks) * j - (n - j)) * rack[static_cast<std::size_t>(j)] *
             chances[static_cast<std::size_t>(n - j)];
    chances.push_back(std::max(0.0, sum / (n * rack[0])));
    if (chances.back() < 1e200) continue;
    for (double& chance : chances) chance *= 1e-200;
    scale += 200.0 * std::log(10.0);
  }
  for (double& chance : chances) chance *= std::exp(scale);
  return chances;
}

}  // namespace

double islands_lost_at_most(const Racks& racks, int most, double mean, int more) {
  if (racks.island == 1) return poisson_at_most(most - more, mean);
  if (most < 0) return 0.0;
  if (most >= never_more(mean) + more) return 1.0;
  const std::vector<double> rack = lost_of_rack(racks, mean / racks.count, 0);
  // One rack has the unit that is down for certain.
  const std::vector<double> others = lost_of_racks(rack, racks.count - 1, most);
  const std::vector<double> one = more > 0 ? lost_of_rack(racks, mean / racks.count, more) : rack;
  double sum = 0.0, below = 0.0;  // P(the others lose at most `most` - j), j from the largest.
  std::size_t next = 0;
  for (int j = static_cast<int>(one.size()) - 1; j >= 0; --j) {
    for (; static_cast<int>(next) <= most - j; ++next) below += others[next];
    sum += one[static_cast<std::size_t>(j)] * below;
  }
  return std::min(1.0, sum);
}

double islands_lost_per_unit(const Racks& racks, double mean) {
  if (racks.island == 1 || mean <= 0.0) return 1.0;
  const std::vector<double> rack = lost_of_rack(racks, mean / racks.count, 0);
  double lost = 0.0;
  for (std::size_t j = 1; j < rack.size(); ++j) lost += static_cast<double>(j) * rack[j];
  return racks.count * lost / mean;
}

double stepping_share(const ReplicateSetup& setup, std::span<const double> per_us,
                      std::span<const double> repair_us, Micros start, double length_us) {
  double all = 0.0, replacing = 0.0;
  for (std::size_t c = 0; c < per_us.size(); ++c) {
    if (!setup.causes[c].planned) all += per_us[c];
    if (setup.causes[c].replaces) replacing += per_us[c];
  }
  if (all == 0.0) return 1.0;
  const int spares = setup.racks.spare_islands(setup.spares);
  const auto s = static_cast<double>(start);
  // The age of the last failure in parts that are as likely, but for the last one, which has no
  // end. Within one P_c hardly changes; the rest is integrated.
  struct Age {
    double from, to, within, longer;
  };
  std::vector<Age> parts;
  for (int i = ages; i > 0; --i) {
    const double to = i > 1 ? -std::log((i - 1.0) / ages) / all : endless;
    const double middle = -std::log((i - 0.5) / ages) / all;
    parts.push_back({-std::log(static_cast<double>(i) / ages) / all, to,
                     away_within(setup, repair_us, middle), away_longer(setup, repair_us, middle)});
  }
  return mean_over(length_us, [&](double t) {
    double share = std::exp(-all * t);
    const double longest = t - s;
    const double until = away_within(setup, repair_us, std::max(0.0, longest));
    for (const Age& age : parts) {
      if (age.from >= longest) break;
      const double before = replacing * std::max(0.0, until - age.within);
      const double stays = islands_lost_at_most(setup.racks, spares, before);
      const double leaves = (1.0 - age.longer) * stays +
                            age.longer * islands_lost_at_most(setup.racks, spares, before, 1);
      double at_age = 0.0;
      for (std::size_t c = 0; c < per_us.size(); ++c) {
        const ReplicateCause& cause = setup.causes[c];
        if (cause.planned) continue;
        const double found = found_beyond(cause, all, age.from) -
                             found_beyond(cause, all, std::min(age.to, longest));
        at_age += per_us[c] / all * found * (cause.replaces ? leaves : stays);
      }
      share += std::exp(-all * s) * at_age;
    }
    return share;
  });
}

std::vector<AwayLevel> away_levels(const ReplicateSetup& setup, double per_us,
                                   std::span<const double> repair_us, double length_us) {
  const int spares = setup.racks.spare_islands(setup.spares);
  const int islands = setup.units / setup.racks.island;
  const int tail = never_more(per_us * away_within(setup, repair_us, length_us));
  const int most = std::min(spares, tail) + std::min(islands, tail);
  std::vector<AwayLevel> levels;
  for (int missing = 0; missing <= islands; ++missing) {
    AwayLevel& level = levels.emplace_back();
    level.away = setup.groups_away(missing * setup.racks.island);
    level.present = static_cast<double>(setup.groups - level.away) / setup.groups;
  }
  for (int i = 0; i < moments; ++i) {
    const double v = (i + 0.5) / moments, weight = 2.0 * v / moments;
    const double mean = away_within(setup, repair_us, length_us * v * v);
    const double lost = islands_lost_per_unit(setup.racks, per_us * mean);
    std::vector<double> shares{1.0};
    double sum = 1.0;
    for (int k = 0; k < most; ++k) {
      const double rate =
          per_us * lost *
          levels[static_cast<std::size_t>(std::clamp(k - spares, 0, islands))].present;
      shares.push_back(shares.back() * rate * mean / (k + 1));
      sum += shares.back();
      if (sum < 1e200) continue;
      for (double& share : shares) share *= 1e-200;
      sum *= 1e-200;
    }
    for (int k = 0; k <= most; ++k) {
      const double share = weight * shares[static_cast<std::size_t>(k)] / sum;
      const auto missing = static_cast<std::size_t>(std::clamp(k - spares, 0, islands));
      AwayLevel& level = levels[missing];
      // Detailed balance: islands leave a state as often as it is entered from below. Those of a
      // group that stays away do not stop the job.
      const bool joins = share > 0.0 && k > spares && level.away > levels[missing - 1].away;
      level.returns += joins ? share * k / mean : 0.0;
      level.share += share;
    }
  }
  for (AwayLevel& level : levels)
    if (level.share > 0.0) level.returns /= level.share;
  return levels;
}

PolicyShares policy_shares(const ReplicateSetup& setup, std::span<const double> per_day,
                           std::span<const double> repair_us, double work_us) {
  std::vector<double> per_us;
  for (const double rate : per_day) per_us.push_back(rate / micros_per_day);
  // The length depends slightly on the shares, and they on the length: a fixed-point iteration.
  const int rounds = std::isinf(work_us) ? 1 : 6;
  constexpr double least = 1e-6;
  PolicyShares shares;
  for (int i = 0; i < rounds; ++i) {
    const double length = work_us / std::max(least, shares.goodput);
    shares = setup.elastic ? without_some(setup, per_us, repair_us, length)
                           : with_all_units(setup, per_us, repair_us, length);
  }
  return shares;
}

}  // namespace orrery
