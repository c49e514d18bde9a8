#include "sim/engine/simulation.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/core/error.hpp"
#include "sim/core/progress.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fused_task.hpp"
#include "sim/engine/max_min_network.hpp"

namespace orrery {
namespace {

constexpr int none = -1;
constexpr int over = -1;  // A finished task waits for nothing.
constexpr std::size_t tasks_between_reports = 1 << 12;

std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }
TaskId task_id(std::size_t index) { return TaskId{static_cast<std::int32_t>(index)}; }

// Successors that were added after the graph: a list for each task, in the order of add().
class LaterWaits {
 public:
  void add(TaskId before, TaskId after) {
    if (ends_.size() <= index(before)) ends_.resize(index(before) + 1);
    Ends& list = ends_[index(before)];
    const int place = static_cast<int>(waits_.size());
    waits_.push_back({after, none});
    if (list.first == none)
      list.first = place;
    else
      waits_[static_cast<std::size_t>(list.last)].next = place;
    list.last = place;
  }
  template <class Visit>
  void for_each(TaskId before, const Visit& visit) const {
    if (index(before) >= ends_.size()) return;
    for (int i = ends_[index(before)].first; i != none;) {
      const Wait wait = waits_[static_cast<std::size_t>(i)];  // Copied, as a visit may add some.
      visit(wait.after);
      i = wait.next;
    }
  }

 private:
  struct Wait {
    TaskId after;
    int next;
  };
  struct Ends {
    int first = none;
    int last = none;
  };
  std::vector<Ends> ends_;  // Indexed by task.
  std::vector<Wait> waits_;
};

// The tasks of a simulation: those of its graph, and those that were added since.
class Tasks {
 public:
  explicit Tasks(std::span<const Task> begun_with) : begun_with_{begun_with} {}

  const Task& operator[](TaskId id) const {
    const std::size_t place = index(id);
    return place < begun_with_.size() ? begun_with_[place] : added_[place - begun_with_.size()];
  }
  void add(Task task) { added_.push_back(std::move(task)); }
  bool is_added(TaskId id) const { return index(id) >= begun_with_.size(); }
  bool any_added() const { return !added_.empty(); }

  // An owner's next tasks mostly follow this one, but owners take turns: waiting for memory would
  // be a tenth of a large graph's time.
  void look_ahead(TaskId id) const {
    constexpr std::size_t tasks = 3;
    if (index(id) + tasks < begun_with_.size()) __builtin_prefetch(&begun_with_[index(id) + tasks]);
  }

 private:
  std::span<const Task> begun_with_;
  std::vector<Task> added_;
};

}  // namespace

// Tasks in time. Kernels and latencies end at a time that is known when they begin, and wait in the
// event queue; flows are in the network model.
class Simulation::Run {
 public:
  Run(Simulation& self, const TaskGraph* graph, const Topology& topology, Simulator simulator)
      : self_{self},
        graph_{graph},
        topology_{topology},
        tasks_{graph ? graph->tasks() : std::span<const Task>{}},
        network_{make_network_model(simulator, topology, order_)},
        skips_{network_->is_exact()} {
    if (graph) waits_for_.assign(graph->waits().begin(), graph->waits().end());
    for (std::size_t i = 0; i < waits_for_.size(); ++i) announce(tasks_[task_id(i)]);
    timeline_.spans.resize(waits_for_.size());
    timeline_.simulator = simulator;
  }

  TaskId add(Task task, std::span<const TaskId> after) {
    const TaskId id = task_id(waits_for_.size());
    announce(task);
    tasks_.add(std::move(task));
    timeline_.spans.emplace_back();
    waits_for_.push_back(0);
    for (TaskId before : after) {
      assert(before < id);
      if (waits_for_[index(before)] == over) continue;
      later_.add(before, id);
      ++waits_for_.back();
    }
    if (running_ && waits_for_.back() == 0) start(id);
    return id;
  }

