#pragma once

#include "sim/plan/scenario.hpp"

namespace orrery {

/// GPUs from which on steps are longer for every doubling: most of what other constants were
/// inferred from ran on 8 to 128.
constexpr int largest_cluster_without_waiting = 64;

/// Time that the ranks of n GPUs wait for each other in a step that would take `step` if all were
/// alike and no host, switch or neighbour ever late:
///
///     (s step + c) log2(n / 64)    for n > 64, else 0
///
/// with s of the network between nodes (NetworkKind::wait_share) and c of the software
/// (Software::wait_time), 0 where a graph launches the whole step. 0 without wait_for_others.
///
/// A description of plans that were run at several sizes, not a mechanism: jitter of hosts, garbage
/// collection, GPUs of different clocks and colliding paths are in it (docs/notes/growth.md).
Seconds waiting_for_others(const Scenario& scenario, Seconds step);
/// A simulated step, or a bound of one, and the waiting: the longer the step, the longer both.
Seconds with_waiting(const Scenario& scenario, Seconds step);
/// The waiting on so many GPUs.
Seconds waiting_for_others(const Scenario& scenario, Seconds step, int gpus);

}  // namespace orrery
