#pragma once

#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

/// A link of a flow's way, and how many flows of the same kind cross it at once. Max-min sharing
/// then sees as many as there are in the whole cluster.
struct LinkUse {
  LinkId link;
  int times = 1;
  bool operator==(const LinkUse&) const = default;
};

using Way = std::vector<LinkUse>;

}  // namespace orrery
