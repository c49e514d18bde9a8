#pragma once

#include <cstdint>
#include <string>

#include "sim/training/estimate.hpp"

namespace orrery {

/// What a viewer draws well at once.
inline constexpr std::int64_t most_slices_shown = 300'000;

/// A simulated step as columns that a browser takes as typed arrays, little-endian, each column
/// padded to 8 bytes:
///
///     u32 'O','R','T','1' as bytes; u32 length of the header; the header, JSON
///     f64 start_ns[slices]  f64 finish_ns[slices]
///     u32 name[slices]      place in the header's "names"
///     f32 bytes[slices]     what a collective or transfer brings; 0: nothing
///     f32 exposed_us[slices]  communication that a pass waits for
///     u8  category[slices]  place in the header's "categories"
///     u32 from[arrows] to[arrows]  slices: a transfer, and the pass that waits for it
///
/// The header: {"step_ns", "slices", "arrows", "ranks": [{"rank", "stage", "data", "context",
/// "tensor", "ranks"}], "tracks": [{"of" (place in ranks), "name", "first", "count"}], "names",
/// "categories", "inside" (kernels of contracted passes are drawn), "simulated" (ranks; more than
/// in "ranks" where all would be too many slices)}. On a track slices rise by start, and what
/// encloses stands before what it encloses.
/// `most`: slices; where all would be more, kernels are left out first, then ranks.
std::string timeline_bytes(const Estimate& answer, std::int64_t most = most_slices_shown);

}  // namespace orrery
