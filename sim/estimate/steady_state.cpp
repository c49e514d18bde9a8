#include "sim/estimate/steady_state.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

// Of a span: what rounding may differ by.
constexpr double rounding = 1e-11;
// Periods of the schedule after which a step may come back to its state, and how many spans of so
// many are compared: no fewer than three periods in a row.
struct Cycle {
  int periods;
  int spans;
};
constexpr Cycle cycles[] = {{1, 3}, {2, 2}, {3, 2}};
// Whatever cycle an excerpt shows goes evenly into the periods that it leaves out.
constexpr int all_cycles = 6;

class Repetition {
 public:
  Repetition(const TrainingStep& step, const Timeline& timeline, const Plan& plan)
      : graph_{step.graph}, timeline_{timeline}, plan_{plan}, starts_{backward_starts()} {}

  // How long a cycle of so many micro-batches takes, by the backward passes of the first stage.
  std::optional<Seconds> span(int shift, int spans) const {
    const auto passes = static_cast<std::size_t>(shift * plan_.vpp);
    const std::size_t needed = static_cast<std::size_t>(spans) * passes + 1;
    if (starts_.size() < needed) return std::nullopt;
    for (std::size_t begin : places(starts_.size(), needed)) {
      const double span = (starts_[begin + needed - 1] - starts_[begin]) / spans;
      if (first_stage_repeats(begin, begin + needed, passes, span) &&
          repeats(starts_[begin], span, spans, shift))
        return Seconds{span};
    }
    return std::nullopt;
  }

 private:
  double start(TaskId id) const { return timeline_.spans[index(id)].start.si(); }
  double finish(TaskId id) const { return timeline_.spans[index(id)].finish.si(); }
  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }

  // When the first stage begins each of its backward passes.
  std::vector<double> backward_starts() const {
    std::vector<double> starts;
    int chunk = -1;
    int microbatch = -1;
    for (int i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.task(TaskId{i});
      if (task.role != 0 || task.what != Task::What::backward || task.microbatch < 0) continue;
      if (task.chunk == chunk && task.microbatch == microbatch) continue;  // Of the same pass.
      chunk = task.chunk, microbatch = task.microbatch;
      starts.push_back(start(TaskId{i}));
    }
    return starts;
  }

  // What is soon found out, and implied by repeats().
  bool first_stage_repeats(std::size_t begin, std::size_t end, std::size_t passes,
                           double span) const {
    for (std::size_t i = begin + passes; i < end; ++i)
      if (std::abs(starts_[i] - starts_[i - passes] - span) > 2.0 * rounding * span) return false;
    return true;
  }

  // First passes of the stretches to compare: the last ones before the cool-down, in which the
  // first stage has as many backward passes as forward ones in the warm-up, and a little sooner.
  std::vector<std::size_t> places(std::size_t count, std::size_t needed) const {
    std::size_t cool_down = 0;
    if (plan_.schedule == ScheduleKind::one_f_one_b)
      cool_down = static_cast<std::size_t>(plan_.pp - 1);
    if (plan_.schedule == ScheduleKind::interleaved)
      cool_down = static_cast<std::size_t>(2 * (plan_.pp - 1) + (plan_.vpp - 1) * plan_.pp);
    std::vector<std::size_t> begins;
    for (std::size_t earlier = 0; earlier < 3 && needed + cool_down + earlier <= count; ++earlier)
      begins.push_back(count - needed - cool_down - earlier);
    return begins;
  }

  struct Seen {
    std::tuple<int, int, Task::What, Task::Kind, Stream, GroupKind, int, double> key;
    int microbatch;
    double finish;
    double start() const { return std::get<7>(key); }
  };

  // Tasks by who does what, from the beginning of the span in which they start.
  std::vector<std::vector<Seen>> tasks_by_span(double begin, double span, int count) const {
    const double early = rounding * span;  // Those that start with a span belong to it.
    std::vector<std::vector<Seen>> spans(static_cast<std::size_t>(count));
    for (int i = 0; i < graph_.size(); ++i) {
      const TaskId id{i};
      const double since = start(id) - begin + early;
      if (since < 0.0 || since >= count * span) continue;
      const auto n = static_cast<std::size_t>(since / span);
      const double origin = begin + static_cast<double>(n) * span;
      const Task& task = graph_.task(id);
      spans[n].push_back({{task.role, task.to_role, task.what, task.kind, task.stream, task.group,
                           task.chunk, start(id) - origin},
                          task.microbatch,
                          finish(id) - origin});
    }
    for (auto& tasks : spans)
      std::sort(tasks.begin(), tasks.end(),
                [](const Seen& a, const Seen& b) { return a.key < b.key; });
    return spans;
  }

  // Something that began with the step and is still under way would end some time later.
  bool long_under_way(double begin, double span) const {
    for (int i = 0; i < graph_.size(); ++i)
      if (start(TaskId{i}) < begin - rounding * span && finish(TaskId{i}) > begin + span)
        return true;
    return false;
  }

  bool repeats(double begin, double span, int count, int shift) const {
    if (long_under_way(begin, span)) return false;
    const auto spans = tasks_by_span(begin, span, count);
    const double tolerance = rounding * span;
    const auto is_twin = [&](const Seen& a, const Seen& b) {
      const auto who = [](const Seen& of) {
        const auto& [role, to, what, kind, stream, group, chunk, start] = of.key;
        return std::tuple{role, to, what, kind, stream, group, chunk};
      };
      return who(a) == who(b) && std::abs(a.start() - b.start()) <= tolerance &&
             std::abs(a.finish - b.finish) <= tolerance && a.finish - a.start() < span &&
             b.microbatch - a.microbatch == (a.microbatch < 0 ? 0 : shift);
    };
    for (std::size_t n = 1; n < spans.size(); ++n)
      if (spans[n].size() != spans[0].size() ||
          !std::equal(spans[n - 1].begin(), spans[n - 1].end(), spans[n].begin(), is_twin))
        return false;
    return true;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const Plan& plan_;
  const std::vector<double> starts_;
};

}  // namespace

