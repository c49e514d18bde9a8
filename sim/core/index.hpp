#pragma once

#include <cstddef>

namespace orrery {

/// Of ranks, stages, micro-batches and other numbers that are never negative, as an index.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace orrery
