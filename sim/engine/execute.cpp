#include "sim/engine/execute.hpp"

#include <stdexcept>
#include <string>

#include "sim/engine/platform.hpp"

namespace orrery {
namespace {

class Execution {
 public:
  Execution(const TaskGraph& graph, Platform& platform)
      : graph_{graph},
        platform_{platform},
        origin_{platform.now()},
        waits_for_(static_cast<std::size_t>(graph.size())),
        flows_left_(waits_for_.size(), 0) {
    timeline_.spans.resize(waits_for_.size());
  }

  Timeline run() {
    std::vector<TaskId> first;
    for (int i = 0; i < graph_.size(); ++i) {
      waits_for_[index(TaskId{i})] = graph_.waits_for(TaskId{i});
      if (waits_for_[index(TaskId{i})] == 0) first.push_back(TaskId{i});
    }
    for (TaskId id : first) start(id);
    platform_.run();
    if (finished_ != graph_.size()) report_deadlock();
    return std::move(timeline_);
  }

 private:
  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }
  Seconds now() const { return Seconds{platform_.now() - origin_}; }

  void start(TaskId id) {
    timeline_.spans[index(id)].start = now();
    const Task& task = graph_.task(id);
    if (task.duration > Seconds{})
      platform_.timer(task.duration, [this, id] { start_flows(id); });
    else
      start_flows(id);
  }

  void start_flows(TaskId id) {
    const Task& task = graph_.task(id);
    flows_left_[index(id)] = static_cast<int>(task.flows.size());
    if (task.flows.empty()) return finish(id);
    for (const Flow& flow : task.flows)
      platform_.flow(flow, [this, id] {
        if (--flows_left_[index(id)] == 0) finish(id);
      });
  }

  // Joins finish at once, so that a chain of them would recurse: a queue instead.
  void finish(TaskId id) {
    done_.push_back(id);
    if (done_.size() > 1) return;
    for (std::size_t next = 0; next < done_.size(); ++next) {
      const TaskId task = done_[next];
      timeline_.spans[index(task)].finish = now();
      timeline_.makespan = now();
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
  Platform& platform_;
  const double origin_;
  Timeline timeline_;
  std::vector<int> waits_for_;
  std::vector<int> flows_left_;
  std::vector<TaskId> done_;
  int finished_ = 0;
};

}  // namespace

Timeline execute(const TaskGraph& graph, const Topology& topology) {
  Platform& platform = Platform::instance();
  platform.use_links(topology);
  return Execution{graph, platform}.run();
}

}  // namespace orrery
