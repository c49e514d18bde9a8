#include "sim/engine/network_model.hpp"

#include "sim/engine/max_min_network.hpp"
#include "sim/engine/simgrid_network.hpp"

namespace orrery {
namespace {

Simulator chosen = Simulator::own;

}  // namespace

Simulator chosen_simulator() { return chosen; }

SimulatorChoice::SimulatorChoice(Simulator simulator) : before_{chosen} { chosen = simulator; }
SimulatorChoice::~SimulatorChoice() { chosen = before_; }

std::unique_ptr<NetworkModel> make_network_model(Simulator simulator, const Topology& topology,
                                                 EventOrder& order) {
  if (simulator == Simulator::simgrid) return simgrid_network(topology);
  return std::make_unique<MaxMinNetwork>(topology, order);
}

}  // namespace orrery
