#pragma once

#include <array>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/training/link_report.hpp"

namespace orrery {

/// Bytes that cross a link, by LinkUser.
using LinkLoad = std::array<Bytes, link_users>;
Bytes total(const LinkLoad& load);

/// Of a step, by the topology's link ids, as far as anything crosses them.
std::vector<LinkLoad> link_loads(const TrainingStep& step, const Topology& topology);

/// The same of `links`, in each of `slices` equal slices of the step, which add up to it: by place
/// in `links`, then by slice. What a task sends is spread evenly over the time from the end of its
/// latency to its last byte; a collective inside of a pass that is one task lies where the pass has
/// it (PassCost::segments), as far into it as it took longer or shorter than alone.
std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices);

/// A part of the step.
struct TimeSlice {
  Seconds from, to;
};
/// The same in equal slices of `window`; what is sent before and after it is left out.
std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices, const TimeSlice& window);

}  // namespace orrery
