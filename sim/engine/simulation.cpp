#include "sim/engine/simulation.hpp"

#include <cassert>
#include <stdexcept>
#include <string>

#include "sim/core/error.hpp"
#include "sim/core/progress.hpp"
#include "sim/engine/mover.hpp"

namespace orrery {
namespace {

constexpr int none = -1;
constexpr std::size_t often = 1 << 12;  // Tasks, each of a microsecond or less.
constexpr int over = -1;                // Waits for nothing any more: it has finished.

std::size_t index(TaskId id) { return static_cast<std::size_t>(id.value); }
TaskId task_id(std::size_t index) { return TaskId{static_cast<std::int32_t>(index)}; }

std::vector<int> waits_in(const TaskGraph* graph) {
  if (!graph) return {};
  return {graph->waits().begin(), graph->waits().end()};
}

std::unique_ptr<Mover> mover_of(EngineChoice choice, MovedTasks& tasks, const Topology& topology) {
  if (choice.engine == Engine::simgrid) return simgrid_mover(tasks, topology);
  return own_mover(tasks, topology, choice.most_shared_here);
}

// Who waits for a task that was added later than the graph: a list a task, in the order of add().
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
      const Wait wait = waits_[static_cast<std::size_t>(i)];  // Visiting may add some.
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
  std::vector<Ends> ends_;  // By task.
  std::vector<Wait> waits_;
};

}  // namespace

class Simulation::Run final : public MovedTasks {
 public:
  Run(Simulation& self, const TaskGraph* graph, const Topology& topology, EngineChoice choice)
      : MovedTasks{graph ? graph->tasks() : std::span<const Task>{}},
        self_{self},
        graph_{graph},
        mover_{mover_of(choice, *this, topology)},
        waits_for_{waits_in(graph)} {
    timeline_.spans.resize(waits_for_.size());
    timeline_.engine = choice.engine;
  }

  TaskId add(Task task, std::span<const TaskId> after) {
    const TaskId id = task_id(waits_for_.size());
    added_.push_back(std::move(task));
    timeline_.spans.emplace_back();
    waits_for_.push_back(0);
    for (TaskId before : after) {
      assert(before < id);
      if (waits_for_[index(before)] == over) continue;
      later_.add(before, id);
      ++waits_for_.back();
    }
    mover_->learn_links();
    if (running_ && waits_for_.back() == 0) start(id);
    return id;
  }

  const Span& span(TaskId id) const { return timeline_.spans[index(id)]; }
  Ticks now() const { return now_; }

  Timeline run(Driver* driver) {
    driver_ = driver;
    std::vector<TaskId> first;
    for (std::size_t i = 0; i < waits_for_.size(); ++i)
      if (waits_for_[i] == 0) first.push_back(task_id(i));
    running_ = true;
    tell_progress();
    for (TaskId id : first) start(id);
    mover_->run();
    if (finished_ != waits_for_.size()) report_deadlock();
    if (now_ >= Ticks::end())
      fail_infeasible({}, "it takes more than 24 days, where the simulated clock ends",
                      "simulate less at once: fewer sequences in a step, or more GPUs");
    timeline_.makespan = now_;
    return std::move(timeline_);
  }

  // Joins finish at once, so that a chain of them would recurse: a queue instead.
  void finish(TaskId id, Ticks now) override {
    now_ = now;
    done_.push_back(id);
    if (done_.size() > 1) return;
    for (std::size_t next = 0; next < done_.size(); ++next) {
      const TaskId task = done_[next];
      timeline_.spans[index(task)].finish = now_;
      waits_for_[index(task)] = over;
      if (++finished_ % often == 0) tell_progress();
      const auto release = [this](TaskId successor) {
        if (--waits_for_[index(successor)] == 0) start(successor);
      };
      if (index(task) < begun_with_.size()) graph_->for_each_successor(task, release);
      if (!added_.empty()) later_.for_each(task, release);
      if (driver_) driver_->finished(self_, task);
    }
    done_.clear();
  }

 private:
  void start(TaskId id) {
    look_ahead(id);
    timeline_.spans[index(id)].start = now_;
    mover_->start(id, task(id));
  }

  // An owner's next tasks mostly lie behind this one, but owners take turns: waiting for memory
  // would be a tenth of a large graph's time.
  void look_ahead(TaskId id) const {
    constexpr std::size_t tasks = 3;
    if (index(id) + tasks < begun_with_.size()) __builtin_prefetch(&begun_with_[index(id) + tasks]);
  }

  void tell_progress() const {
    ProgressListener::tell({Progress::Of::tasks, finished_, waits_for_.size()});
  }

  [[noreturn]] void report_deadlock() const {
    const std::size_t size = waits_for_.size();
    std::string message = "deadlock: " + std::to_string(size - finished_) + " of " +
                          std::to_string(size) + " tasks cannot finish; waiting:";
    int shown = 0;
    for (std::size_t i = 0; i < size && shown < 5; ++i)
      if (waits_for_[i] > 0) {
        const Task& waiting = task(task_id(i));
        message += " task " + std::to_string(i) + " (owner " + std::to_string(waiting.owner) +
                   ", note " + std::to_string(waiting.note) + ", for " +
                   std::to_string(waits_for_[i]) + " more)";
        ++shown;
      }
    throw std::logic_error{message};
  }

  Simulation& self_;
  const TaskGraph* graph_;
  std::unique_ptr<Mover> mover_;
  Driver* driver_ = nullptr;
  bool running_ = false;

  LaterWaits later_;
  std::vector<int> waits_for_;  // By task; `over` when it has finished.
  std::vector<TaskId> done_;
  std::size_t finished_ = 0;
  Ticks now_;
  Timeline timeline_;
};

Simulation::Simulation(const Topology& topology, EngineChoice choice)
    : run_{std::make_unique<Run>(*this, nullptr, topology, choice)} {}
Simulation::Simulation(const TaskGraph& graph, const Topology& topology, EngineChoice choice)
    : run_{std::make_unique<Run>(*this, &graph, topology, choice)} {}
Simulation::~Simulation() = default;

TaskId Simulation::add(Task task, std::span<const TaskId> after) {
  return run_->add(std::move(task), after);
}
const Task& Simulation::task(TaskId id) const { return run_->task(id); }
const Span& Simulation::span(TaskId id) const { return run_->span(id); }
Ticks Simulation::now() const { return run_->now(); }
Timeline Simulation::run(Driver* driver) { return run_->run(driver); }

}  // namespace orrery
