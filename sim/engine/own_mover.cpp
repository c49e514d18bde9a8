#include <algorithm>
#include <limits>

#include "sim/engine/calendar.hpp"
#include "sim/engine/chain.hpp"
#include "sim/engine/mover.hpp"
#include "sim/engine/platform.hpp"
#include "sim/engine/wires.hpp"

namespace orrery {
namespace {

// Kernels, latencies and flows end at a time that is known when they begin, or when others come
// onto their links or leave them: they wait in a calendar. Where many flows meet, they are
// SimGrid's; while it has any flow, its clock is the one that counts.
class OwnMover final : public Mover {
 public:
  OwnMover(MovedTasks& tasks, const Topology& topology, std::size_t most_shared_here)
      : tasks_{tasks},
        topology_{topology},
        wires_{topology, calendar_, most_shared_here,
               [this](std::size_t flow, double bytes) { hand_over(flow, bytes); }} {}

  void start(TaskId id, const Task& task) override {
    if (task.chain)
      start_walk(id);
    else if (task.duration > Seconds{})
      calendar_.expect(now_ + Ticks::nearest(task.duration), What::task_waited,
                       static_cast<std::size_t>(id.value));
    else
      start_flows(id);
  }

  void learn_links() override {
    wires_.learn_links(topology_);
    if (!walkers_.empty()) walkers_.resize(static_cast<std::size_t>(topology_.link_count()));
  }

  void run() override {
    while (in_simgrid_ > 0 || !calendar_.empty()) {
      if (in_simgrid_ == 0) {
        handle_next();
      } else {
        go_on_in_simgrid();
        platform_->run();
      }
    }
  }

 private:
  using What = Calendar::What;

  // A task on its way through its chain.
  struct Walk {
    TaskId task;
    std::size_t phase = 0;
    Ticks origin = {};            // Asleep: when it would have started, had nobody delayed it.
    Ticks ends = Ticks::never();  // Asleep: when, if nobody wakes it.
    int left = 0;                 // Awake: parts and flows of the phase that are not over.
  };
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  // Walks on a link. One that has all its links to itself sleeps until it is over or a flow comes.
  struct Walkers {
    int count = 0;
    std::size_t asleep = nobody;
  };

  std::uint32_t& at(TaskId id) {
    const auto index = static_cast<std::size_t>(id.value);
    if (index >= of_task_.size()) of_task_.resize(2 * index + 1);
    return of_task_[index];
  }

