#include "sim/engine/simulation/platform.hpp"

#include <xbt/log.h>

#include <cassert>
#include <cmath>
#include <map>
#include <simgrid/Exception.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>

#include "sim/base/core/progress.hpp"

namespace sg4 = simgrid::s4u;

namespace orrery {
namespace {

using LinkImpl = simgrid::kernel::resource::StandardLinkImpl;

// All flows go between the same two hosts over links that are set just before they start: no
// routing table, whatever the size of the cluster.
//
//     source --- path: any links, each as often as flows of its kind cross it ---> sink
class PathZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit PathZone(const std::string& name) : NetZoneImpl(name) {}
  static inline std::vector<LinkImpl*> path;

  void get_local_route(const simgrid::kernel::routing::NetPoint*,
                       const simgrid::kernel::routing::NetPoint*,
                       simgrid::kernel::routing::Route* into, double*) override {
    into->link_list_.insert(into->link_list_.end(), path.begin(), path.end());
  }
};

// SimGrid counts whole units of data: a flow's rest, where it meets another, is no whole number of
// bytes, and a byte is a nanosecond on a slow wire.
constexpr double units_a_byte = 1024.0;

// The model of a GPU's network, each setting with its reason.
void configure(sg4::Engine& engine) {
  engine.set_config("network/model:CM02");      // Fluid max-min; no TCP correction factors.
  engine.set_config("network/crosstraffic:0");  // Links are full duplex, acknowledgements are free.
  engine.set_config("network/TCP-gamma:0");     // No TCP window bounds a flow.
}

}  // namespace

struct Platform::State {
  sg4::Engine* engine = nullptr;
  sg4::NetZone* links_zone = nullptr;
  sg4::Host* source = nullptr;
  sg4::Host* sink = nullptr;
  // Links come into being when a flow first crosses them: few of a large topology's do.
  struct NetworkLink {
    LinkImpl* link = nullptr;
    BytesPerSecond capacity;
  };
  const Topology* topology = nullptr;
  std::vector<NetworkLink> links;                 // By the topology's link id.
  std::map<double, std::vector<LinkImpl*>> made;  // By capacity, to be used again by later runs.
  std::map<double, std::size_t> used;             // Of those, in this run.
  std::map<double, std::vector<LinkImpl*>> idle_caps;
  int links_made = 0;
  std::size_t begun = 0, arrived = 0;  // Flows of this run.

  LinkImpl* make_link(double capacity);
  const NetworkLink& link(LinkId id);
  // A finished activity must outlive its own completion callback; it is let go in the next one.
  std::vector<sg4::ActivityPtr> finished;
};

struct Platform::Transfer {
  sg4::ActivityPtr activity;
  std::function<void()> done;
  std::vector<LinkImpl*>* cap_shelf = nullptr;  // Where its cap goes when it is done.
  LinkImpl* cap = nullptr;
};

Platform& Platform::instance() {
  static Platform platform;
  return platform;
}

Platform::Platform() : state_{new State} {
  static char name[] = "orrery";
  static char quiet[] = "--log=root.thresh:error";
  static char* arguments[] = {name, quiet, nullptr};
  int count = 2;
  state_->engine = new sg4::Engine(&count, arguments);
  configure(*state_->engine);
  auto* cluster = new PathZone("cluster");
  sg4::NetZone* zone = cluster->get_iface();
  state_->source = zone->create_host("source", 1.0)->seal();
  state_->sink = zone->create_host("sink", 1.0)->seal();
  zone->seal();
  // The first run seals the platform, and later runs need more links: they live in a zone of their
  // own that no route passes and that is never part of the platform.
  auto* links = new PathZone("links");
  links->set_network_model(cluster->get_network_model());
  state_->links_zone = links->get_iface();
  sg4::Activity::on_completion_cb([state = state_](const sg4::Activity& activity) {
    state->finished.clear();
    auto* transfer = const_cast<sg4::Activity&>(activity).get_data<Transfer>();
    state->finished.push_back(transfer->activity);
    const std::function<void()> done = std::move(transfer->done);
    if (transfer->cap) transfer->cap_shelf->push_back(transfer->cap);
    delete transfer;
    ProgressListener::tell({Progress::Of::flows, ++state->arrived, state->begun});
    done();
  });
}

LinkImpl* Platform::State::make_link(double capacity) {
  const std::string name = "link" + std::to_string(links_made++);
  return static_cast<LinkImpl*>(
      links_zone->create_link(name, units_a_byte * capacity)->seal()->get_impl());
}

const Platform::State::NetworkLink& Platform::State::link(LinkId id) {
  const auto index = static_cast<std::size_t>(id.value);
  if (index >= links.size()) links.resize(index + 1);
  NetworkLink& known = links[index];
  if (known.link) return known;
  known.capacity = topology->link(id).capacity;
  std::vector<LinkImpl*>& pool = made[known.capacity.si()];
  const std::size_t next = used[known.capacity.si()]++;
  if (next == pool.size()) pool.push_back(make_link(known.capacity.si()));
  known.link = pool[next];
  return known;
}

void Platform::use_links(const Topology& topology) {
  state_->topology = &topology;
  state_->links.clear();
  state_->used.clear();
  state_->begun = state_->arrived = 0;
}

double Platform::now() const { return sg4::Engine::get_clock(); }

void Platform::timer(Seconds duration, std::function<void()> done) {
  simgrid::kernel::timer::Timer::set(now() + duration.si(), std::move(done));
}

void Platform::flow(const Flow& flow, std::function<void()> done) {
  assert(flow.bytes.si() > 0.0 && flow.rate.si() > 0.0);
  const sg4::CommPtr comm = sg4::Comm::sendto_init();
  ProgressListener::tell({Progress::Of::flows, state_->arrived, ++state_->begun});
  auto* transfer = new Transfer{comm, std::move(done)};
  PathZone::path.clear();
  bool slower_than_wire = true;
  for (const LinkUse& use : flow.way) {
    const State::NetworkLink& crossed = state_->link(use.link);
    PathZone::path.insert(PathZone::path.end(), static_cast<std::size_t>(use.times), crossed.link);
    slower_than_wire = slower_than_wire && flow.rate < crossed.capacity;
  }
  // SimGrid 3.32 does not look at Comm::set_rate() of a sendto: a link of its own caps the flow.
  if (slower_than_wire) {
    transfer->cap_shelf = &state_->idle_caps[flow.rate.si()];
    if (transfer->cap_shelf->empty())
      transfer->cap_shelf->push_back(state_->make_link(flow.rate.si()));
    transfer->cap = transfer->cap_shelf->back();
    transfer->cap_shelf->pop_back();
    PathZone::path.push_back(transfer->cap);
  }
  comm->set_data(transfer);
  comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(units_a_byte * flow.bytes.si())));
  comm->set_source(state_->source);
  comm->set_destination(state_->sink);  // Starts it.
}

void Platform::run() { state_->engine->run(); }

}  // namespace orrery
