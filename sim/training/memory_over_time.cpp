#include "sim/training/memory_over_time.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

#include "sim/core/units.hpp"

namespace orrery {
namespace {

void extend(std::optional<Span>& span, const Span& by) {
  if (!span) {
    span = by;
    return;
  }
  span->start = std::min(span->start, by.start);
  span->finish = std::max(span->finish, by.finish);
}

// The passes of one rank.
class Passes {
 public:
  Passes(int rep, const Plan& plan)
      : rep_{rep},
        microbatches_{plan.microbatches},
        passes_(at(plan.chunks()) * at(plan.microbatches)) {}

  void see(const Label& label, const Span& span) {
    const bool two = label.with_microbatch >= 0;
    extend(of(label.what, label.chunk, label.microbatch), span);
    if (two)
      extend(of(label.what == Label::What::forward ? Label::What::backward : Label::What::forward,
                label.with_chunk, label.with_microbatch),
             span);
    if (two) extend_last(together_, span);
  }

  ActivationsOverTime over_time(const Plan& plan, const ActivationParts& parts,
                                Ticks makespan) const {
    ActivationsOverTime over{rep_, {}, {}};
    Spans backward;  // Passes that recompute.
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const Pass& pass = passes_[i];
      if (!pass.forward) continue;
      assert(pass.backward);
      const int chunk = static_cast<int>(i / at(microbatches_));
      over.held.push_back({static_cast<int>(i % at(microbatches_)), chunk, *pass.forward,
                           pass.weights ? *pass.weights : *pass.backward,
                           parts.micro_batch[chunk < plan.vpp ? 0 : 1]});
      backward.push_back(*pass.backward);
      if (pass.weights && plan.schedule->recomputes_for_weights())
        backward.push_back(*pass.weights);
    }
    std::sort(over.held.begin(), over.held.end(),
              [](const HeldActivations& a, const HeldActivations& b) {
                return a.taken.start < b.taken.start;
              });
    add_curve(over, makespan,
              {{std::move(backward), parts.recomputed}, {together_, parts.concurrent}});
    return over;
  }

 private:
  using Spans = std::vector<Span>;
  struct Pass {
    std::optional<Span> forward, backward, weights;
  };
  struct Working {
    Spans spans;
    Bytes bytes;
  };

  std::optional<Span>& of(Label::What what, int chunk, int microbatch) {
    Pass& pass = passes_[at(chunk) * at(microbatches_) + at(microbatch)];
    return what == Label::What::forward    ? pass.forward
           : what == Label::What::backward ? pass.backward
                                           : pass.weights;
  }

  // Parts of the same two passes are one span.
  static void extend_last(Spans& spans, const Span& by) {
    if (!spans.empty() && by.start <= spans.back().finish) {
      spans.back().finish = std::max(spans.back().finish, by.finish);
      spans.back().start = std::min(spans.back().start, by.start);
    } else {
      spans.push_back(by);
    }
  }

  // A change of memory: evenly over a span (kept), or all at its ends (working).
  struct Edge {
    Ticks time;
    bool ends = false;
    int ramp = -1;  // Index of the ramp; -1: a change of working memory.
    Bytes step;
  };
  struct Ramp {
    Span span;
    Bytes bytes;
    bool up = true;
  };

  static void add_curve(ActivationsOverTime& over, Ticks makespan,
                        const std::vector<Working>& workings) {
    std::vector<Ramp> ramps;
    std::vector<Edge> edges;
    for (const HeldActivations& held : over.held)
      for (const bool up : {true, false}) {
        const Span& span = up ? held.taken : held.given;
        if (span.start < span.finish)
          edges.push_back({span.start, false, static_cast<int>(ramps.size()), {}});
        edges.push_back({span.finish, true, static_cast<int>(ramps.size()), {}});
        ramps.push_back({span, held.bytes, up});
      }
    for (const Working& working : workings)
      for (const Span& span : working.spans) {
        if (working.bytes == Bytes{}) break;
        edges.push_back({span.start, false, -1, working.bytes});
        edges.push_back({span.finish, true, -1, Bytes{} - working.bytes});
      }
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return a.time != b.time ? a.time < b.time : a.ends && !b.ends;
    });

