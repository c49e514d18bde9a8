#pragma once

#include <cstdint>
#include <string>

#include "sim/training/estimate.hpp"

namespace orrery {

/// Limit of slices that a viewer draws well.
inline constexpr std::int64_t most_slices_shown = 300'000;

/// A simulated step as columns that a browser takes as typed arrays, little-endian, each column
/// padded to 8 bytes:
///
///     u32 'O','R','T','1' as bytes; u32 length of the header; the header, JSON
///     f64 start_ns[slices]  f64 finish_ns[slices]
///     u32 name[slices]      index into the header's "names"
///     f32 bytes[slices]     bytes that a collective or transfer brings; 0: none
///     f32 exposed_us[slices]  communication that a pass waits for
///     u8  category[slices]  index into the header's "categories"
///     u32 from[arrows] to[arrows]  slices: a transfer, and the pass that waits for it
///
/// The header: {"step_ns", "slices", "arrows", "ranks": [{"rank", "stage", "data", "context",
/// "tensor", "ranks"}], "tracks": [{"of" (index into ranks), "name", "first", "count"}], "names",
/// "categories", "inside" (kernels of contracted passes are included), "simulated" (ranks; more
/// than in "ranks" if all had too many slices)}. Slices of a track are sorted by start, an
/// enclosing one before those that it encloses. `most`: limit of slices; kernels are left out
/// first, then ranks.
std::string timeline_bytes(const Estimate& answer, std::int64_t most = most_slices_shown);

}  // namespace orrery
