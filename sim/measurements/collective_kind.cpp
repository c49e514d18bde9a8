#include "sim/measurements/collective_kind.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < collective_kinds; ++i)
    if (collective_facts[i].kind != static_cast<CollectiveKind>(i)) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const CollectiveFacts& one : collective_facts) all.emplace_back(one.name);
    return all;
  }();
  return names;
}

std::optional<CollectiveKind> collective_named(std::string_view word) {
  if (word == "alltoall") return CollectiveKind::all_to_all;
  if (word == "sendrecv") return CollectiveKind::send_recv;
  const auto found = std::find_if(collective_facts.begin(), collective_facts.end(),
                                  [&](const CollectiveFacts& one) { return one.name == word; });
  if (found == collective_facts.end()) return std::nullopt;
  return found->kind;
}

}  // namespace orrery
