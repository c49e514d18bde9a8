#include "sim/reliability/stepping_job.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

std::int64_t rounded_up(std::int64_t amount, std::int64_t by) { return (amount + by - 1) / by; }

}  // namespace

SteppingJob::SteppingJob(const ReplicateSetup& setup, RunTotals& totals)
    : setup_{setup}, totals_{totals}, tiers_(setup.tiers.size()) {
  assert(!setup.tiers.empty() && !setup.phases.empty());
  std::int64_t end = 0;
  for (const ReplicatePhase& phase : setup.phases) phase_ends_.push_back(end += phase.samples);
  tiers_.back().holds = true;  // The run begins with weights that are safe.
}

std::int64_t SteppingJob::steps_to_phase_end() const {
  return rounded_up(phase_ends_[at_.phase] - at_.samples, state().samples);
}

void SteppingJob::settle(Micros now) {
  for (Tier& tier : tiers_)
    if (tier.writes && tier.write_ends <= now) {
      tier.writes = false;
      tier.holds = true;
      tier.safe = tier.on_its_way;
    }
}

// Stops until `until`; false if `limit` comes first.
bool SteppingJob::spend(Micros& now, Micros until, Micros limit, RunTime as) {
  const Micros end = std::min(until, limit);
  totals_[as] += end - now;
  now = end;
  return until <= limit;
}

// The last step of a phase takes as long as any other, however little is left for it.
Micros SteppingJob::step_shrunk() const {
  const StepState whole = phase().by_away[0];
  return state().step - step_lag() - whole.step * state().samples / whole.samples;
}

void SteppingJob::advance(std::int64_t steps, Micros slowed) {
  at_.shrunk += steps * step_shrunk();
  at_.lagged += steps * step_lag();
  at_.stepped += steps * (state().step + slowed);
  at_.slowed += steps * slowed;
  at_.samples = std::min(at_.samples + steps * state().samples, phase_ends_[at_.phase]);
  for (Tier& tier : tiers_) tier.since += steps;
}

bool SteppingJob::step(Micros& now, Micros limit, Micros pause) {
  Micros slowed = 0;
  std::int64_t steps = steps_to_phase_end();
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    steps = std::min(steps, std::max<std::int64_t>(1, phase().every[i] - tiers_[i].since));
    if (tiers_[i].writes) slowed += phase().slowed[i];
  }
  const Micros each = state().step + slowed;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (tiers_[i].writes && phase().slowed[i] > 0)
      steps = std::min(steps, rounded_up(tiers_[i].write_ends - now, each));
  steps = std::min(steps, rounded_up(pause - now, each));
  const std::int64_t whole = std::min(steps, (limit - now) / each);
  advance(whole, slowed);
  now += whole * each;
  if (whole == steps) return true;
  totals_[RunTime::redone] += limit - now;
  now = limit;
  return false;
}

bool SteppingJob::take_checkpoints(Micros& now, Micros limit, const std::vector<bool>& due) {
  Micros stall = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!due[i]) continue;
    if (tiers_[i].writes &&
        !spend(now, std::max(now, tiers_[i].write_ends), limit, RunTime::saving))
      return false;
    stall = std::max(stall, setup_.tiers[i].stall);
  }
  settle(now);
  if (!spend(now, now + stall, limit, RunTime::saving)) return false;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!due[i]) continue;
    tiers_[i].writes = true;
    tiers_[i].on_its_way = at_;
    tiers_[i].write_ends = now + setup_.tiers[i].write;
    tiers_[i].since = 0;
  }
  settle(now);
  return true;
}

