#include "sim/engine/platform.hpp"

#include "sim/core/process.hpp"
#include "sim/core/progress.hpp"

namespace orrery {
namespace {

bool is_loaded = false;

FluidNetwork& load_network() {
  void* const entry = module_entry("liborrery_simgrid.so", "orrery_fluid_network");
  is_loaded = true;
  return *reinterpret_cast<FluidNetworkEntry*>(entry)();
}

}  // namespace

Platform& Platform::instance() {
  static Platform platform{load_network()};
  return platform;
}

bool Platform::is_late() {
  if (!is_loaded) return false;
  instance().network_.begin_anew();
  return instance().now() > 0.0;
}

void Platform::use_links(const Topology& topology) {
  topology_ = &topology;
  network_.begin_anew();
  begun_ = arrived_ = 0;
}

void Platform::timer(Seconds duration, std::function<void()> done) {
  network_.timer(duration.si(), std::move(done));
}

void Platform::flow(const Flow& flow, std::function<void()> done) {
  ProgressListener::tell({Progress::Of::flows, arrived_, ++begun_});
  way_.clear();
  for (const LinkUse& use : flow.way)
    way_.push_back({use.link.value, topology_->link(use.link).capacity.si(), use.times});
  network_.flow(way_, flow.rate.si(), flow.bytes.si(), [this, done = std::move(done)] {
    ProgressListener::tell({Progress::Of::flows, ++arrived_, begun_});
    done();
  });
}

}  // namespace orrery
