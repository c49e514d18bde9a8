#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace orrery {

/// Interface of sim/engine/simgrid. It is a separate library, because linking SimGrid and its 28
/// dependencies takes longer than most answers; so only plain values in SI units cross this border.
namespace simgrid_library {

/// A link of a route, which a flow crosses `times` times: one flow may represent several.
struct Hop {
  int link = 0;
  double bandwidth = 0.0;
  int times = 1;
  bool operator==(const Hop&) const = default;
  auto operator<=>(const Hop&) const = default;
};

/// A route and the upper limit of a flow's rate over it.
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
  /// Announces a route that flows may take later. SimGrid needs its platform before it runs: a
  /// later route makes it restart with the rest of all flows.
  virtual void add_route(const Route& route) = 0;
  /// Requires `bytes` above 0.
  virtual void start(std::uint32_t sender, const Route& route, double bytes) = 0;
  /// Takes one step, to the next arrivals or to `until`, whichever is earlier, and appends the
  /// senders that have arrived. Returns the time.
  virtual double step(double until, std::vector<std::uint32_t>& arrived) = 0;
  /// Time goes on from `now`. No flow may be on its way.
  virtual void set_time(double now) = 0;
};

/// A task as activities: consecutive phases, each of an Exec, the Comms that follow it and a
/// concurrent Exec.
struct Phase {
  double before_s = 0.0;      ///< Time before the flows start.
  double concurrent_s = 0.0;  ///< Starts with the phase, which lasts at least as long.
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

/// Entry point of the library, under the name `orrery_simgrid`.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::unique_ptr<Network> network() = 0;
  /// Returns the times by task. Asserts that the tasks have no cycle.
  virtual std::vector<Times> run(const std::vector<Activities>& tasks) = 0;
};
using LibraryEntry = Library*();

}  // namespace simgrid_library

}  // namespace orrery