  const Task& task(TaskId id) const { return tasks_[id]; }
  const Span& span(TaskId id) const { return timeline_.spans[index(id)]; }
  Ticks now() const { return now_; }

  Timeline run(Driver* driver) {
    driver_ = driver;
    std::vector<TaskId> first;
    for (std::size_t i = 0; i < waits_for_.size(); ++i)
      if (waits_for_[i] == 0) first.push_back(task_id(i));
    running_ = true;
    report_progress();
    for (TaskId id : first) start(id);
    handle_events();
    if (finished_ != waits_for_.size()) report_deadlock();
    if (now_ >= Ticks::end())
      fail_infeasible({}, "it takes more than 24 days, where the simulated clock ends",
                      "simulate less at once: fewer sequences in a step, or more GPUs");
    timeline_.makespan = now_;
    return std::move(timeline_);
  }

 private:
  enum class EventKind : std::uint32_t {
    waited,        // The latency or the kernels of a task have ended.
    phase_sends,   // The flows of a fused task's phase start.
    part_is_over,  // A part of a fused task's phase has ended.
    skipped        // A fused task has ended, unless a flow has come onto its links.
  };
  struct Event {
    EventKind kind = EventKind::waited;
    std::uint32_t of = 0;  // A task, or the index of a fused one in fused_.
  };

  // A running fused task.
  struct Fused {
    TaskId task;
    std::size_t phase = 0;
    Ticks origin = {};            // Skipped: the start of the task if it had no delays.
    Ticks ends = Ticks::never();  // The end if no flow delays it.
    int left = 0;                 // Simulated: parts and flows of the phase that have not ended.
  };
  static constexpr std::size_t no_task = std::numeric_limits<std::size_t>::max();
  // Fused tasks on a link. One with exclusive links is skipped until its end or until a flow comes.
  struct FusedOnLink {
    int count = 0;
    std::size_t skipped = no_task;
  };

  void announce(const Task& task) {
    if (skips_) return;  // Only SimGrid needs it.
    for (const Flow& flow : task.flows) network_->announce(flow);
    if (task.fused)
      for (const FusedTask::Phase& phase : task.fused->phases())
        for (const Flow& flow : phase.flows) network_->announce(flow);
  }

  void expect(Ticks time, EventKind kind, std::size_t of) {
    queue_.push(time, order_.next(), Event{kind, static_cast<std::uint32_t>(of)});
  }

  void handle_events() {
    while (true) {
      if (flows_ > 0) {
        const Ticks time = queue_.empty() ? Ticks::never() : queue_.next().time;
        const std::uint64_t order = queue_.empty() ? EventOrder::last : queue_.next().order;
        if (const auto arrival = network_->advance(time, order)) {
          now_ = std::max(now_, arrival->time);
          --flows_;
          arrive(TaskId{static_cast<std::int32_t>(arrival->sender)});
          continue;
        }
      }
      if (queue_.empty()) return;
      const auto [time, order, event] = queue_.pop();
      if (event.kind == EventKind::skipped && fused_[event.of].ends != time) continue;
      now_ = std::max(now_, time);
      switch (event.kind) {
        case EventKind::waited:
          start_flows(TaskId{static_cast<std::int32_t>(event.of)});
          break;
        case EventKind::phase_sends:
          send(event.of);
          break;
        case EventKind::part_is_over:
          part_is_over(event.of);
          break;
        case EventKind::skipped:
          end_fused(event.of);
          break;
      }
    }
  }

  void start(TaskId id) {
    tasks_.look_ahead(id);
    timeline_.spans[index(id)].start = now_;
    const Task& task = tasks_[id];
    if (task.fused)
      start_fused(id);
    else if (task.duration > Seconds{})
      expect(now_ + Ticks::nearest(task.duration), EventKind::waited, index(id));
    else
      start_flows(id);
  }

