#include "sim/engine/simulation/platform.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "sim/base/core/progress.hpp"

namespace orrery {
namespace {

bool is_loaded = false;

// The program's run path says where it lies (sim/CMakeLists.txt).
FluidNetwork& load_network() {
  constexpr const char* library = "liborrery_simgrid.so";
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const entry = opened ? dlsym(opened, "orrery_fluid_network") : nullptr;
  if (!entry)
    throw std::runtime_error{std::string{"SimGrid cannot be loaded: "} + dlerror() +
                             "; install Orrery again"};
  is_loaded = true;
  return *reinterpret_cast<FluidNetworkEntry*>(entry)();
}

}  // namespace

Platform& Platform::instance() {
  static Platform platform{load_network()};
  return platform;
}

bool Platform::was_used() { return is_loaded && instance().now() > 0.0; }

void Platform::use_links(const Topology& topology) {
  topology_ = &topology;
  network_.forget_links();
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
