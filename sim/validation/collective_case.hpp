#pragma once

#include <string>
#include <vector>

#include "sim/collectives/collective_sweeps.hpp"

namespace orrery {

/// A sweep of one collective that somebody measured and published, and the system that it ran on.
struct CollectiveCase {
  std::string id;
  System system;
  CollectiveShape shape;
  int nodes = 1;
  std::vector<MeasuredCurve::Point> points;
};

/// Whether an entry of a list of cases is a sweep: it names a collective.
bool is_collective_case(const JsonValue& entry);

/// Reads a case as docs/VALIDATION.md describes it. Its `system` is prose from logs; the words that
/// are understood lie in calibration/data/collective_systems.json. Errors: a GPU or a network that
/// is not known or not stated, a collective that is none, ranks that do not lie evenly on nodes.
CollectiveCase read_collective_case(const JsonValue& entry);

}  // namespace orrery
