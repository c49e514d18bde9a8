#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Whose bytes cross a link. Gradients of what was combined are dispatched, and those of what was
/// dispatched combined. A tied embedding's gradient counts as data.
enum class LinkUser { tensor, context, dispatch, combine, expert_tensor, pipeline, data };
template <>
inline const std::vector<std::string> enum_words<LinkUser>{
    "tensor", "context", "dispatch", "combine", "expert tensor", "pipeline", "data"};
inline constexpr int link_users = 7;

/// One class of links ("nvlink", "nic", "leaf-spine"): the busiest of them, in one direction.
struct LinkReport {
  std::string name;  ///< "node0.gpu3.nvlink.up"
  std::string kind;  ///< As cable_name().
  Bytes bytes;       ///< In a step: the sum over all flows that cross the link.
  std::array<Bytes, link_users> by_user{};  ///< By LinkUser; adds up to `bytes`.
  double busy_fraction = 0.0;               ///< bytes / (capacity x step time)

  Bytes of(LinkUser user) const { return by_user[static_cast<std::size_t>(user)]; }
};

/// A report for each class of links that anything crosses, the busiest class first. The same
/// whether ranks are folded or not and passes contracted or not: a link of the quotient carries
/// what each link of its class does.
std::vector<LinkReport> link_reports(const TrainingStep& step, Seconds step_time,
                                     const Topology& topology);

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