    // Complete ramps are counted, not summed, so that no rounding is left at the end.
    std::vector<std::pair<Bytes, int>> settled;
    const auto settle = [&](Bytes bytes, int by) {
      auto found = std::find_if(settled.begin(), settled.end(),
                                [&](const auto& known) { return known.first == bytes; });
      if (found == settled.end()) found = settled.insert(found, {bytes, 0});
      found->second += by;
    };
    std::vector<int> under_way;
    int open_spans = 0;
    Bytes working;
    const auto now = [&](Ticks time) {
      MemoryMoment moment{time, {}, working};
      for (const auto& [bytes, count] : settled) moment.kept += static_cast<double>(count) * bytes;
      for (const int index : under_way) {
        const Ramp& ramp = ramps[at(index)];
        const double share = (time - ramp.span.start).seconds() / ramp.span.length();
        moment.kept += (ramp.up ? share : 1.0 - share) * ramp.bytes;
      }
      return moment;
    };
    const auto add = [&](const MemoryMoment& moment) {
      if (!over.curve.empty() && over.curve.back().time == moment.time &&
          over.curve.back().sum() == moment.sum() && over.curve.back().kept == moment.kept)
        return;
      over.curve.push_back(moment);
    };
    add({Ticks{}, {}, {}});
    for (std::size_t i = 0; i < edges.size();) {
      const Ticks time = edges[i].time;
      add(now(time));
      for (; i < edges.size() && edges[i].time == time; ++i) {
        const Edge& edge = edges[i];
        if (edge.ramp < 0) {
          working += edge.step;
          open_spans += edge.ends ? -1 : 1;
          if (open_spans == 0) working = Bytes{};
          continue;
        }
        const Ramp& ramp = ramps[at(edge.ramp)];
        const auto begun = std::find(under_way.begin(), under_way.end(), edge.ramp);
        const bool jumps = edge.ends && begun == under_way.end();  // The pass takes no time.
        if (!edge.ends) under_way.push_back(edge.ramp);
        if (!ramp.up && (!edge.ends || jumps)) settle(ramp.bytes, -1);
        if (ramp.up && edge.ends) settle(ramp.bytes, 1);
        if (edge.ends && !jumps) under_way.erase(begun);
      }
      add(now(time));
    }
    add({makespan, {}, {}});
  }

  int rep_;
  int microbatches_;
  std::vector<Pass> passes_;  // Indexed by chunk and micro-batch.
  Spans together_;            // Spans in which two passes run together.
};

}  // namespace

const MemoryMoment& ActivationsOverTime::peak() const {
  return *std::max_element(
      curve.begin(), curve.end(),
      [](const MemoryMoment& a, const MemoryMoment& b) { return a.sum() < b.sum(); });
}

std::vector<ActivationsOverTime> activations_over_time(const TrainingStep& step,
                                                       const Timeline& timeline, const Plan& plan,
                                                       const std::vector<ActivationParts>& parts,
                                                       const std::vector<int>& reps) {
  std::vector<int> place(step.classes.reps().size(), -1);
  std::vector<Passes> passes;
  for (const int rep : reps) {
    place[at(rep)] = static_cast<int>(passes.size());
    passes.emplace_back(rep, plan);
  }
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    const Label& label = step.label(TaskId{i});
    const bool passes_by = label.what != Label::What::forward &&
                           label.what != Label::What::backward &&
                           label.what != Label::What::weight_gradient;
    if (passes_by || label.microbatch < 0 || place[at(task.owner)] < 0) continue;
    passes[at(place[at(task.owner)])].see(label, timeline.of(TaskId{i}));
  }
  std::vector<ActivationsOverTime> over;
  for (std::size_t i = 0; i < passes.size(); ++i)
    over.push_back(passes[i].over_time(plan, parts[at(step.classes.reps()[at(reps[i])].at.stage)],
                                       timeline.makespan));
  return over;
}

}  // namespace orrery
