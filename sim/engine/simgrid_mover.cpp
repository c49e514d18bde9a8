#include <functional>

#include "sim/engine/chain.hpp"
#include "sim/engine/mover.hpp"
#include "sim/engine/platform.hpp"

namespace orrery {
namespace {

class SimgridMover final : public Mover {
 public:
  SimgridMover(MovedTasks& tasks, const Topology& topology) : tasks_{tasks} {
    platform_.use_links(topology);
    origin_ = platform_.now();
  }

  void start(TaskId id, const Task& task) override {
    at(id) = {};
    if (task.chain) return begin_phase(id);
    at(id).left = 1;
    wait(task.duration, [this, id] { send(id, tasks_.task(id).flows); });
  }

  void learn_links() override {}  // Each when a flow first crosses it.
  void run() override { platform_.run(); }

 private:
  struct Progress {
    int left = 0;  // Timers and flows that are not over, of the task or of its chain's phase.
    std::size_t phase = 0;
  };

  Progress& at(TaskId id) {
    const auto index = static_cast<std::size_t>(id.value);
    if (index >= progress_.size()) progress_.resize(2 * index + 1);
    return progress_[index];
  }

  void begin_phase(TaskId id) {
    const Chain::Phase& phase = tasks_.task(id).chain->phases()[at(id).phase];
    at(id).left = 2;
    wait(phase.beside.seconds(), [this, id] { part_is_over(id); });
    wait(phase.before.seconds(), [this, id, flows = phase.flows] { send(id, flows); });
  }

  // SimGrid does not see a timer that rings at once.
  void wait(Seconds duration, std::function<void()> then) {
    if (platform_.now() + duration.si() <= platform_.now()) return then();
    platform_.timer(duration, std::move(then));
  }

  void send(TaskId id, const Flows& flows) {
    if (flows.empty()) return part_is_over(id);
    at(id).left += static_cast<int>(flows.size()) - 1;
    for (const Flow& flow : flows) platform_.flow(flow, [this, id] { part_is_over(id); });
  }

  void part_is_over(TaskId id) {
    if (--at(id).left > 0) return;
    const Task& task = tasks_.task(id);
    if (task.chain && ++at(id).phase < task.chain->phases().size()) return begin_phase(id);
    tasks_.finish(id, Ticks::nearest(Seconds{platform_.now() - origin_}));
  }

  MovedTasks& tasks_;
  Platform& platform_ = Platform::instance();
  double origin_ = 0.0;             // As it is, where SimGrid's clock can be set.
  std::vector<Progress> progress_;  // By task.
};

}  // namespace

std::unique_ptr<Mover> simgrid_mover(MovedTasks& tasks, const Topology& topology) {
  return std::make_unique<SimgridMover>(tasks, topology);
}

}  // namespace orrery
