#include "sim/engine/simulation/execute.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/base/core/ticks.hpp"
#include "sim/engine/graph/chain.hpp"
#include "sim/engine/simulation/calendar.hpp"
#include "sim/engine/simulation/platform.hpp"
#include "sim/engine/simulation/wires.hpp"

namespace orrery {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Kernels, latencies and flows end at a time that is known when they begin, or when others come
// onto their links or leave them: they wait in a calendar. Where many flows meet, they are
// SimGrid's; while it has any flow, its clock is the one that counts.
class Execution {
 public:
  Execution(const TaskGraph& graph, const Topology& topology, Platform& platform,
            std::size_t most_shared_here)
      : graph_{graph},
        topology_{topology},
        platform_{platform},
        waits_for_(static_cast<std::size_t>(graph.size())),
        flows_left_(waits_for_.size(), 0),
        wires_{topology, calendar_, most_shared_here,
               [this](std::size_t flow, double bytes) { hand_over(flow, bytes); }} {
    timeline_.spans.resize(waits_for_.size());
  }

  Timeline run() {
    std::vector<TaskId> first;
    for (int i = 0; i < graph_.size(); ++i) {
      waits_for_[index(TaskId{i})] = graph_.waits_for(TaskId{i});
      if (waits_for_[index(TaskId{i})] == 0) first.push_back(TaskId{i});
    }
    for (TaskId id : first) start(id);
    while (in_simgrid_ > 0 || !calendar_.empty()) {
      if (in_simgrid_ == 0) {
        handle_next();
      } else {
        go_on_in_simgrid();
        platform_.run();
      }
    }
    if (finished_ != graph_.size()) report_deadlock();
    timeline_.makespan = Seconds{now_};
    return std::move(timeline_);
  }

 private:
  using What = Calendar::What;

  // A task on its way through its chain.
  struct Walk {
    TaskId task;
    std::size_t phase = 0;
    double origin = 0.0;  // Asleep: when it would have started, had nobody delayed it.
    double ends = never;  // Asleep: when, if nobody wakes it.
    int left = 0;         // Awake: parts and flows of the phase that are not over.
  };
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  // Walks on a link. One that has all its links to itself sleeps until it is over or a flow comes.
  struct Walkers {
    int count = 0;
    std::size_t asleep = nobody;
  };

  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }

  void handle_next() {
    const Calendar::Event event = calendar_.take();
    if (event.what == What::flow_arrives && !wires_.arrives_at(event.of, event.time)) return;
    if (event.what == What::walk_undelayed && walks_[event.of].ends != event.time) return;
    now_ = std::max(now_, event.time);
    switch (event.what) {
      case What::task_waited:
        return start_flows(TaskId{static_cast<int>(event.of)});
      case What::flow_arrives:
        return arrive(event.of);
      case What::phase_sends:
        return send(event.of);
      case What::phase_part:
        return part_is_over(event.of);
      case What::walk_undelayed:
        return end_walk(event.of);
    }
  }

  void start(TaskId id) {
    timeline_.spans[index(id)].start = Seconds{now_};
    const Task& task = graph_.task(id);
    if (task.chain)
      start_walk(id);
    else if (task.duration > Seconds{})
      calendar_.expect(now_ + in_ticks(task.duration).si(), What::task_waited, index(id));
    else
      start_flows(id);
  }

  void start_flows(TaskId id) {
    const Task& task = graph_.task(id);
    flows_left_[index(id)] = static_cast<int>(task.flows.size());
    if (task.flows.empty()) return finish(id);
    for (const Flow& flow : task.flows) start_flow(id, flow, flow.bytes.si());
  }

  void start_flow(TaskId id, const Flow& flow, double bytes) {
    if (!walkers_.empty())
      for (const LinkUse& use : flow.way)
        if (const std::size_t walk = walkers(use.link).asleep; walk != nobody) wake(walk);
    wires_.start(id, flow, bytes, now_);
  }

