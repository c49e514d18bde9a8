#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace orrery {

/// What sim/engine/simgrid offers. It is a library of its own, because linking SimGrid and the 28
/// libraries behind it takes longer than most answers; so only plain values in SI units cross this
/// border.
namespace simgrid_library {

/// A link of a route, which a flow crosses `times` times: flows of one kind may stand for several.
struct Hop {
  int link = 0;
  double bandwidth = 0.0;
  int times = 1;
  bool operator==(const Hop&) const = default;
  auto operator<=>(const Hop&) const = default;
};

/// A route and the rate that a flow over it does not exceed.
struct Route {
  std::vector<Hop> hops;
  double rate = 0.0;
  bool operator==(const Route&) const = default;
  auto operator<=>(const Route&) const = default;
};

/// Flows on SimGrid's clock.
class Network {
 public:
  virtual ~Network() = default;
  /// A flow may take this route later. SimGrid wants to know its platform before it runs: a route
  /// that comes later makes it begin anew with what is left of all flows.
  virtual void add_route(const Route& route) = 0;
  /// `bytes` are above 0.
  virtual void start(std::uint32_t sender, const Route& route, double bytes) = 0;
  /// Takes one step, to the next arrivals or to `until`, whichever is earlier, and appends the
  /// senders that have arrived. Returns the time.
  virtual double step(double until, std::vector<std::uint32_t>& arrived) = 0;
  /// Time goes on from `now`. No flow may be on its way.
  virtual void set_time(double now) = 0;
};

/// A task as activities: phases one after another, each of an Exec, the Comms that follow it and an
/// Exec that runs meanwhile.
struct Phase {
  double before_s = 0.0;      ///< Before the flows start.
  double concurrent_s = 0.0;  ///< From the phase's beginning: it lasts at least as long.
  struct Sent {
    Route route;
    double bytes = 0.0;
  };
  std::vector<Sent> flows;
};
struct Activities {
  std::vector<Phase> phases;
  std::vector<std::uint32_t> after;  ///< Tasks that must finish before.
  int host = 0;
};
struct Times {
  double start = 0.0, finish = 0.0;
};

/// What the library is asked for under the name `orrery_simgrid`.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::unique_ptr<Network> network() = 0;
  /// Times by task. Asserts that the tasks have no cycle.
  virtual std::vector<Times> run(const std::vector<Activities>& tasks) = 0;
};
using LibraryEntry = Library*();

}  // namespace simgrid_library

}  // namespace orrery
