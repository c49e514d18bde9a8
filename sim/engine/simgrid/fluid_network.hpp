#pragma once

#include <functional>
#include <span>

namespace orrery {

/// SimGrid's fluid network and its clock, as two calls: wait for a time, and move bytes over links.
/// It lives in a library of its own, which is loaded when something first needs it: linking SimGrid
/// and the 28 libraries behind it takes longer than most answers. So only plain values cross this
/// border. All quantities are in SI units.
class FluidNetwork {
 public:
  /// A link that a flow crosses `times` times.
  struct Use {
    int link = 0;
    double capacity = 0.0;
    int times = 1;
  };

  virtual ~FluidNetwork() = default;
  virtual double now() const = 0;
  /// For a run that owes nothing to those before: links are other ones, whatever their numbers, and
  /// the clock stands at zero, unless this SimGrid hides it. Nothing may be pending.
  virtual void begin_anew() = 0;
  virtual void timer(double seconds, std::function<void()> done) = 0;
  /// Bytes and rate are above 0.
  virtual void flow(std::span<const Use> way, double rate, double bytes,
                    std::function<void()> done) = 0;
  /// Returns when nothing is pending.
  virtual void run() = 0;
};

/// What the library offers under the name `orrery_fluid_network`: the one network of the process.
using FluidNetworkEntry = FluidNetwork*();

}  // namespace orrery