  void arrive(std::size_t flow) {
    const TaskId task = wires_.arrive(flow, now_);
    if (graph_.task(task).chain) return part_is_over(walk_of_[index(task)]);
    if (--flows_left_[index(task)] == 0) finish(task);
  }

  const Chain& chain(const Walk& walk) const { return *graph_.task(walk.task).chain; }
  Walkers& walkers(LinkId link) { return walkers_[static_cast<std::size_t>(link.value)]; }

  void start_walk(TaskId id) {
    if (walkers_.empty()) {
      walkers_.resize(static_cast<std::size_t>(topology_.link_count()));
      walk_of_.resize(waits_for_.size());
    }
    const std::size_t self = walks_.size();
    walk_of_[index(id)] = self;
    walks_.push_back({.task = id});
    for (LinkId link : chain(walks_[self]).links()) {
      if (const std::size_t other = walkers(link).asleep; other != nobody) wake(other);
      ++walkers(link).count;
    }
    go_on(self);
  }

  void go_on(std::size_t of) {
    Walk& walk = walks_[of];
    const std::vector<LinkId>& links = chain(walk).links();
    const bool undisturbed = std::all_of(links.begin(), links.end(), [this](LinkId link) {
      return walkers(link).count == 1 && wires_.idle(link);
    });
    if (!undisturbed) return step(of, now_);
    for (LinkId link : links) walkers(link).asleep = of;
    walk.origin = now_ - chain(walk).begin(walk.phase).si();
    walk.ends = walk.origin + chain(walk).length().si();
    calendar_.expect(walk.ends, What::walk_undelayed, of);
  }

  void wake(std::size_t of) {
    Walk& walk = walks_[of];
    for (LinkId link : chain(walk).links()) walkers(link).asleep = nobody;
    walk.ends = never;
    walk.phase = chain(walk).phase_at(Seconds{now_ - walk.origin});
    step(of, walk.origin + chain(walk).begin(walk.phase).si());
  }

  // What is left of the walk's phase, which has begun then.
  void step(std::size_t of, double begun) {
    Walk& walk = walks_[of];
    const Chain::Phase& phase = chain(walk).phases()[walk.phase];
    walk.left = 1;  // Until all of it is under way.
    const auto wait = [&](Seconds time, What what) {
      ++walk.left;
      calendar_.expect(begun + time.si(), what, of);
    };
    if (begun + phase.beside.si() > now_) wait(phase.beside, What::phase_part);
    if (begun + phase.before.si() > now_) {
      wait(phase.before, phase.flows.empty() ? What::phase_part : What::phase_sends);
    } else {
      for (const Flow& flow : phase.flows) {
        const double sent = wires_.alone(flow) * (now_ - (begun + phase.before.si()));
        if (flow.bytes.si() - sent <= Wires::arrived) continue;
        ++walk.left;
        wires_.start(walk.task, flow, flow.bytes.si() - sent, now_);
      }
    }
    if (walk.left == 1) return calendar_.expect(now_, What::phase_part, of);
    --walk.left;
  }

  void send(std::size_t of) {
    Walk& walk = walks_[of];
    const Chain::Phase& phase = chain(walk).phases()[walk.phase];
    walk.left += static_cast<int>(phase.flows.size()) - 1;
    for (const Flow& flow : phase.flows) start_flow(walk.task, flow, flow.bytes.si());
  }

  void part_is_over(std::size_t of) {
    Walk& walk = walks_[of];
    if (--walk.left > 0) return;
    if (++walk.phase == chain(walk).phases().size()) return end_walk(of);
    go_on(of);
  }

  void end_walk(std::size_t of) {
    Walk& walk = walks_[of];
    walk.ends = never;  // Woken and asleep again it may have been promised the same time twice.
    for (LinkId link : chain(walk).links()) {
      --walkers(link).count;
      if (walkers(link).asleep == of) walkers(link).asleep = nobody;
    }
    finish(walk.task);
  }

