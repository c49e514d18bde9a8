#pragma once

#include <optional>

#include "sim/collectives/pair_exchange.hpp"

namespace orrery {

/// Of flows that start at one moment, one for each class that links cannot tell apart: as many
/// bytes, the same rate, and a way over classes of links with equal capacity that are crossed by
/// equally many flows of every class. The way of the one names the first link of each class as
/// often as flows of its class cross it, so that max-min sharing gives it the rate that each of
/// them has in the whole (docs/FOLDING.md). Links appear in a flow's way once and count once.
std::vector<Flow> fold_flows(const Topology& topology, const std::vector<Flow>& flows);

/// Of legs that start at one moment, meet no others, and have equally many bytes where they meet:
/// one flow a link, with the bytes of all that cross it, and the slowest leg as if it were alone.
/// The last of them ends when the last leg ends. For among legs that links connect, which thus are
/// equal in bytes, the link that needs longest for what crosses it fills first in max-min sharing
/// (or the leg of the lowest rate reaches it first), at the lowest rate of all; its legs keep that
/// rate to their end, and all others are faster. Links of one capacity and load count once.
/// Nothing where legs of different sizes meet.
std::optional<std::vector<Flow>> link_flows(const Topology& topology, const std::vector<Leg>& legs);

}  // namespace orrery