  // Joins finish at once, so that a sequence of them would recurse; a queue avoids that.
  void finish(TaskId id) {
    done_.push_back(id);
    if (done_.size() > 1) return;
    for (std::size_t next = 0; next < done_.size(); ++next) {
      const TaskId task = done_[next];
      timeline_.spans[index(task)].finish = now_;
      waits_for_[index(task)] = over;
      if (++finished_ % tasks_between_reports == 0) report_progress();
      const auto release = [this](TaskId successor) {
        if (--waits_for_[index(successor)] == 0) start(successor);
      };
      if (!tasks_.is_added(task)) graph_->for_each_successor(task, release);
      if (tasks_.any_added()) later_.for_each(task, release);
      if (driver_) driver_->finished(self_, task);
    }
    done_.clear();
  }

  std::uint32_t& state(TaskId id) {
    if (index(id) >= state_.size()) state_.resize(2 * index(id) + 1);
    return state_[index(id)];
  }

  void start_flows(TaskId id) {
    const Task& task = tasks_[id];
    if (task.flows.empty()) return finish(id);
    state(id) = static_cast<std::uint32_t>(task.flows.size());
    for (const Flow& flow : task.flows) start_flow(id, flow);
  }

  void start_flow(TaskId id, const Flow& flow) {
    if (!on_link_.empty())
      for (const LinkUse& use : flow.route)
        if (const std::size_t skipped = on_link(use.link).skipped; skipped != no_task)
          wake(skipped);
    move(id, flow, flow.bytes.si());
  }

  void move(TaskId id, const Flow& flow, double bytes) {
    ++flows_;
    network_->start(static_cast<std::uint32_t>(id.value), flow, bytes, now_);
  }

  void arrive(TaskId id) {
    if (tasks_[id].fused) return part_is_over(state(id));
    if (--state(id) == 0) finish(id);
  }

  const FusedTask& fused(const Fused& running) const { return *tasks_[running.task].fused; }
  FusedOnLink& on_link(LinkId link) {
    const auto place = static_cast<std::size_t>(link.value);
    if (place >= on_link_.size()) on_link_.resize(static_cast<std::size_t>(topology_.link_count()));
    return on_link_[place];
  }

  void start_fused(TaskId id) {
    const std::size_t self = fused_.size();
    state(id) = static_cast<std::uint32_t>(self);
    fused_.push_back({.task = id});
    if (skips_)
      for (LinkId link : fused(fused_[self]).links()) {
        if (const std::size_t other = on_link(link).skipped; other != no_task) wake(other);
        ++on_link(link).count;
      }
    resume(self);
  }

  void resume(std::size_t of) {
    Fused& running = fused_[of];
    const std::vector<LinkId>& links = fused(running).links();
    const bool has_exclusive_links =
        skips_ && std::all_of(links.begin(), links.end(), [&](LinkId link) {
          return on_link(link).count == 1 && network_->is_idle(link);
        });
    if (!has_exclusive_links) return step(of, now_);
    for (LinkId link : links) on_link(link).skipped = of;
    running.origin = now_ - fused(running).begin(running.phase);
    running.ends = running.origin + fused(running).length();
    expect(running.ends, EventKind::skipped, of);
  }

  void wake(std::size_t of) {
    Fused& running = fused_[of];
    for (LinkId link : fused(running).links()) on_link(link).skipped = no_task;
    running.ends = Ticks::never();
    running.phase = fused(running).phase_at(now_ - running.origin);
    step(of, running.origin + fused(running).begin(running.phase));
  }

  // Simulates the rest of the phase, which began at `begun`.
  void step(std::size_t of, Ticks begun) {
    Fused& running = fused_[of];
    const FusedTask::Phase& phase = fused(running).phases()[running.phase];
    running.left = 1;  // Counts this function until all parts have started.
    const auto wait = [&](Ticks time, EventKind kind) {
      ++running.left;
      expect(begun + time, kind, of);
    };
    if (begun + phase.concurrent > now_) wait(phase.concurrent, EventKind::part_is_over);
    if (begun + phase.before > now_) {
      wait(phase.before, phase.flows.empty() ? EventKind::part_is_over : EventKind::phase_sends);
    } else {
      for (const Flow& flow : phase.flows) {
        const Seconds since = (now_ - (begun + phase.before)).seconds();
        const double sent =
            since > Seconds{} ? isolated_rate(topology_, flow).si() * since.si() : 0.0;
        if (flow.bytes.si() - sent <= MaxMinNetwork::negligible_bytes) continue;
        ++running.left;
        move(running.task, flow, flow.bytes.si() - sent);
      }
    }
    if (running.left == 1) return expect(now_, EventKind::part_is_over, of);
    --running.left;
  }

