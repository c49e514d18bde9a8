#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Origin of the bytes on a link. Gradients of combined tokens count as dispatch, and gradients of
/// dispatched tokens as combine. A tied embedding's gradient counts as data.
enum class LinkUser { tensor, context, dispatch, combine, expert_tensor, pipeline, data };
template <>
inline const std::vector<std::string> enum_words<LinkUser>{
    "tensor", "context", "dispatch", "combine", "expert tensor", "pipeline", "data"};
inline constexpr int link_users = 7;

/// The busiest link of one class ("nvlink", "nic", "leaf-spine"), in one direction.
struct LinkReport {
  std::string name;                         ///< "node0.gpu3.nvlink.up"
  std::string kind;                         ///< Result of cable_name().
  Bytes bytes;                              ///< Sum over all flows of a step that cross the link.
  std::array<Bytes, link_users> by_user{};  ///< Indexed by LinkUser; adds up to `bytes`.
  double busy_fraction = 0.0;               ///< bytes / (capacity x step time)

  Bytes of(LinkUser user) const { return by_user[static_cast<std::size_t>(user)]; }
};

/// A report for each class of links with traffic, the busiest class first. Folding and contraction
/// do not change it: a link of the folded topology carries what each link of its class does.
std::vector<LinkReport> link_reports(const TrainingStep& step, Seconds step_time,
                                     const Topology& topology);

/// Bytes that cross a link, indexed by LinkUser.
using LinkLoad = std::array<Bytes, link_users>;
Bytes total(const LinkLoad& load);

/// Loads of a step, indexed by link id; links after the last one with traffic are left out.
std::vector<LinkLoad> link_loads(const TrainingStep& step, const Topology& topology);

/// Loads of `links` in each of `slices` equal slices of the step, indexed by position in `links`,
/// then by slice. A task's bytes are spread evenly over the time from the end of its latency to its
/// last byte. A collective inside a contracted pass has its time from PassCost::segments, scaled by
/// the pass's length over its isolated length.
std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices);

/// A part of the step.
struct TimeSlice {
  Seconds from, to;
};
/// The same in equal slices of `window`; bytes sent before and after it are left out.
std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices, const TimeSlice& window);

}  // namespace orrery
