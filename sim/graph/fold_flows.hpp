#pragma once

#include "sim/graph/exchange.hpp"

namespace orrery {

/// Of flows that start at one moment, one for each class that links cannot tell apart: as many
/// bytes, the same rate, and a way over classes of links with equal capacity that are crossed by
/// equally many flows of every class. The way of the one names the first link of each class as
/// often as flows of its class cross it, so that max-min sharing gives it the rate that each of
/// them has in the whole (docs/FOLDING.md). Links appear in a flow's way once and count once.
std::vector<Flow> fold_flows(const Topology& topology, const std::vector<Flow>& flows);

/// Of legs that start at one moment, have equally many bytes and meet no others: one flow a link,
/// with the bytes of all that cross it, and one at the lowest rate. The last of them ends when the
/// last leg ends. For in max-min sharing the link that needs longest for what crosses it fills
/// first (or the leg of the lowest rate reaches it first), at the lowest rate of all; its flows,
/// equal in bytes, keep that rate to their end, and all others are faster. Links of one capacity
/// and load count once.
std::vector<Flow> link_flows(const Topology& topology, const std::vector<Leg>& legs);

}  // namespace orrery