  void send(std::size_t of) {
    Fused& running = fused_[of];
    const FusedTask::Phase& phase = fused(running).phases()[running.phase];
    running.left += static_cast<int>(phase.flows.size()) - 1;
    for (const Flow& flow : phase.flows) start_flow(running.task, flow);
  }

  void part_is_over(std::size_t of) {
    Fused& running = fused_[of];
    if (--running.left > 0) return;
    if (++running.phase == fused(running).phases().size()) return end_fused(of);
    resume(of);
  }

  void end_fused(std::size_t of) {
    Fused& running = fused_[of];
    // The same end may be expected twice, if it was woken and skipped again.
    running.ends = Ticks::never();
    if (skips_)
      for (LinkId link : fused(running).links()) {
        --on_link(link).count;
        if (on_link(link).skipped == of) on_link(link).skipped = no_task;
      }
    finish(running.task);
  }

  void report_progress() const {
    ProgressListener::report({Progress::Of::tasks, finished_, waits_for_.size()});
  }

  [[noreturn]] void report_deadlock() const {
    const std::size_t size = waits_for_.size();
    std::string message = "deadlock: " + std::to_string(size - finished_) + " of " +
                          std::to_string(size) + " tasks cannot finish; waiting:";
    int shown = 0;
    for (std::size_t i = 0; i < size && shown < 5; ++i)
      if (waits_for_[i] > 0) {
        const Task& waiting = tasks_[task_id(i)];
        message += " task " + std::to_string(i) + " (owner " + std::to_string(waiting.owner) +
                   ", note " + std::to_string(waiting.note) + ", for " +
                   std::to_string(waits_for_[i]) + " more)";
        ++shown;
      }
    throw std::logic_error{message};
  }

  Simulation& self_;
  const TaskGraph* graph_;
  const Topology& topology_;
  Tasks tasks_;
  Driver* driver_ = nullptr;
  bool running_ = false;

  EventOrder order_;
  EventQueue<Ticks, Event> queue_;
  std::unique_ptr<NetworkModel> network_;
  bool skips_;
  std::size_t flows_ = 0;  // Number of active flows.
  Ticks now_;

  LaterWaits later_;
  std::vector<int> waits_for_;  // Indexed by task; `over` when it has finished.
  std::vector<TaskId> done_;
  std::size_t finished_ = 0;
  std::vector<std::uint32_t> state_;  // Indexed by task: its active flows, or its index in fused_.
  std::vector<Fused> fused_;
  std::vector<FusedOnLink> on_link_;  // Indexed by link, as far as needed.
  Timeline timeline_;
};

Simulation::Simulation(const Topology& topology, Simulator simulator)
    : run_{std::make_unique<Run>(*this, nullptr, topology, simulator)} {}
Simulation::Simulation(const TaskGraph& graph, const Topology& topology, Simulator simulator)
    : run_{std::make_unique<Run>(*this, &graph, topology, simulator)} {}
Simulation::~Simulation() = default;

TaskId Simulation::add(Task task, std::span<const TaskId> after) {
  return run_->add(std::move(task), after);
}
const Task& Simulation::task(TaskId id) const { return run_->task(id); }
const Span& Simulation::span(TaskId id) const { return run_->span(id); }
Ticks Simulation::now() const { return run_->now(); }
Timeline Simulation::run(Driver* driver) { return run_->run(driver); }

}  // namespace orrery
