#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/plan/traffic.hpp"

namespace orrery {

/// What tells two things apart in a partition refinement: equal colours, one class. 64-bit hashes
/// stand for the nested multisets of the textbook.
using Colour = std::uint64_t;
using Colours = std::vector<Colour>;

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014) over a running sum.
inline Colour mix(Colour seed, Colour value) {
  Colour z = seed * 0x9E3779B97F4A7C15u + value + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// How many classes there are. A table at most half full counts them in a tenth of the time that
/// sorting takes, and a third of a std::unordered_set's.
inline std::size_t distinct(const Colours& colours) {
  const auto bits = static_cast<int>(std::bit_width(2 * colours.size() + 1));
  Colours table(std::size_t{1} << bits, 0);
  std::size_t count = 0;
  bool has_zero = false;  // Which stands for an empty place.
  for (Colour colour : colours) {
    std::size_t place = (colour * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (table[place] != colour && table[place] != 0) place = (place + 1) % table.size();
    has_zero = has_zero || colour == 0;
    if (table[place] == colour) continue;
    table[place] = colour;
    ++count;
  }
  return count + (has_zero ? 1 : 0);
}

/// The way of one role's traffic of one kind. Several roles of a collective may send flows of one
/// class: `times` counts all of them, so that the class is drawn once.
struct RoleWay {
  Way links;
  int flow_class = -1;
};

/// By kind; without links where the role has no traffic of that kind.
using WaysOfRole = std::array<RoleWay, traffic_kinds>;

/// Ranks, flows and links in classes whose members see the same picture.
struct Refinement {
  std::vector<int> role_of_rank;  ///< Roles count up in the order of their lowest ranks.
  std::vector<WaysOfRole> ways;   ///< By role, over one link of each class of links.
};

/// The coarsest partition of ranks, flows and links that is equitable: two ranks of a role have
/// equal speed and stage, are in equal groups, and of each class of flows send and receive equally
/// many; two flows of a class belong to equal groups (of two ranks only: join equal roles) and
/// cross equal classes of links in the same order; two links of a class have equal capacity and
/// latency and are crossed by equally many flows of every class. Where on its ring a rank sits does
/// not count: the ring's flows start with the slowest member and end with the slowest flow.
///
/// One rank a role, one link a class, and `times` for how often a class of flows crosses it: in
/// this quotient every flow has the rate that it has in the whole, because the max-min fair rates
/// of the whole are unique and equal within classes (docs/explanation/simulation.md). Colours are
/// refined until nothing splits; two partitions are taken for one only if a 64-bit hash collides.
Refinement refine(const Placement& placement, const Topology& topology,
                  const std::vector<double>& speed_of_rank);

}  // namespace orrery
