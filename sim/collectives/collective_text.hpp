#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/collectives/collective_program.hpp"
#include "sim/collectives/isolated_collective.hpp"
#include "sim/core/table.hpp"

namespace orrery {

struct CollectiveLine {
  IsolatedCollective collective;
  IsolatedCollectiveTime result;
  double deviation = 0.0;  ///< CollectiveCost::deviation()

  /// Limits between which nine in ten measurements lie.
  Seconds low() const {
    return std::max(std::min(result.time, result.least),
                    result.time * std::exp(-range_deviations * deviation));
  }
  Seconds high() const { return result.time * std::exp(range_deviations * deviation); }
};

/// A sweep in the columns of nccl-tests, float elements, in place; "#wrong" is "N/A" as there
/// without -c: nothing is computed. Further columns are algorithm, protocol, channels, tag, range.
std::string collective_text(const std::vector<CollectiveLine>& lines,
                            TextWidth width = TextWidth::terminal);

/// "orrery.collective/1": an object, or a list of objects where there are several lines.
std::string collective_json(const std::string& system, const std::vector<CollectiveLine>& lines);

/// A line per step of a user-defined collective, and one for all of it.
std::string program_text(const CollectiveProgram& program, const ProgramTime& result);

/// "orrery.collective_program/1".
std::string program_json(const std::string& file, const std::string& system,
                         const CollectiveProgram& program, const ProgramTime& result);

}  // namespace orrery
