#include "sim/collectives/fold_flows.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "sim/collectives/collective_legs.hpp"
#include "sim/plan/colour.hpp"

namespace orrery {
namespace {

std::size_t index_of(LinkId link) { return static_cast<std::size_t>(link.value); }

struct Painting {
  Colours flows;
  Colours links;

  std::size_t classes() const { return distinct(flows) + distinct(links); }
};

Painting first_colours(const Topology& topology, const std::vector<Flow>& flows) {
  Painting painting;
  for (const Flow& flow : flows)
    painting.flows.push_back(
        mix(std::bit_cast<Colour>(flow.bytes.si()), std::bit_cast<Colour>(flow.rate.si())));
  for (int l = 0; l < topology.link_count(); ++l)
    painting.links.push_back(std::bit_cast<Colour>(topology.link(LinkId{l}).capacity.si()));
  return painting;
}

// A flow sees its links in their order, a link the multiset of its flows.
Painting repainted(const Painting& old, const std::vector<Flow>& flows) {
  Painting next{old.flows, Colours(old.links.size(), 0)};
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const LinkUse& use : flows[f].way)
      next.flows[f] = mix(next.flows[f], old.links[index_of(use.link)]);
    for (const LinkUse& use : flows[f].way) next.links[index_of(use.link)] += mix(1, next.flows[f]);
  }
  for (std::size_t l = 0; l < old.links.size(); ++l)
    next.links[l] = mix(old.links[l], next.links[l]);
  return next;
}

}  // namespace

std::vector<Flow> fold_flows(const Topology& topology, const std::vector<Flow>& flows) {
  Painting painting = first_colours(topology, flows);
  for (std::size_t before = 0, classes = painting.classes(); classes > before;) {
    painting = repainted(painting, flows);
    before = classes;
    classes = painting.classes();
  }
  std::unordered_map<Colour, LinkId> first_link;
  for (int l = 0; l < topology.link_count(); ++l)
    first_link.try_emplace(painting.links[static_cast<std::size_t>(l)], LinkId{l});

  // How often a class of flows crosses a class of links, and how many links that class has.
  std::map<std::pair<Colour, Colour>, int> crossings;
  std::unordered_map<Colour, int> links_of;
  for (Colour link : painting.links) ++links_of[link];
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const LinkUse& use : flows[f].way)
      ++crossings[{painting.flows[f], painting.links[index_of(use.link)]}];

  std::vector<Flow> folded;
  std::unordered_map<Colour, bool> drawn;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (!drawn.try_emplace(painting.flows[f], true).second) continue;
    Flow flow{{}, flows[f].bytes, flows[f].rate};
    for (const LinkUse& use : flows[f].way) {
      const Colour link = painting.links[index_of(use.link)];
      const LinkId canonical = first_link.at(link);
      const bool known = std::any_of(flow.way.begin(), flow.way.end(),
                                     [&](const LinkUse& other) { return other.link == canonical; });
      // Equally many cross each link of the class.
      if (!known)
        flow.way.push_back(
            {canonical, crossings.at({painting.flows[f], link}) / links_of.at(link)});
    }
    folded.push_back(std::move(flow));
  }
  return folded;
}

std::optional<std::vector<Flow>> link_flows(const Topology& topology,
                                            const std::vector<Leg>& legs) {
  struct Load {
    double leg = 0.0;  // Bytes of each leg that crosses the link.
    double all = 0.0;  // Bytes of all of them.
  };
  std::vector<Load> loads;
  const Leg* slowest = nullptr;
  for (const Leg& leg : legs) {
    if (!slowest || leg.bytes / leg.rate > slowest->bytes / slowest->rate) slowest = &leg;
    for (LinkId link : way_of(topology, leg)) {
      if (index_of(link) >= loads.size())
        loads.resize(static_cast<std::size_t>(topology.link_count()));
      Load& load = loads[index_of(link)];
      if (load.all > 0.0 && load.leg != leg.bytes.si()) return std::nullopt;
      load.leg = leg.bytes.si();
      load.all += load.leg;
    }
  }
  std::map<std::pair<double, double>, LinkId> different;  // By capacity and load.
  for (int l = 0; l < static_cast<int>(loads.size()); ++l)
    different.try_emplace({topology.link(LinkId{l}).capacity.si(), loads[index_of(LinkId{l})].all},
                          LinkId{l});
  std::vector<Flow> flows;
  if (slowest) flows.push_back({{}, slowest->bytes, slowest->rate});
  for (const auto& [kind, link] : different)
    if (kind.second > 0.0)
      flows.push_back({{{link, 1}}, Bytes{kind.second}, BytesPerSecond{kind.first}});
  return flows;
}

}  // namespace orrery
