#pragma once

#include <string>
#include <vector>

#include "sim/collectives/lone_collective.hpp"

namespace orrery {

struct CollectiveLine {
  LoneCollective collective;
  LoneCollectiveTime result;
};

/// A sweep in the columns of nccl-tests, float elements, in place; "#wrong" is "N/A" as there
/// without -c: nothing is computed. Behind them algorithm, protocol, channels and tag.
std::string collective_text(const std::vector<CollectiveLine>& lines);

/// "orrery.collective/1": an object, or a list of objects where there are several lines.
std::string collective_json(const std::string& system, const std::vector<CollectiveLine>& lines);

}  // namespace orrery
