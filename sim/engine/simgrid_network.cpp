#include "sim/engine/simgrid_network.hpp"

#include <algorithm>

#include "sim/core/process.hpp"
#include "sim/core/progress.hpp"
#include "sim/engine/fused_task.hpp"
#include "sim/engine/simgrid/simgrid_library.hpp"

namespace orrery {
namespace {

simgrid_library::Library& library() {
  static auto* const entry = reinterpret_cast<simgrid_library::LibraryEntry*>(
      module_entry("liborrery_simgrid.so", "orrery_simgrid"));
  return *entry();
}

simgrid_library::Route route_of(const Flow& flow, const Topology& topology) {
  simgrid_library::Route route{{}, flow.rate.si()};
  for (const LinkUse& use : flow.route)
    route.hops.push_back({use.link.value, topology.link(use.link).capacity.si(), use.times});
  return route;
}

class SimgridNetwork final : public NetworkModel {
 public:
  explicit SimgridNetwork(const Topology& topology)
      : topology_{topology}, network_{library().network()} {}

  void announce(const Flow& flow) override { network_->add_route(route_of(flow, topology_)); }

  void start(std::uint32_t sender, const Flow& flow, double bytes, Ticks now) override {
    if (starts_ == arrivals_) network_->set_time(now_ = now.seconds().si());
    ProgressListener::report({Progress::Of::flows, arrivals_, ++starts_});
    network_->start(sender, route_of(flow, topology_), bytes);
  }

  std::optional<Arrival> advance(Ticks time, std::uint64_t) override {
    const double until = time == Ticks::never() ? never_s : time.seconds().si();
    while (next_ == arrived_.size()) {
      if (now_ >= until) return std::nullopt;
      arrived_.clear();
      next_ = 0;
      now_ = network_->step(until, arrived_);
    }
    ++arrivals_;
    return Arrival{arrived_[next_++], std::min(time, Ticks::nearest(Seconds{now_}))};
  }

  // Unused, as fused tasks are simulated phase by phase.
  bool is_idle(LinkId) const override { return false; }
  bool is_exact() const override { return false; }

 private:
  static constexpr double never_s = 1e18;

  const Topology& topology_;
  std::unique_ptr<simgrid_library::Network> network_;
  double now_ = 0.0;
  std::vector<std::uint32_t> arrived_;  // Senders at now_; next_ is the next of them.
  std::size_t next_ = 0;
  std::size_t starts_ = 0, arrivals_ = 0;
};

simgrid_library::Phase phase_of(Seconds before, Seconds concurrent, const Flows& flows,
                                const Topology& topology) {
  simgrid_library::Phase phase{before.si(), concurrent.si(), {}};
  for (const Flow& flow : flows) phase.flows.push_back({route_of(flow, topology), flow.bytes.si()});
  return phase;
}

}  // namespace

std::unique_ptr<NetworkModel> simgrid_network(const Topology& topology) {
  return std::make_unique<SimgridNetwork>(topology);
}

Timeline simgrid_timeline(const TaskGraph& graph, const Topology& topology) {
  std::vector<simgrid_library::Activities> tasks;
  for (int i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId{i});
    simgrid_library::Activities& activity = tasks.emplace_back();
    activity.host = task.owner;
    if (task.fused)
      for (const FusedTask::Phase& phase : task.fused->phases())
        activity.phases.push_back(
            phase_of(phase.before.seconds(), phase.concurrent.seconds(), phase.flows, topology));
    else
      activity.phases.push_back(phase_of(task.duration, {}, task.flows, topology));
    graph.for_each_predecessor(TaskId{i}, [&](TaskId before) {
      activity.after.push_back(static_cast<std::uint32_t>(before.value));
    });
    // A graph may repeat a dependence, which SimGrid treats as an error.
    std::sort(activity.after.begin(), activity.after.end());
    activity.after.erase(std::unique(activity.after.begin(), activity.after.end()),
                         activity.after.end());
  }
  Timeline timeline;
  timeline.simulator = Simulator::simgrid;
  for (const simgrid_library::Times& times : library().run(tasks)) {
    timeline.spans.push_back(
        {Ticks::nearest(Seconds{times.start}), Ticks::nearest(Seconds{times.finish})});
    timeline.makespan = std::max(timeline.makespan, timeline.spans.back().finish);
  }
  return timeline;
}

}  // namespace orrery
