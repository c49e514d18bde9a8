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

/// Label of an element in a partition refinement: equal colours mean one class. 64-bit hashes
/// replace the nested multisets of the textbook.
using Colour = std::uint64_t;
using Colours = std::vector<Colour>;

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014) over a running sum.
inline Colour mix(Colour seed, Colour value) {
  Colour z = seed * 0x9E3779B97F4A7C15u + value + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Number of classes. A hash table at most half full counts them in a tenth of the time of sorting,
/// and a third of a std::unordered_set's.
inline std::size_t distinct(const Colours& colours) {
  const auto bits = static_cast<int>(std::bit_width(2 * colours.size() + 1));
  Colours table(std::size_t{1} << bits, 0);
  std::size_t count = 0;
  bool has_zero = false;  // Zero marks an empty place.
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

/// The route of a rank class's traffic of one kind. Several classes in a collective may send flows
/// of one flow class: `times` counts all of them, so that it is simulated once.
struct ClassRoute {
  FlowRoute links;
  int flow_class = -1;
};

/// Indexed by kind; without links if the class has no traffic of that kind.
using ClassRoutes = std::array<ClassRoute, traffic_kinds>;

/// Equivalence classes of ranks, and routes over classes of links.
struct Refinement {
  std::vector<int> rep_of_rank;     ///< Classes are numbered in the order of their lowest ranks.
  std::vector<ClassRoutes> routes;  ///< Indexed by rank class, over one link of each class.
};

/// The coarsest equitable partition of ranks, flows and links: two ranks of a class have equal
/// speed and stage, are in equal groups, and send and receive equally many flows of each class; two
/// flows of a class belong to equal groups (two ranks only: join equal classes of ranks) and cross
/// equal classes of links in the same order; two links of a class have equal capacity and latency
/// and are crossed by equally many flows of every class. The position of a rank on its ring does
/// not count: the ring's flows start with the slowest member and end with the slowest flow.
///
/// The quotient has one rank and one link of each class, and `times` for how often a class of flows
/// crosses the link. Every flow has the same rate in it as in the whole, because the max-min fair
/// rates of the whole are unique and equal within classes (docs/explanation/simulation.md). Colours
/// are refined until nothing splits; only a collision of 64-bit hashes could merge two classes.
Refinement refine(const Placement& placement, const Topology& topology,
                  const std::vector<double>& speed_of_rank);

}  // namespace orrery
