#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/core/ticks.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// The model of how flows share links. The results agree to nanoseconds (docs/notes/engines.md).
enum class Simulator {
  own,     ///< Max-min fairness, solved here in exact ticks: the default, as it is faster.
  simgrid  ///< SimGrid's own network model: the reference.
};
template <>
inline const std::vector<std::string> enum_words<Simulator>{"own", "simgrid"};

/// Note in tables of flows that SimGrid simulated.
inline constexpr const char* simgrid_note = "flows simulated by SimGrid";

/// The simulator of this process, which worker processes inherit; the default is Simulator::own.
Simulator chosen_simulator();
/// Sets the simulator until the end of its scope.
class SimulatorChoice {
 public:
  explicit SimulatorChoice(Simulator simulator);
  SimulatorChoice(const SimulatorChoice&) = delete;
  SimulatorChoice& operator=(const SimulatorChoice&) = delete;
  ~SimulatorChoice();

 private:
  Simulator before_;
};

/// Flows on the links of a topology. It complements the event queue of a simulation, which has all
/// other events, in the manner of SimGrid's kernel::resource::Model.
class NetworkModel {
 public:
  struct Arrival {
    std::uint32_t sender;  ///< Identifies the flow, see start().
    Ticks time;
  };

  virtual ~NetworkModel() = default;

  /// Announces a flow that may start later, as SimGrid builds its platform before it runs.
  virtual void announce(const Flow&) {}
  /// Starts to move `bytes` of `flow`, which must outlive its arrival; at least one of its `bytes`
  /// is above 0. `now` is not before the last result of advance(), unless no flow is active.
  virtual void start(std::uint32_t sender, const Flow& flow, double bytes, Ticks now) = 0;
  /// Advances to the next arrival, if it precedes the event with that time and order, else to
  /// `time`.
  virtual std::optional<Arrival> advance(Ticks time, std::uint64_t order) = 0;
  /// No flow is on the link.
  virtual bool is_idle(LinkId link) const = 0;
  /// Arrivals are exact to the tick, so that fused tasks may be skipped while their links are idle.
  virtual bool is_exact() const = 0;
};

/// The reference `topology` must outlive it, and may gain links later. `order` also numbers the
/// events of the simulation's queue. Errors: std::runtime_error if SimGrid's library is missing.
std::unique_ptr<NetworkModel> make_network_model(Simulator simulator, const Topology& topology,
                                                 EventOrder& order);

}  // namespace orrery
