#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/profile/kernel_names.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// The nanoseconds of one step of one rank, each in one class. `own_ns` of all work,
/// `host_ns` and `idle_ns` add up to `length_ns()` exactly.
///
/// While several things run, kernels that compute go before communication, and that before copies;
/// of one sort the one that began first has the time. So communication's `own_ns` is exposed time.
/// While nothing runs, the time up to the end of the call that launched the next piece of work is
/// the host's; the rest is idle: the GPU waits for something else, or for the launch to arrive.
struct StepProfile {
  struct Part {
    std::int64_t count = 0;    ///< Pieces of work that began in the step.
    std::int64_t busy_ns = 0;  ///< While at least one runs.
    std::int64_t own_ns = 0;
  };
  struct Named {
    std::string name;
    std::int64_t count = 0, ns = 0;
  };
  std::optional<std::int64_t> step;  ///< Its number; nothing where the trace is taken whole.
  std::vector<std::int64_t> steps;   ///< All that are whole in the trace.
  std::int64_t begin_ns = 0, end_ns = 0;
  std::array<Part, kinds_of_gpu_work> parts{};
  std::int64_t host_ns = 0, idle_ns = 0;
  std::vector<Named> unknown;  ///< Sorted by falling time.
  /// Communication's own_ns by process group, in the order of their names.
  struct Exposed {
    std::string group;  ///< Description in the trace; "": none.
    GpuWork work = GpuWork::other_collective;
    /// Use of the group. In unknown groups all-to-alls count as experts' and messages from one rank
    /// to another as the pipeline's.
    GroupUse use = GroupUse::other;
    std::int64_t ns = 0;
  };
  std::vector<Exposed> exposed;

  const Part& at(GpuWork work) const { return parts[static_cast<std::size_t>(work)]; }
  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// Step `number`, or the one of median length, of two the earlier. A step reaches from the first
/// work that was launched within its ProfilerStep annotation to the first of the next one's: the
/// annotation itself is the host's, which runs ahead. A trace without such annotations, or with one
/// alone, is taken whole.
///
/// The events' order in the file does not matter. Errors (bad_input): no such step.
StepProfile profile_step(const KinetoTrace& trace, const KernelNames& names,
                         std::optional<std::int64_t> number = {});

/// A step of one rank as it was predicted and as a trace shows it, row by row. Both columns add up
/// to the step, to the nanosecond.
struct ProfiledRank {
  struct Row {
    std::string what;
    std::int64_t predicted_ns = 0, measured_ns = 0;
  };
  std::string file;
  std::string gpu;
  std::int64_t rank = -1, ranks = 0;  ///< The trace's own; -1, 0: unknown.
  int stage = 0;                      ///< Stage of the plan that it is compared with.
  StepProfile profile;
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< Caveats about the rows.

  std::int64_t predicted_ns() const;
};

/// The profile next to the prediction of `result` for the stage's rank. A trace cannot tell a
/// kernel that a collective slows down from one that is slow, nor waiting within a collective from
/// its transfer: predicted, these are rows of their own without a measured value, and the other
/// rows say so.
ProfiledRank profile_against_plan(const KinetoTrace& trace, StepProfile profile,
                                  const Result& result, int stage);

}  // namespace orrery
