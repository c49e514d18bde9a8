#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace orrery {

/// An index that does not mix with other indices: a stage cannot be passed where a rank is meant.
template <class Tag>
struct Id {
  std::int32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag>;    ///< One process on one GPU, numbered over the whole cluster.
using LinkId = Id<struct LinkTag>;  ///< One direction of one physical link of a topology.
using TaskId = Id<struct TaskTag>;  ///< A vertex of the task graph.

}  // namespace orrery

template <class Tag>
struct std::hash<orrery::Id<Tag>> {
  std::size_t operator()(orrery::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
