#include "sim/engine/simgrid/simgrid_library.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>

namespace sg4 = simgrid::s4u;

namespace orrery::simgrid_library {
namespace {

// SimGrid counts whole units of data. The rest of a flow is no whole number of bytes, and a byte
// takes a nanosecond on a slow link.
constexpr double units_a_byte = 1024.0;
// Speed of every host: an Exec with that number of flop lasts a second.
constexpr double flop_a_second = 1e9;

// Sets the models' options once in a process, as SimGrid keeps them over all of its engines.
void configure() {
  static bool configured = false;
  if (std::exchange(configured, true)) return;
  // Max-min fairness without corrections for TCP: protocols are part of a link's bandwidth here.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");  // Links are full duplex.
  sg4::Engine::set_config("network/TCP-gamma:0");     // No TCP window bounds a flow.
  // Comms whose ends are closer than this end together. With SimGrid's default of a nanosecond the
  // later of two may meet a flow that it would not, and a step end microseconds apart.
  sg4::Engine::set_config("surf/precision:1e-11");
}

// One run of SimGrid: an engine and its platform. Its clock goes on from run to run.
class Run {
 public:
  explicit Run(const std::set<Route>& routes) {
    static char name[] = "orrery";
    static char quiet[] = "--log=root.thresh:error";
    static char* arguments[] = {name, quiet, nullptr};
    int count = 2;
    engine_ = std::make_unique<sg4::Engine>(&count, arguments);
    configure();
    origin_ = sg4::Engine::get_clock();
    cluster_ = sg4::create_full_zone("cluster");
    for (const Route& route : routes) add(route);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // A host for computations, with enough cores that none waits for another.
  sg4::Host* host(const std::string& name, int cores) {
    return cluster_->create_host(name, flop_a_second)->set_core_count(cores)->seal();
  }
  void seal() { cluster_->seal(); }

  sg4::CommPtr comm(const Route& route, double bytes) const {
    const auto& [from, to] = ends_.at(route);
    const sg4::CommPtr comm = sg4::Comm::sendto_init(from, to);
    comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(units_a_byte * bytes)));
    return comm;
  }

  sg4::Engine& engine() { return *engine_; }
  double now() const { return sg4::Engine::get_clock() - origin_; }
  double origin() const { return origin_; }

 private:
  // SimGrid has one route between two hosts, and flows have many: each is a zone of two hosts. The
  // last link of a route lets each flow have its own rate (FATPIPE), independently of others. A
  // link that is crossed several times is repeated in the route.
  void add(const Route& route) {
    const std::string number = std::to_string(ends_.size());
    sg4::NetZone* zone = sg4::create_full_zone("route" + number)->set_parent(cluster_);
    sg4::Host* from = zone->create_host("from" + number, flop_a_second)->seal();
    sg4::Host* to = zone->create_host("to" + number, flop_a_second)->seal();
    std::vector<sg4::LinkInRoute> links;
    for (const Hop& hop : route.hops)
      links.insert(links.end(), static_cast<std::size_t>(hop.times), sg4::LinkInRoute{link(hop)});
    links.emplace_back(zone->create_link("rate" + number, units_a_byte * route.rate)
                           ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
                           ->seal());
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
    zone->seal();
    ends_.emplace(route, std::pair{from, to});
  }

  sg4::Link* link(const Hop& hop) {
    sg4::Link*& known = links_[hop.link];
    if (!known)
      known = cluster_->create_link("link" + std::to_string(hop.link), units_a_byte * hop.bandwidth)
                  ->seal();
    return known;
  }

  std::unique_ptr<sg4::Engine> engine_;
  double origin_ = 0.0;
  sg4::NetZone* cluster_ = nullptr;
  std::map<int, sg4::Link*> links_;
  std::map<Route, std::pair<sg4::Host*, sg4::Host*>> ends_;
};

// The listener for completed activities: SimGrid's signal can only be connected.
std::function<void(const sg4::Activity&)>& listener() {
  static std::function<void(const sg4::Activity&)> listener;
  return listener;
}
void listen(std::function<void(const sg4::Activity&)> to) {
  static bool connected = false;
  if (!std::exchange(connected, true))
    sg4::Activity::on_completion_cb([](const sg4::Activity& activity) {
      if (listener()) listener()(activity);
    });
  listener() = std::move(to);
}

class SteppedNetwork final : public Network {
 public:
  SteppedNetwork() {
    listen([this](const sg4::Activity& activity) {
      auto* flow = const_cast<sg4::Activity&>(activity).get_data<Moving>();
      if (flow) completed_.push_back(flow);
    });
  }
  ~SteppedNetwork() override {
    listener() = nullptr;
    end_run();
  }

  void add_route(const Route& route) override {
    if (routes_.insert(route).second) end_run();  // A sealed platform takes no more routes.
  }

  void start(std::uint32_t sender, const Route& route, double bytes) override {
    add_route(route);
    Moving& flow = moving_[flows_] = {flows_, sender, route, bytes, nullptr};
    ++flows_;
    if (run_) send(flow);
  }

  double step(double until, std::vector<std::uint32_t>& arrived) override {
    if (!run_) begin_run();
    const double end = std::max(run_->origin() + (until - begun_at_), sg4::Engine::get_clock());
    run_->engine().run_until(end);
    for (const Moving* flow : completed_) {
      arrived.push_back(flow->sender);
      moving_.erase(flow->number);
    }
    completed_.clear();
    return sg4::Engine::get_clock() < end ? begun_at_ + run_->now() : until;
  }

