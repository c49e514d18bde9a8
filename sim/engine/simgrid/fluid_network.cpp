#include "sim/engine/simgrid/fluid_network.hpp"

#include <xbt/log.h>

#include <cassert>
#include <cmath>
#include <map>
#include <simgrid/Exception.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

// SimGrid's clock, EngineImpl::now_, which no header of it shows: it can be read and not be set. It
// counts seconds in a double and goes on from run to run, so that after a week of simulated time a
// step would end a nanosecond apart. Null where SimGrid calls it otherwise: then it goes on.
extern double simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E") __attribute__((weak));

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
  // Flows whose ends lie closer than this end together. With SimGrid's nanosecond the later of two
  // may meet another's flow that it would not, and a step end thousands of nanoseconds apart.
  // Doubles count five hours in such parts.
  engine.set_config("surf/precision:1e-11");
}

// Links of one capacity for one flow each.
struct Caps {
  std::vector<LinkImpl*> made, idle;

  // In their first order, so that a run takes the same ones after others and by itself.
  void lay_down_all() { idle.assign(made.rbegin(), made.rend()); }
};

struct Transfer {
  sg4::ActivityPtr activity;
  std::function<void()> done;
  Caps* caps = nullptr;  // Where its cap goes when it is done.
  LinkImpl* cap = nullptr;
};

// Lives as long as the process: SimGrid's engine cannot be taken down and rebuilt.
class SimgridNetwork final : public FluidNetwork {
 public:
  SimgridNetwork() {
    static char name[] = "orrery";
    static char quiet[] = "--log=root.thresh:error";
    static char* arguments[] = {name, quiet, nullptr};
    int count = 2;
    engine_ = new sg4::Engine(&count, arguments);
    configure(*engine_);
    auto* cluster = new PathZone("cluster");
    sg4::NetZone* zone = cluster->get_iface();
    source_ = zone->create_host("source", 1.0)->seal();
    sink_ = zone->create_host("sink", 1.0)->seal();
    zone->seal();
    // The first run seals the platform, and later runs need more links: they live in a zone of
    // their own that no route passes and that is never part of the platform.
    auto* links = new PathZone("links");
    links->set_network_model(cluster->get_network_model());
    links_zone_ = links->get_iface();
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) {
      finished_.clear();
      auto* transfer = const_cast<sg4::Activity&>(activity).get_data<Transfer>();
      finished_.push_back(transfer->activity);
      const std::function<void()> done = std::move(transfer->done);
      if (transfer->cap) transfer->caps->idle.push_back(transfer->cap);
      delete transfer;
      done();
    });
  }

  double now() const override { return sg4::Engine::get_clock(); }

  void begin_anew() override {
    links_.clear();
    used_.clear();
    for (auto& [rate, caps] : caps_) caps.lay_down_all();
    if (&simgrid_clock) simgrid_clock = 0.0;
  }

  void timer(double seconds, std::function<void()> done) override {
    simgrid::kernel::timer::Timer::set(now() + seconds, std::move(done));
  }

  void flow(std::span<const Use> way, double rate, double bytes,
            std::function<void()> done) override {
    assert(bytes > 0.0 && rate > 0.0);
    const sg4::CommPtr comm = sg4::Comm::sendto_init();
    auto* transfer = new Transfer{comm, std::move(done)};
    PathZone::path.clear();
    bool slower_than_wire = true;
    for (const Use& use : way) {
      PathZone::path.insert(PathZone::path.end(), static_cast<std::size_t>(use.times), link(use));
      slower_than_wire = slower_than_wire && rate < use.capacity;
    }
    // SimGrid 3.32 does not look at Comm::set_rate() of a sendto: a link of its own caps the flow.
    if (slower_than_wire) {
      transfer->caps = &caps_[rate];
      transfer->cap = take_cap(*transfer->caps, rate);
      PathZone::path.push_back(transfer->cap);
    }
    comm->set_data(transfer);
    comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(units_a_byte * bytes)));
    comm->set_source(source_);
    comm->set_destination(sink_);  // Starts it.
  }

  void run() override { engine_->run(); }

 private:
  LinkImpl* make_link(double capacity) {
    const std::string name = "link" + std::to_string(links_made_++);
    return static_cast<LinkImpl*>(
        links_zone_->create_link(name, units_a_byte * capacity)->seal()->get_impl());
  }

  LinkImpl* take_cap(Caps& caps, double rate) {
    if (caps.idle.empty()) {
      caps.made.push_back(make_link(rate));
      return caps.made.back();
    }
    LinkImpl* const cap = caps.idle.back();
    caps.idle.pop_back();
    return cap;
  }

  LinkImpl* link(const Use& use) {
    const auto index = static_cast<std::size_t>(use.link);
    if (index >= links_.size()) links_.resize(index + 1);
    LinkImpl*& known = links_[index];
    if (known) return known;
    std::vector<LinkImpl*>& pool = made_[use.capacity];
    const std::size_t next = used_[use.capacity]++;
    if (next == pool.size()) pool.push_back(make_link(use.capacity));
    return known = pool[next];
  }

  sg4::Engine* engine_ = nullptr;
  sg4::NetZone* links_zone_ = nullptr;
  sg4::Host* source_ = nullptr;
  sg4::Host* sink_ = nullptr;
  // Links come into being when a flow first crosses them: few of a large topology's do.
  std::vector<LinkImpl*> links_;                   // By number.
  std::map<double, std::vector<LinkImpl*>> made_;  // By capacity, to be used again by later runs.
  std::map<double, std::size_t> used_;             // Of those, in this run.
  std::map<double, Caps> caps_;                    // By rate.
  int links_made_ = 0;
  // A finished activity must outlive its own completion callback; it is let go in the next one.
  std::vector<sg4::ActivityPtr> finished_;
};

}  // namespace
}  // namespace orrery

extern "C" orrery::FluidNetwork* orrery_fluid_network() {
  static auto* const network = new orrery::SimgridNetwork;
  return network;
}
