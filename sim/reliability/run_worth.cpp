#include "sim/reliability/run_worth.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

constexpr Micros quick_detection = 10'000'000;

class Worth {
 public:
  Worth(const TrainingRun& answer, const Economics& economics)
      : answer_{answer}, economics_{economics} {}

  // What changes nothing but the walk.
  void try_setup(const std::string& what, const std::function<void(PreparedRun&)>& change) {
    PreparedRun run = answer_.prepared;
    change(run);
    add(what, run);
  }

  // What changes what is asked. Where the plan cannot do it, it is no improvement.
  void try_policy(const std::string& what, const std::function<void(RunPolicy&)>& change) {
    RunQuestion question = answer_.question;
    change(question.policy);
    const Slowness& slow = answer_.prepared.setup.slowness;
    if (slow.any()) question.slow_states = SlowStates{slow.knots, slow.ratios};
    std::optional<PreparedRun> run;
    try {
      run = prepare_run(answer_.prepared.scenario, answer_.prepared.step, question);
    } catch (const Error&) {
      return;
    }
    add(what, *run);
  }

  std::vector<Improvement> sorted() {
    std::stable_sort(list_.begin(), list_.end(), [](const Improvement& a, const Improvement& b) {
      return a.days.mean > b.days.mean;
    });
    return std::move(list_);
  }

 private:
  void add(const std::string& what, const PreparedRun& run) {
    const RunFigures better = figures_of(finished_runs(run, answer_.question));
    const RunFigures& before = answer_.figures;
    std::vector<double> saved;
    for (std::size_t i = 0; i < before.days_of.size(); ++i)
      saved.push_back(before.days_of[i] - better.days_of[i]);
    Improvement improvement{
        what, chance_range(std::move(saved)), better.ettr.mean - before.ettr.mean, {}};
    const PreparedRun& now = answer_.prepared;
    const int gpus = now.scenario.plan.gpus() + answer_.spares.kept * now.gpus_of_unit;
    if (improvement.days.mean > 0.0)
      improvement.usd = economics_.rent_usd_per_gpu_hour * (24.0 * improvement.days.mean * gpus);
    list_.push_back(improvement);
  }

  const TrainingRun& answer_;
  const Economics& economics_;
  std::vector<Improvement> list_;
};

bool has_tier(const PreparedRun& run, CheckpointTier wanted) {
  for (const RunTier& tier : run.tiers())
    if (tier.tier == wanted) return true;
  return false;
}

}  // namespace

std::vector<Improvement> run_worth(const TrainingRun& answer, const Economics& economics) {
  const PreparedRun& run = answer.prepared;
  const RunPolicy& policy = answer.question.policy;
  Worth worth{answer, economics};
  worth.try_setup("failures found in 10 s", [](PreparedRun& better) {
    for (WalkCause& cause : better.setup.causes) {
      cause.detect_low = std::min(cause.detect_low, quick_detection);
      cause.detect_high = std::min(cause.detect_high, quick_detection);
    }
  });
  worth.try_setup("restarts in half the time",
                  [](PreparedRun& better) { better.setup.restart /= 2; });
  if (!run.record)
    worth.try_setup("half as many failures", [](PreparedRun& better) {
      for (double& rate : better.law.per_day) rate /= 2.0;
    });
  if (!has_tier(run, CheckpointTier::peer))
    worth.try_policy("copies in other nodes' memory", [](RunPolicy& better) {
      CheckpointRule peer;
      peer.tier = CheckpointTier::peer;
      const auto store = std::prev(better.checkpoints.end());
      if (store->best()) store->every = Seconds{3600.0};
      better.checkpoints.insert(store, peer);
    });
  if (!policy.elastic)
    worth.try_policy("elastic: on without the replica",
                     [](RunPolicy& better) { better.elastic = true; });
  if (run.setup.slowness.per_day > 0.0 && !policy.evict)
    worth.try_policy("slow GPUs replaced where it pays",
                     [](RunPolicy& better) { better.evict = EvictionRule{}; });
  const CheckpointRule& store = policy.checkpoints.back();
  if (!store.best() && run.tiers().back().best > Seconds{})
    worth.try_policy("checkpoints every " + span_text(run.tiers().back().best),
                     [](RunPolicy& better) { better.checkpoints.back() = {}; });
  if (run.setup.spares < answer.spares.units)
    worth.try_setup(grouped(answer.spares.units) +
                        (answer.spares.units == 1 ? " spare instead of " : " spares instead of ") +
                        grouped(run.setup.spares),
                    [&](PreparedRun& better) { better.setup.spares = answer.spares.units; });
  return worth.sorted();
}

}  // namespace orrery
