#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"

namespace orrery {

/// Bytes a second that the first half of the nodes can send to the other half at once, each way:
/// nodes 0 .. n/2 - 1 to the others, in payload (line rate x network efficiency), at most what the
/// NICs of the smaller half carry. Ways inside nodes are left out of account, as in a fabric of its
/// own, and NICs count at full speed; switches' wires as overrides have left them.
///
/// `closed_form` is the least of what NICs, leaves and pods of one half can send, where the two
/// halves are whole leaves (of fat trees with several pods: whole pods) and no wire is changed; for
/// a dragonfly, where NICs or the cables between halves of whole groups limit. Nothing for others.
std::optional<BytesPerSecond> closed_form_bisection(const System& system, const FabricPlan& plan);
/// For every fabric, by maximum flow (Goldberg and Tarjan's push-relabel, JACM 1988): the least cut
/// of the wires. 0 for a single node.
BytesPerSecond bisection(const FabricPlan& plan);

/// Most links between two NICs, the NICs' own included: 2 in a single switch. -1: some two NICs
/// have no way.
int diameter(const FabricPlan& plan);

/// Cables by name of their kind ("nvlink", "leaf-spine"): both directions are one.
std::map<std::string, int> cable_counts(const System& system, const Topology& topology);

}  // namespace orrery