  void set_time(double now) override { begun_at_ = now - (run_ ? run_->now() : 0.0); }

 private:
  struct Moving {
    std::uint64_t number = 0;
    std::uint32_t sender = 0;
    Route route;
    double bytes = 0.0;
    sg4::CommPtr comm;
  };

  void send(Moving& flow) {
    flow.comm = run_->comm(flow.route, flow.bytes);
    flow.comm->set_data(&flow);
    flow.comm->vetoable_start();
  }

  void begin_run() {
    run_ = std::make_unique<Run>(routes_);
    run_->seal();
    // SimGrid returns control after each event while an activity cannot start, so that a scheduler
    // may place it (examples/cpp/dag-scheduling). This Exec never gets a host.
    run_->engine().track_vetoed_activities(&vetoed_);
    placeless_ = sg4::Exec::init();
    placeless_->set_name("placeless")->set_flops_amount(1.0)->vetoable_start();
    for (auto& [number, flow] : moving_) send(flow);
  }

  void end_run() {
    if (!run_) return;
    begun_at_ += run_->now();
    for (auto& [number, flow] : moving_) {
      flow.bytes = std::max(1.0, flow.comm->get_remaining()) / units_a_byte;
      flow.comm->cancel();
      flow.comm.reset();
    }
    placeless_->cancel();
    placeless_.reset();
    run_->engine().track_vetoed_activities(nullptr);
    vetoed_.clear();
    run_.reset();
    completed_.clear();  // Flows that were cancelled.
  }

  std::unique_ptr<Run> run_;
  double begun_at_ = 0.0;  // The time at which this run's clock began.
  std::set<Route> routes_;
  std::map<std::uint64_t, Moving> moving_;  // Sorted by number, in the order of start().
  std::uint64_t flows_ = 0;
  std::vector<const Moving*> completed_;
  std::set<sg4::Activity*> vetoed_;
  sg4::ExecPtr placeless_;
};

// Tasks as SimGrid's own activities, which wait for each other by add_successor().
//
//     start ──> Exec before ──> Comm, Comm, ... ──> end of the phase ──> ... ──> finish
//        └────> Exec concurrent ────────────────────────┘
class ActivityGraph {
 public:
  explicit ActivityGraph(const std::vector<Activities>& tasks)
      : tasks_{tasks}, run_{routes_of(tasks)} {}

  std::vector<Times> run() {
    std::set<int> hosts;
    for (const Activities& task : tasks_) hosts.insert(task.host);
    // Streams of a GPU run concurrently, and so may all of its tasks.
    const int cores = static_cast<int>(2 * tasks_.size() + 2);
    for (const int host : hosts) hosts_[host] = run_.host("gpu" + std::to_string(host), cores);
    run_.seal();
    std::vector<std::pair<sg4::ExecPtr, sg4::ExecPtr>> ends;
    for (const Activities& task : tasks_) ends.push_back(activities_of(task));
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      for (const std::uint32_t before : tasks_[i].after)
        ends[before].second->add_successor(ends[i].first);
    for (const sg4::ActivityPtr& activity : all_) activity->vetoable_start();
    run_.engine().run();
    std::vector<Times> times;
    for (const auto& [first, last] : ends)
      times.push_back(
          {first->get_start_time() - run_.origin(), last->get_finish_time() - run_.origin()});
    return times;
  }

 private:
  static std::set<Route> routes_of(const std::vector<Activities>& tasks) {
    std::set<Route> routes;
    for (const Activities& task : tasks)
      for (const Phase& phase : task.phases)
        for (const Phase::Sent& sent : phase.flows) routes.insert(sent.route);
    return routes;
  }

  sg4::ExecPtr exec(double seconds, sg4::Host* host) {
    const sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_flops_amount(flop_a_second * seconds)->set_host(host);
    all_.push_back(exec);
    return exec;
  }

  std::pair<sg4::ExecPtr, sg4::ExecPtr> activities_of(const Activities& task) {
    sg4::Host* host = hosts_.at(task.host);
    const sg4::ExecPtr first = exec(0.0, host);
    sg4::ExecPtr last = first;
    for (const Phase& phase : task.phases) {
      const sg4::ExecPtr before = exec(phase.before_s, host);
      const sg4::ExecPtr end = exec(0.0, host);
      last->add_successor(before);
      before->add_successor(end);
      if (phase.concurrent_s > 0.0) {
        const sg4::ExecPtr concurrent = exec(phase.concurrent_s, host);
        last->add_successor(concurrent);
        concurrent->add_successor(end);
      }
      for (const Phase::Sent& sent : phase.flows) {
        const sg4::CommPtr comm = run_.comm(sent.route, sent.bytes);
        all_.push_back(comm);
        before->add_successor(comm);
        comm->add_successor(end);
      }
      last = end;
    }
    return {first, last};
  }

  const std::vector<Activities>& tasks_;
  Run run_;
  std::map<int, sg4::Host*> hosts_;
  std::vector<sg4::ActivityPtr> all_;
};

class SimgridLibrary final : public Library {
 public:
  std::unique_ptr<Network> network() override { return std::make_unique<SteppedNetwork>(); }
  std::vector<Times> run(const std::vector<Activities>& tasks) override {
    return ActivityGraph{tasks}.run();
  }
};

}  // namespace
}  // namespace orrery::simgrid_library

extern "C" orrery::simgrid_library::Library* orrery_simgrid() {
  static orrery::simgrid_library::SimgridLibrary library;
  return &library;
}