// Every cycle of the quickest tier is identical between two checkpoints of the other tiers.
void SteppingJob::skip_cycles(Micros& now, Micros limit) {
  if (setup_.step_by_step) return;
  std::size_t quick = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (phase().every[i] < phase().every[quick]) quick = i;
  if (tiers_[quick].since != 0) return;
  const ReplicateTier& rule = setup_.tiers[quick];
  const Micros slowed = phase().slowed[quick];
  const std::int64_t every = phase().every[quick];
  const Micros step = state().step;
  std::int64_t cycles = (steps_to_phase_end() - 1) / every;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (i == quick) continue;
    if (tiers_[i].writes) return;
    cycles = std::min(cycles, (phase().every[i] - tiers_[i].since - 1) / every);
  }
  const std::int64_t slow_steps =
      slowed > 0 ? std::min(every, rounded_up(rule.write, step + slowed)) : 0;
  const Micros steps = every * step + slow_steps * slowed;
  if (steps < rule.write) return;  // It waits for its own writes.
  // The first cycle after a restart has no concurrent write.
  const bool just_taken = tiers_[quick].writes && tiers_[quick].write_ends == now + rule.write;
  if (slow_steps > 0 && !just_taken) return;
  const Micros cycle = steps + rule.stall;
  // One cycle is simulated step by step, so that the state of its write is right.
  cycles = std::min(cycles, (limit - now) / cycle) - 1;
  if (cycles < 1) return;
  at_.samples += cycles * every * state().samples;
  at_.stepped += cycles * steps;
  at_.slowed += cycles * slow_steps * slowed;
  at_.shrunk += cycles * every * step_shrunk();
  at_.lagged += cycles * every * step_lag();
  totals_[RunTime::saving] += cycles * rule.stall;
  now += cycles * cycle;
  for (Tier& tier : tiers_) tier.since += cycles * every;
  Tier& tier = tiers_[quick];
  tier.since = 0;
  tier.writes = true;
  tier.on_its_way = at_;
  tier.write_ends = now + rule.write;
}

bool SteppingJob::finish(Micros& now, Micros limit) {
  Tier& last = tiers_.back();
  const bool taken = last.writes && last.on_its_way.samples == at_.samples;
  if (!taken && !(last.holds && last.safe.samples == at_.samples)) {
    std::vector<bool> due(tiers_.size());
    due.back() = true;
    if (!take_checkpoints(now, limit, due)) return false;
  }
  if (last.writes && !spend(now, std::max(now, last.write_ends), limit, RunTime::saving))
    return false;
  settle(now);
  return true;
}

Micros SteppingJob::left() const {
  double left = 0.0;
  for (std::size_t i = at_.phase; i < phase_ends_.size(); ++i) {
    const ReplicatePhase& phase = setup_.phases[i];
    const std::int64_t samples = std::min(phase.samples, phase_ends_[i] - at_.samples);
    left += static_cast<double>(samples) / static_cast<double>(phase.by_away[0].samples) *
            static_cast<double>(phase.by_away[0].step);
  }
  return static_cast<Micros>(left);
}

Micros SteppingJob::run(Micros now, Micros limit, Micros pause) {
  std::vector<bool> due(tiers_.size());
  while (true) {
    settle(now);
    if (at_.samples == phase_ends_.back()) {
      if (!finish(now, limit)) return limit;
      finished_ = true;
      totals_[RunTime::slowed_by_writes] = at_.slowed;
      totals_[RunTime::replicas_away] = at_.shrunk;
      totals_[RunTime::slow_gpus] = at_.lagged;
      totals_[RunTime::productive] = at_.stepped - at_.slowed - at_.shrunk - at_.lagged;
      return now;
    }
    if (now >= pause) return now;
    skip_cycles(now, std::min(limit, pause));
    if (!step(now, limit, pause)) return limit;
    bool any = false;
    for (std::size_t i = 0; i < tiers_.size(); ++i)
      any |= due[i] = tiers_[i].since >= phase().every[i];
    while (at_.phase + 1 < phase_ends_.size() && at_.samples == phase_ends_[at_.phase]) ++at_.phase;
    if (any && !take_checkpoints(now, limit, due)) return limit;
  }
}

void SteppingJob::keep() {
  for (Tier& tier : tiers_) tier.writes = false;
}

Micros SteppingJob::fall_back(Micros now, std::size_t first_tier) {
  settle(now);
  keep();
  std::size_t best = tiers_.size() - 1;
  for (std::size_t i = tiers_.size(); i-- > 0;) {
    if (i < first_tier) tiers_[i].holds = false;
    if (tiers_[i].holds && tiers_[i].safe.samples >= tiers_[best].safe.samples) best = i;
    tiers_[i].since = 0;
  }
  totals_[RunTime::redone] += at_.stepped - tiers_[best].safe.stepped;
  at_ = tiers_[best].safe;
  return setup_.tiers[best].load;
}

Micros SteppingJob::save(Micros now, Micros limit) {
  finish(now, limit);
  for (Tier& tier : tiers_) tier.since = 0;
  return now;
}

}  // namespace orrery