  void hand_over(std::size_t flow, double bytes) {
    if (!links_known_) platform_.use_links(topology_), links_known_ = true;
    if (in_simgrid_++ == 0) own_origin_ = now_, simgrid_origin_ = platform_.now();
    Flow rest = wires_.flow(flow);
    rest.bytes = Bytes{bytes};
    platform_.flow(rest, [this, flow] {
      const Seconds since{platform_.now() - simgrid_origin_};
      now_ = std::max(now_, own_origin_ + in_ticks(since).si());
      --in_simgrid_;
      arrive(flow);
      go_on_in_simgrid();
    });
  }

  // What is due happens; then SimGrid must stop where the calendar has something next. It does not
  // see an alarm that rings at once.
  void go_on_in_simgrid() {
    const auto is_due = [this](double time) {
      return platform_.now() + (time - now_) <= platform_.now();
    };
    while (in_simgrid_ > 0 && !calendar_.empty() && is_due(calendar_.next_time())) handle_next();
    if (in_simgrid_ == 0 || calendar_.empty() || calendar_.next_time() >= alarm_) return;
    alarm_ = calendar_.next_time();
    platform_.timer(Seconds{alarm_ - now_}, [this, date = alarm_] {
      if (alarm_ == date) alarm_ = never;
      if (in_simgrid_ == 0) return;  // The flows that it was set for arrived sooner.
      now_ = std::max(now_, date);
      go_on_in_simgrid();
    });
  }

  // Joins finish at once, so that a chain of them would recurse: a queue instead.
  void finish(TaskId id) {
    done_.push_back(id);
    if (done_.size() > 1) return;
    for (std::size_t next = 0; next < done_.size(); ++next) {
      const TaskId task = done_[next];
      timeline_.spans[index(task)].finish = Seconds{now_};
      ++finished_;
      graph_.for_each_successor(task, [this](TaskId successor) {
        if (--waits_for_[index(successor)] == 0) start(successor);
      });
    }
    done_.clear();
  }

  [[noreturn]] void report_deadlock() const {
    std::string message = "deadlock: " + std::to_string(graph_.size() - finished_) + " of " +
                          std::to_string(graph_.size()) + " tasks cannot finish; waiting:";
    int shown = 0;
    for (int i = 0; i < graph_.size() && shown < 5; ++i)
      if (waits_for_[index(TaskId{i})] > 0) {
        const Task& task = graph_.task(TaskId{i});
        message += " task " + std::to_string(i) + " (owner " + std::to_string(task.owner) +
                   ", note " + std::to_string(task.note) + ", for " +
                   std::to_string(waits_for_[index(TaskId{i})]) + " more)";
        ++shown;
      }
    throw std::logic_error{message};
  }

  const TaskGraph& graph_;
  const Topology& topology_;
  Platform& platform_;
  Timeline timeline_;
  std::vector<int> waits_for_;
  std::vector<int> flows_left_;
  std::vector<TaskId> done_;
  int finished_ = 0;

  double now_ = 0.0;
  Calendar calendar_;
  Wires wires_;
  std::vector<Walk> walks_;
  std::vector<std::size_t> walk_of_;  // By task; of those with a chain.
  std::vector<Walkers> walkers_;      // By link, where there are walks.

  bool links_known_ = false;  // To SimGrid, which is told when the first flows meet.
  int in_simgrid_ = 0;        // Flows.
  double own_origin_ = 0.0;   // SimGrid's clock goes on from run to run: both, when it took over.
  double simgrid_origin_ = 0.0;
  double alarm_ = never;
};

}  // namespace

Timeline execute(const TaskGraph& graph, const Topology& topology, std::size_t most_shared_here) {
  return Execution{graph, topology, Platform::instance(), most_shared_here}.run();
}

}  // namespace orrery
