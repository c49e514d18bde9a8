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

/// Who decides how flows share links. Both answer alike, to nanoseconds (docs/notes/engines.md).
enum class Simulator {
  own,     ///< Max-min fairness, solved here in exact ticks: the default, as it is faster.
  simgrid  ///< SimGrid's own network model: the reference.
};
template <>
inline const std::vector<std::string> enum_words<Simulator>{"own", "simgrid"};

/// What tables note where flows were SimGrid's.
inline constexpr const char* simgrid_note = "flows simulated by SimGrid";

/// The simulator of this process, which worker processes inherit. Simulator::own unless chosen.
Simulator chosen_simulator();
/// Chooses until the end of its scope.
class SimulatorChoice {
 public:
  explicit SimulatorChoice(Simulator simulator);
  SimulatorChoice(const SimulatorChoice&) = delete;
  SimulatorChoice& operator=(const SimulatorChoice&) = delete;
  ~SimulatorChoice();

 private:
  Simulator before_;
};

/// Flows on the links of a topology. It stands beside the event queue of a simulation, which alone
/// knows what happens apart from arrivals, in the manner of SimGrid's kernel::resource::Model.
class NetworkModel {
 public:
  struct Arrival {
    std::uint32_t sender;  ///< The flow's, as start() was told.
    Ticks time;
  };

  virtual ~NetworkModel() = default;

  /// A flow that may start later. SimGrid builds its platform before it runs.
  virtual void announce(const Flow&) {}
  /// `flow` starts to move `bytes`, at least one of which is above 0, and must outlive its arrival.
  /// `now` is not before what advance() reached last, unless no flow is on its way.
  virtual void start(std::uint32_t sender, const Flow& flow, double bytes, Ticks now) = 0;
  /// Moves on to the next arrival, if it comes before the event with that time and order, and
  /// reports it; else to that time.
  virtual std::optional<Arrival> advance(Ticks time, std::uint64_t order) = 0;
  /// Whether no flow is on the link.
  virtual bool is_idle(LinkId link) const = 0;
  /// Whether arrivals are exact to the tick, so that a fused task may be skipped over in one event
  /// while its links are idle.
  virtual bool is_exact() const = 0;
};

/// `topology` must outlive it, and may number more links later. `order` numbers the events of the
/// simulation's queue, too. Errors: std::runtime_error where SimGrid's library is missing.
std::unique_ptr<NetworkModel> make_network_model(Simulator simulator, const Topology& topology,
                                                 EventOrder& order);

}  // namespace orrery
