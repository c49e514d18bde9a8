#include "sim/engine/execute.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>

#include "sim/engine/platform.hpp"

namespace orrery {
namespace {

constexpr double arrived = 1e-3;  // Bytes that are still to come then: rounding.
constexpr double never = std::numeric_limits<double>::infinity();

// Kernels, latencies and flows that have their links to themselves end at a time that is known when
// they begin: they wait in a calendar. As soon as two flows meet on a link, both are SimGrid's,
// with the bytes that are left, until they have arrived; and while SimGrid has any flow, its clock
// is the one that counts.
class Execution {
 public:
  Execution(const TaskGraph& graph, const Topology& topology, Platform& platform)
      : graph_{graph},
        topology_{topology},
        platform_{platform},
        waits_for_(static_cast<std::size_t>(graph.size())),
        flows_left_(waits_for_.size(), 0),
        links_(static_cast<std::size_t>(topology.link_count())) {
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
  struct Event {
    double time;
    std::size_t order;  // Of two at one time the one that was known first.
    enum class What { task_waited, flow_arrives } what;
    std::size_t of;  // A task, or a place in `moving_`.

    bool operator<(const Event& other) const {  // The earliest is the largest.
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  struct Moving {
    TaskId task;
    const Flow* flow = nullptr;
    double rate = 0.0;
    double arrives = never;  // In SimGrid: when it says so.
  };
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

  struct LinkState {
    int flows = 0;
    std::size_t lone = nobody;  // The flow on it that waits in the calendar, if any.
  };

  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }
  LinkState& link(const LinkUse& use) { return links_[static_cast<std::size_t>(use.link.value)]; }

  void expect(double time, Event::What what, std::size_t of) {
    calendar_.push({time, events_++, what, of});
  }

  void handle_next() {
    const Event event = calendar_.top();
    calendar_.pop();
    // The flow may have met another since, and be SimGrid's.
    if (event.what == Event::What::flow_arrives && moving_[event.of].arrives != event.time) return;
    now_ = std::max(now_, event.time);
    if (event.what == Event::What::task_waited)
      start_flows(TaskId{static_cast<int>(event.of)});
    else
      arrive(event.of);
  }

  void start(TaskId id) {
    timeline_.spans[index(id)].start = Seconds{now_};
    const Task& task = graph_.task(id);
    if (task.duration > Seconds{})
      expect(now_ + task.duration.si(), Event::What::task_waited, index(id));
    else
      start_flows(id);
  }

  void start_flows(TaskId id) {
    const Task& task = graph_.task(id);
    flows_left_[index(id)] = static_cast<int>(task.flows.size());
    if (task.flows.empty()) return finish(id);
    for (const Flow& flow : task.flows) start_flow(id, flow);
  }

  void start_flow(TaskId id, const Flow& flow) {
    const std::size_t self = place(id, flow);
    const bool alone = std::none_of(flow.way.begin(), flow.way.end(),
                                    [this](const LinkUse& use) { return is_busy(link(use)); });
    if (!alone)
      for (const LinkUse& use : flow.way)
        if (const std::size_t other = link(use).lone; other != nobody && is_busy(link(use)))
          hand_over(other, bytes_left(moving_[other]));
    for (const LinkUse& use : flow.way) {
      ++link(use).flows;
      link(use).lone = alone ? self : nobody;
    }
    if (!alone) return hand_over(self, flow.bytes.si());
    Moving& moving = moving_[self];
    moving.rate = rate_alone(flow);
    moving.arrives = now_ + flow.bytes.si() / moving.rate;
    expect(moving.arrives, Event::What::flow_arrives, self);
  }

  // All flows that it stands for cross its links at once.
  double rate_alone(const Flow& flow) const {
    double rate = flow.rate.si();
    for (const LinkUse& use : flow.way) {
      int times = 0;
      for (const LinkUse& other : flow.way) times += other.link == use.link ? other.times : 0;
      rate = std::min(rate, topology_.link(use.link).capacity.si() / times);
    }
    return rate;
  }

  double bytes_left(const Moving& moving) const { return moving.rate * (moving.arrives - now_); }

  // A lone flow that is arriving meets nobody any more.
  bool is_busy(const LinkState& state) const {
    return state.flows > 0 && (state.lone == nobody || bytes_left(moving_[state.lone]) >= arrived);
  }

  std::size_t place(TaskId id, const Flow& flow) {
    if (free_.empty()) {
      moving_.emplace_back();
      free_.push_back(moving_.size() - 1);
    }
    const std::size_t place = free_.back();
    free_.pop_back();
    moving_[place] = {id, &flow};
    return place;
  }

  void hand_over(std::size_t of, double bytes) {
    Moving& moving = moving_[of];
    moving.arrives = never;
    for (const LinkUse& use : moving.flow->way)
      if (link(use).lone == of) link(use).lone = nobody;
    if (!links_known_) platform_.use_links(topology_), links_known_ = true;
    if (in_simgrid_++ == 0) own_origin_ = now_, simgrid_origin_ = platform_.now();
    Flow rest = *moving.flow;
    rest.bytes = Bytes{bytes};
    platform_.flow(rest, [this, of] {
      now_ = std::max(now_, own_origin_ + (platform_.now() - simgrid_origin_));
      --in_simgrid_;
      arrive(of);
      go_on_in_simgrid();
    });
  }

  // What is due happens; then SimGrid must stop where the calendar has something next. It does not
  // see an alarm that rings at once.
  void go_on_in_simgrid() {
    const auto is_due = [this](double time) {
      return platform_.now() + (time - now_) <= platform_.now();
    };
    while (in_simgrid_ > 0 && !calendar_.empty() && is_due(calendar_.top().time)) handle_next();
    if (in_simgrid_ == 0 || calendar_.empty() || calendar_.top().time >= alarm_) return;
    alarm_ = calendar_.top().time;
    platform_.timer(Seconds{alarm_ - now_}, [this, date = alarm_] {
      if (alarm_ == date) alarm_ = never;
      if (in_simgrid_ == 0) return;  // The flows that it was set for arrived sooner.
      now_ = std::max(now_, date);
      go_on_in_simgrid();
    });
  }

  void arrive(std::size_t of) {
    const Moving moving = moving_[of];
    for (const LinkUse& use : moving.flow->way) {
      --link(use).flows;
      if (link(use).lone == of) link(use).lone = nobody;
    }
    free_.push_back(of);
    moving_[of].arrives = never;
    if (--flows_left_[index(moving.task)] == 0) finish(moving.task);
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
        message += " task " + std::to_string(i) + " (role " + std::to_string(task.role) +
                   ", micro-batch " + std::to_string(task.microbatch) + ", for " +
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
  std::priority_queue<Event> calendar_;
  std::size_t events_ = 0;
  std::vector<Moving> moving_;
  std::vector<std::size_t> free_;
  std::vector<LinkState> links_;

  bool links_known_ = false;  // To SimGrid, which is told when the first flows meet.
  int in_simgrid_ = 0;        // Flows.
  double own_origin_ = 0.0;   // SimGrid's clock goes on from run to run: both, when it took over.
  double simgrid_origin_ = 0.0;
  double alarm_ = never;
};

}  // namespace

Timeline execute(const TaskGraph& graph, const Topology& topology) {
  return Execution{graph, topology, Platform::instance()}.run();
}

}  // namespace orrery