std::vector<Excerpt> excerpts(const Plan& plan) {
  // In GPipe's forward passes fast stages run further and further ahead of slow ones.
  if (plan.schedule == ScheduleKind::gpipe) return {};
  // The orders of others depend on how many micro-batches there are.
  if (plan.splits_backward()) return {};
  // Warm-up, some periods until its traces are gone, those that are compared, cool-down.
  const bool interleaved = plan.schedule == ScheduleKind::interleaved && plan.vpp > 1;
  const int period = interleaved ? plan.pp : 1;
  const int shortest = interleaved ? 5 * plan.pp : plan.pp + 6;
  std::vector<Excerpt> tried;
  const auto room = [&](int m) { return 4 * m < 3 * plan.microbatches; };
  const auto add = [&](int m, int multiple) {
    tried.push_back({m + (plan.microbatches - m) % multiple, period});
  };
  if (room(shortest)) add(shortest, period);
  if (room(2 * shortest)) add(2 * shortest, all_cycles * period);
  if (room(8 * shortest)) add(4 * shortest, all_cycles * period);
  return tried;
}

std::optional<Seconds> added_by_a_period(const TrainingStep& step, const Timeline& timeline,
                                         const Plan& plan, const Excerpt& excerpt) {
  const Repetition repetition{step, timeline, plan};
  const int left_out = (plan.microbatches - excerpt.microbatches) / excerpt.period;
  for (const Cycle& cycle : cycles) {
    if (left_out % cycle.periods != 0) continue;
    if (const auto span = repetition.span(cycle.periods * excerpt.period, cycle.spans))
      return *span / cycle.periods;
  }
  return std::nullopt;
}

}  // namespace orrery
