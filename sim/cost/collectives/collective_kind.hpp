#pragma once

#include <string_view>

namespace orrery {

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv
};
constexpr int collective_kinds = 6;
std::string_view name(CollectiveKind kind);

}  // namespace orrery