  void handle_next() {
    const Calendar::Event event = calendar_.take();
    if (event.what == What::flow_arrives && !wires_.arrives_at(event.of, event.time)) return;
    if (event.what == What::walk_undelayed && walks_[event.of].ends != event.time) return;
    now_ = std::max(now_, event.time);
    switch (event.what) {
      case What::task_waited:
        return start_flows(TaskId{static_cast<std::int32_t>(event.of)});
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

  void start_flows(TaskId id) {
    const Task& task = tasks_.task(id);
    if (task.flows.empty()) return tasks_.finish(id, now_);
    at(id) = static_cast<std::uint32_t>(task.flows.size());
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
    if (tasks_.task(task).chain) return part_is_over(at(task));
    if (--at(task) == 0) tasks_.finish(task, now_);
  }

  const Chain& chain(const Walk& walk) const { return *tasks_.task(walk.task).chain; }
  Walkers& walkers(LinkId link) { return walkers_[static_cast<std::size_t>(link.value)]; }

  void start_walk(TaskId id) {
    if (walkers_.empty()) walkers_.resize(static_cast<std::size_t>(topology_.link_count()));
    const std::size_t self = walks_.size();
    at(id) = static_cast<std::uint32_t>(self);
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
    walk.origin = now_ - chain(walk).begin(walk.phase);
    walk.ends = walk.origin + chain(walk).length();
    calendar_.expect(walk.ends, What::walk_undelayed, of);
  }

  void wake(std::size_t of) {
    Walk& walk = walks_[of];
    for (LinkId link : chain(walk).links()) walkers(link).asleep = nobody;
    walk.ends = Ticks::never();
    walk.phase = chain(walk).phase_at(now_ - walk.origin);
    step(of, walk.origin + chain(walk).begin(walk.phase));
  }

  // What is left of the walk's phase, which has begun then.
  void step(std::size_t of, Ticks begun) {
    Walk& walk = walks_[of];
    const Chain::Phase& phase = chain(walk).phases()[walk.phase];
    walk.left = 1;  // Until all of it is under way.
    const auto wait = [&](Ticks time, What what) {
      ++walk.left;
      calendar_.expect(begun + time, what, of);
    };
    if (begun + phase.beside > now_) wait(phase.beside, What::phase_part);
    if (begun + phase.before > now_) {
      wait(phase.before, phase.flows.empty() ? What::phase_part : What::phase_sends);
    } else {
      for (const Flow& flow : phase.flows) {
        const Seconds since = (now_ - (begun + phase.before)).seconds();
        const double sent = wires_.alone(flow) * since.si();
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
    walk.ends =
        Ticks::never();  // Woken and asleep again it may have been promised the same time twice.
    for (LinkId link : chain(walk).links()) {
      --walkers(link).count;
      if (walkers(link).asleep == of) walkers(link).asleep = nobody;
    }
    tasks_.finish(walk.task, now_);
  }

  void hand_over(std::size_t flow, double bytes) {
    if (!platform_) platform_ = &Platform::instance(), platform_->use_links(topology_);
    if (in_simgrid_++ == 0) own_origin_ = now_, simgrid_origin_ = platform_->now();
    Flow rest = wires_.flow(flow);
    rest.bytes = Bytes{bytes};
    platform_->flow(rest, [this, flow] {
      const Seconds since{platform_->now() - simgrid_origin_};
      now_ = std::max(now_, own_origin_ + Ticks::nearest(since));
      --in_simgrid_;
      arrive(flow);
      go_on_in_simgrid();
    });
  }

  // What is due happens; then SimGrid must stop where the calendar has something next. It does not
  // see an alarm that rings at once.
  void go_on_in_simgrid() {
    const auto is_due = [this](Ticks time) {
      return platform_->now() + (time - now_).seconds().si() <= platform_->now();
    };
    while (in_simgrid_ > 0 && !calendar_.empty() && is_due(calendar_.next_time())) handle_next();
    if (in_simgrid_ == 0 || calendar_.empty() || calendar_.next_time() >= alarm_) return;
    alarm_ = calendar_.next_time();
    platform_->timer((alarm_ - now_).seconds(), [this, date = alarm_] {
      if (alarm_ == date) alarm_ = Ticks::never();
      if (in_simgrid_ == 0) return;  // The flows that it was set for arrived sooner.
      now_ = std::max(now_, date);
      go_on_in_simgrid();
    });
  }

  MovedTasks& tasks_;
  const Topology& topology_;

  Ticks now_;
  Calendar calendar_;
  Wires wires_;
  std::vector<std::uint32_t> of_task_;  // Its walk, or how many of its flows are on their way.
  std::vector<Walk> walks_;
  std::vector<Walkers> walkers_;  // By link, where there are walks.

  Platform* platform_ = nullptr;  // Not before many flows meet: nothing else needs SimGrid.
  int in_simgrid_ = 0;            // Flows.
  Ticks own_origin_;  // SimGrid's clock goes on from run to run: both, when it took over.
  double simgrid_origin_ = 0.0;
  Ticks alarm_ = Ticks::never();
};

}  // namespace

std::unique_ptr<Mover> own_mover(MovedTasks& tasks, const Topology& topology,
                                 std::size_t most_shared_here) {
  return std::make_unique<OwnMover>(tasks, topology, most_shared_here);
}

}  // namespace orrery
