#include "sim/training/steady_state.hpp"

#include <algorithm>
#include <tuple>

namespace orrery {
namespace {

// Lengths of cycles to try, in periods of the schedule.
constexpr int cycles[] = {1, 2, 3};
constexpr int all_cycles = 6;

class Repetition {
 public:
  Repetition(const TrainingStep& step, const Timeline& timeline, const Plan& plan)
      : step_{step},
        graph_{step.graph},
        timeline_{timeline},
        plan_{plan},
        starts_{backward_starts()} {}

  // Time of a cycle of `shift` micro-batches, measured at the first stage's backward passes.
  std::optional<Seconds> span(int shift) const {
    const auto passes = static_cast<std::size_t>(shift * plan_.vpp);
    const std::size_t needed = 2 * passes + 1;
    for (std::size_t begin : places(starts_.size(), needed)) {
      const Ticks span = starts_[begin + passes] - starts_[begin];
      if (first_stage_repeats(begin, passes, span) && repeats(starts_[begin], span, shift))
        return span.seconds();
    }
    return std::nullopt;
  }

 private:
  Ticks start(TaskId id) const { return timeline_.of(id).start; }
  Ticks finish(TaskId id) const { return timeline_.of(id).finish; }

  // Start of each backward pass of the first stage.
  std::vector<Ticks> backward_starts() const {
    std::vector<Ticks> starts;
    int chunk = -1;
    int microbatch = -1;
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.task(TaskId{i}).owner != 0) continue;
      const Label& label = step_.label(TaskId{i});
      if (label.what != Label::What::backward || label.microbatch < 0) continue;
      if (label.chunk == chunk && label.microbatch == microbatch) continue;  // Same pass.
      chunk = label.chunk, microbatch = label.microbatch;
      starts.push_back(start(TaskId{i}));
    }
    return starts;
  }

  // A cheap necessary condition of repeats().
  bool first_stage_repeats(std::size_t begin, std::size_t passes, Ticks span) const {
    for (std::size_t i = begin + passes; i <= begin + 2 * passes; ++i)
      if (starts_[i] - starts_[i - passes] != span) return false;
    return true;
  }

  // First passes of the spans to compare: the last ones before the cool-down, in which the first
  // stage has as many backward passes as forward ones in the warm-up, and slightly earlier ones.
  std::vector<std::size_t> places(std::size_t count, std::size_t needed) const {
    const auto recurrence = plan_.recurrence();
    const auto cool_down = static_cast<std::size_t>(recurrence ? recurrence->cool_down : 0);
    std::vector<std::size_t> begins;
    for (std::size_t earlier = 0; earlier < 3 && needed + cool_down + earlier <= count; ++earlier)
      begins.push_back(count - needed - cool_down - earlier);
    return begins;
  }

  struct Seen {
    std::tuple<int, int, Label::What, Label::Kind, Stream, GroupKind, int, Ticks, Ticks> what_when;
    int microbatch;
  };

  // Tasks that run in a span, with their owners and times: those that start in it, and those that
  // started earlier and have not finished yet.
  std::vector<Seen> under_way(Ticks from, Ticks span) const {
    std::vector<Seen> seen;
    for (int i = 0; i < graph_.size(); ++i) {
      const TaskId id{i};
      if (start(id) >= from + span || (start(id) < from && finish(id) <= from)) continue;
      const Task& task = graph_.task(id);
      const Label& label = step_.label(id);
      seen.push_back({{task.owner, label.to_rep, label.what, label.kind, task.stream, label.group,
                       label.chunk, start(id) - from, finish(id) - from},
                      label.microbatch});
    }
    return seen;
  }

  bool repeats(Ticks begin, Ticks span, int shift) const {
    std::vector<Seen> once = under_way(begin, span);
    std::vector<Seen> again = under_way(begin + span, span);
    const auto alike = [&] {
      return std::equal(once.begin(), once.end(), again.begin(), again.end(),
                        [shift](const Seen& a, const Seen& b) {
                          return a.what_when == b.what_when &&
                                 b.microbatch - a.microbatch == (a.microbatch < 0 ? 0 : shift);
                        });
    };
    if (once.size() != again.size()) return false;
    // Tasks are numbered in schedule order, so that most cycles already match in order.
    if (alike()) return true;
    for (std::vector<Seen>* seen : {&once, &again})
      std::sort(seen->begin(), seen->end(), [](const Seen& a, const Seen& b) {
        return std::tie(a.what_when, a.microbatch) < std::tie(b.what_when, b.microbatch);
      });
    return alike();
  }

  const TrainingStep& step_;
  const TaskGraph& graph_;
  const Timeline& timeline_;
  const Plan& plan_;
  const std::vector<Ticks> starts_;
};

}  // namespace

std::vector<Excerpt> excerpts(const Plan& plan) {
  const auto recurrence = plan.recurrence();
  if (!recurrence) return {};
  // Warm-up, some periods until transients decay, two that are compared, cool-down.
  const int period = recurrence->period;
  const int left = plan.microbatches / period;
  std::vector<Excerpt> tried;
  // Half of the steps that repeat do so in the shortest excerpt, most others soon after.
  const auto add = [&](int periods) {
    if (4 * periods < 3 * left)
      tried.push_back({periods * period + plan.microbatches % period, period});
  };
  const auto add_whole_cycles = [&](int periods) { add(periods + (left - periods) % all_cycles); };
  const int filled = recurrence->filled;
  add(filled + 2);
  if (period > 1) add(filled + 4);
  add_whole_cycles(filled + 7);
  add_whole_cycles(filled + 18);
  return tried;
}

std::optional<Seconds> added_by_the_rest(const TrainingStep& step, const Timeline& timeline,
                                         const Plan& plan, const Excerpt& excerpt) {
  const Repetition repetition{step, timeline, plan};
  const int left_out = (plan.microbatches - excerpt.microbatches) / excerpt.period;
  for (int periods : cycles) {
    if (left_out % periods != 0) continue;
    if (const auto span = repetition.span(periods * excerpt.period))
      return left_out / periods * *span;
  }
  return std::nullopt;
}

}  // namespace orrery
