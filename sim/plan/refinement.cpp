#include "sim/plan/refinement.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>

#include "sim/core/units.hpp"

namespace orrery {
namespace {

// Links crossed by flows, indexed by flow and by link.
struct Crossings {
  std::vector<std::vector<LinkId>> links_of_flow;
  std::vector<std::vector<int>> flows_of_link;
};

Crossings cross(const Topology& topology, const std::vector<RankFlow>& flows) {
  Crossings crossings;
  for (const RankFlow& flow : flows)
    crossings.links_of_flow.push_back(topology.route(flow.from, flow.to));
  crossings.flows_of_link.resize(at(topology.link_count()));
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (LinkId link : crossings.links_of_flow[f])
      crossings.flows_of_link[at(link.value)].push_back(static_cast<int>(f));
  return crossings;
}

struct Painting {
  Colours ranks;
  Colours flows;
  Colours links;

  // Flows follow from ranks and links: none of them splits alone.
  std::size_t classes() const { return distinct(ranks) + distinct(links); }
};

Painting first_colours(const Placement& placement, const Topology& topology,
                       const std::vector<double>& speeds, std::size_t flows) {
  Painting painting;
  for (int r = 0; r < placement.ranks(); ++r)
    painting.ranks.push_back(
        mix(static_cast<Colour>(placement.coordinates(Rank{r}).stage * placement.draws() +
                                placement.draw(Rank{r})),
            std::bit_cast<Colour>(speeds[at(r)])));
  painting.flows.assign(flows, 0);
  for (int l = 0; l < topology.link_count(); ++l) {
    const Link& link = topology.link(LinkId{l});
    painting.links.push_back(
        mix(mix(static_cast<Colour>(link.kind), std::bit_cast<Colour>(link.capacity.si())),
            std::bit_cast<Colour>(link.latency.si())));
  }
  return painting;
}

// Members of a group wait for each other, so that the colours of all determine each.
Colours group_colours(const std::vector<Group>& groups, const Colours& ranks) {
  Colours colours;
  for (const Group& group : groups) {
    Colour sum = 0;
    for (Rank rank : group.ranks) sum += mix(101, ranks[at(rank.value)]);
    colours.push_back(mix(sum, static_cast<Colour>(group.kind)));
  }
  return colours;
}

// Sums of mixed colours represent multisets: order does not count.
Painting repainted(const Painting& old, const std::vector<Group>& groups,
                   const std::vector<RankFlow>& flows, const Crossings& crossings) {
  Painting next{Colours(old.ranks.size(), 0), Colours(old.flows.size()),
                Colours(old.links.size(), 0)};
  const Colours of_groups = group_colours(groups, old.ranks);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const RankFlow& flow = flows[f];
    // A collective's flows start and end with their group, wherever on its ring they are.
    Colour colour = mix(102, static_cast<Colour>(flow.kind));
    if (flow.group >= 0)
      colour = mix(colour, of_groups[at(flow.group)]);
    else
      colour = mix(mix(colour, old.ranks[at(flow.from.value)]), old.ranks[at(flow.to.value)]);
    for (LinkId link : crossings.links_of_flow[f]) colour = mix(colour, old.links[at(link.value)]);
    next.flows[f] = colour;
    for (LinkId link : crossings.links_of_flow[f]) next.links[at(link.value)] += mix(1, colour);
    next.ranks[at(flow.from.value)] += mix(2, colour);
    next.ranks[at(flow.to.value)] += mix(3, colour);
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (Rank rank : groups[g].ranks) next.ranks[at(rank.value)] += mix(4, of_groups[g]);
  for (std::size_t r = 0; r < next.ranks.size(); ++r)
    next.ranks[r] = mix(old.ranks[r], next.ranks[r]);
  for (std::size_t l = 0; l < next.links.size(); ++l)
    next.links[l] = mix(old.links[l], next.links[l]);
  return next;
}

std::vector<int> numbered(const Colours& colours) {
  std::unordered_map<Colour, int> number;
  std::vector<int> numbers;
  for (Colour colour : colours)
    numbers.push_back(number.try_emplace(colour, static_cast<int>(number.size())).first->second);
  return numbers;
}

// The representative link of each class: the first in the cluster, which is the representative
// rank's port if the class is a rank class's ports.
std::unordered_map<Colour, int> first_of_each(const Colours& links, const Topology& topology) {
  const auto place = [&](int link) {
    const Link& l = topology.link(LinkId{link});
    return std::tuple{l.node, l.owner, link};
  };
  std::unordered_map<Colour, int> first;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const int link = static_cast<int>(i);
    const auto [found, is_new] = first.try_emplace(links[i], link);
    if (!is_new && place(link) < place(found->second)) found->second = link;
  }
  return first;
}

// The representative's links, each by the first link of its class.
std::vector<LinkUse> route_of(std::size_t flow, const Painting& painting,
                              const Crossings& crossings,
                              const std::unordered_map<Colour, int>& first_link) {
  std::vector<LinkUse> route;
  for (LinkId link : crossings.links_of_flow[flow]) {
    const LinkId canonical{first_link.at(painting.links[at(link.value)])};
    const auto same_class = [&](int other) {
      return painting.flows[at(other)] == painting.flows[flow];
    };
    const std::vector<int>& crossing = crossings.flows_of_link[at(link.value)];
    const auto times =
        static_cast<int>(std::count_if(crossing.begin(), crossing.end(), same_class));
    const bool known = std::any_of(route.begin(), route.end(),
                                   [&](const LinkUse& use) { return use.link == canonical; });
    if (!known) route.push_back({canonical, times});
  }
  return route;
}

}  // namespace

Refinement refine(const Placement& placement, const Topology& topology,
                  const std::vector<double>& speed_of_rank) {
  const std::vector<RankFlow> flows = traffic_of(placement);
  const std::vector<Group> groups = groups_of(placement);
  const Crossings crossings = cross(topology, flows);
  Painting painting = first_colours(placement, topology, speed_of_rank, flows.size());
  for (std::size_t before = 0, classes = painting.classes(); classes > before;) {
    painting = repainted(painting, groups, flows, crossings);
    before = classes;
    classes = painting.classes();
  }

  Refinement refinement{numbered(painting.ranks), {}};
  const std::unordered_map<Colour, int> first_link = first_of_each(painting.links, topology);
  std::vector<int> representative;
  for (int r = 0; r < placement.ranks(); ++r)
    if (refinement.rep_of_rank[at(r)] == static_cast<int>(representative.size()))
      representative.push_back(r);
  refinement.routes.resize(representative.size());
  const std::vector<int> flow_class = numbered(painting.flows);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const int rep = refinement.rep_of_rank[at(flows[f].from.value)];
    if (representative[at(rep)] != flows[f].from.value) continue;
    ClassRoute& route = refinement.routes[at(rep)][static_cast<std::size_t>(flows[f].kind)];
    route.links = route_of(f, painting, crossings, first_link);
    route.flow_class = flow_class[f];
  }
  return refinement;
}

}  // namespace orrery
