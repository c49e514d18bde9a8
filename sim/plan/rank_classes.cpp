#include "sim/plan/rank_classes.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <numeric>
#include <unordered_map>

#include "sim/plan/refinement.hpp"

namespace orrery {
namespace {

Colour colour_of_set(std::vector<Colour> members) {
  std::sort(members.begin(), members.end());
  Colour sum = members.size();
  for (Colour member : members) sum = mix(sum, member);
  return sum;
}

// Mixes a group into its members' colours: the own domain, and all domains. The order inside a
// domain and the order of the domains do not count.
void add_group(const std::vector<Rank>& group, const Placement& placement, const Colours& old,
               Colours& colours) {
  const auto old_of = [&](Rank rank) { return old[static_cast<std::size_t>(rank.value)]; };
  std::map<int, std::vector<Colour>> by_domain;
  for (Rank rank : group) by_domain[placement.domain(rank)].push_back(old_of(rank));
  std::map<int, Colour> domains;
  std::vector<Colour> all;
  for (const auto& [domain, members] : by_domain)
    all.push_back(domains[domain] = colour_of_set(members));
  const Colour whole = colour_of_set(all);
  for (Rank rank : group) {
    Colour& own = colours[static_cast<std::size_t>(rank.value)];
    own = mix(mix(own, whole), domains[placement.domain(rank)]);
  }
}

Colours refine_once(const Placement& placement, const Colours& old) {
  Colours colours(old.size());
  for (std::size_t rank = 0; rank < old.size(); ++rank) colours[rank] = mix(1, old[rank]);
  for (GroupKind kind : placement.kinds())
    for (int s = 0; s < placement.pp(); ++s)
      for (const std::vector<Rank>& group : placement.groups(kind, s))
        add_group(group, placement, old, colours);
  for (std::size_t r = 0; r < colours.size(); ++r) {
    const Rank rank{static_cast<int>(r)};
    Coordinates at = placement.coordinates(rank);
    for (int step :
         {-1, 2}) {  // Previous and next stage, around: the tied embedding closes a ring.
      at.stage = (at.stage + step + placement.pp()) % placement.pp();
      const Rank other = placement.rank(at);
      colours[r] = mix(mix(colours[r], old[static_cast<std::size_t>(other.value)]),
                       placement.same_domain(rank, other));
    }
  }
  return colours;
}

// Mixes the colours of GPUs on one NIC.
void add_nic_mates(const Placement& placement, Colours& colours) {
  std::unordered_map<int, std::vector<Colour>> mates;
  for (std::size_t r = 0; r < colours.size(); ++r)
    mates[placement.nic(Rank{static_cast<int>(r)})].push_back(colours[r]);
  std::unordered_map<int, Colour> sums;
  for (const auto& [nic, list] : mates) sums[nic] = colour_of_set(list);
  for (std::size_t r = 0; r < colours.size(); ++r)
    colours[r] = mix(colours[r], sums[placement.nic(Rank{static_cast<int>(r)})]);
}

// Initial colour of a rank: its stage, and its expert group's routing sample.
Colour kind_of_rank(const Placement& placement, std::size_t rank) {
  const Rank own{static_cast<int>(rank)};
  return static_cast<Colour>(placement.coordinates(own).stage * placement.draws() +
                             placement.draw(own));
}

Colours loose_colours(const Placement& placement, const std::vector<double>& speeds) {
  Colours colours(static_cast<std::size_t>(placement.ranks()));
  for (std::size_t r = 0; r < colours.size(); ++r)
    colours[r] = mix(std::bit_cast<Colour>(speeds[r]), kind_of_rank(placement, r));
  for (std::size_t count = 0, next = distinct(colours); next > count;) {
    count = next;
    colours = refine_once(placement, colours);
    add_nic_mates(placement, colours);
    next = distinct(colours);
  }
  return colours;
}

}  // namespace

RankClasses RankClasses::unfolded(const Placement& placement) {
  RankClasses classes{placement};
  for (int r = 0; r < placement.ranks(); ++r) {
    classes.reps_.push_back({Rank{r}, placement.coordinates(Rank{r}), 1});
    classes.rep_of_rank_.push_back(r);
  }
  return classes;
}

RankClasses RankClasses::folded(const Placement& placement) {
  assert(placement.regular());
  RankClasses classes{placement};
  if (placement.draws() > 1) {  // One class for each stage and routing sample.
    std::vector<int> reps;
    for (int r = 0; r < placement.ranks(); ++r)
      reps.push_back(placement.coordinates(Rank{r}).stage * placement.draws() +
                     placement.draw(Rank{r}));
    classes.set_reps(reps, std::vector<double>(reps.size(), 1.0));
    return classes;
  }
  for (int stage = 0; stage < placement.pp(); ++stage)
    classes.reps_.push_back(
        {placement.rank({stage, 0, 0}), {stage, 0, 0}, placement.ranks() / placement.pp()});
  return classes;
}

RankClasses RankClasses::loosely_folded(const Placement& placement,
                                        const std::vector<double>& speeds) {
  std::unordered_map<Colour, int> number;
  std::vector<int> reps;
  for (Colour colour : loose_colours(placement, speeds))
    reps.push_back(number.try_emplace(colour, static_cast<int>(number.size())).first->second);
  RankClasses classes{placement};
  classes.set_reps(reps, speeds);
  return classes;
}

void RankClasses::set_reps(const std::vector<int>& rep_of_rank, const std::vector<double>& speeds) {
  rep_of_rank_ = rep_of_rank;
  for (int r = 0; r < placement_.ranks(); ++r) {
    const auto rank = static_cast<std::size_t>(r);
    const auto rep = static_cast<std::size_t>(rep_of_rank[rank]);
    if (rep == reps_.size()) {
      const Coordinates at = placement_.coordinates(Rank{r});
      double pace = speeds[rank];
      // Tensor groups that share sequences wait for each other in every layer.
      for (Rank sharer : placement_.group(GroupKind::context, at))
        for (Rank mate : placement_.group(GroupKind::tensor, sharer))
          pace = std::min(pace, speeds[static_cast<std::size_t>(mate.value)]);
      reps_.push_back({Rank{r}, at, 0, speeds[rank], pace});
    }
    ++reps_[rep].ranks;
  }
}

RankClasses RankClasses::folded_on(const Placement& placement, const Topology& topology,
                                   const std::vector<double>& speeds) {
  Refinement refinement = refine(placement, topology, speeds);
  RankClasses classes{placement};
  classes.set_reps(refinement.rep_of_rank, speeds);
  classes.routes_ = std::move(refinement.routes);
  return classes;
}

RankClasses RankClasses::unfolded_on(const Placement& placement, const Topology& topology,
                                     const std::vector<double>& speeds) {
  std::vector<int> self(static_cast<std::size_t>(placement.ranks()));
  std::iota(self.begin(), self.end(), 0);
  RankClasses classes{placement};
  classes.set_reps(self, speeds);
  classes.routes_.resize(self.size());
  int flow_class = 0;
  for (const RankFlow& flow : traffic_of(placement)) {
    ClassRoute& route = classes.routes_[static_cast<std::size_t>(flow.from.value)]
                                       [static_cast<std::size_t>(flow.kind)];
    route.flow_class = flow_class++;
    for (LinkId link : topology.route(flow.from, flow.to)) route.links.push_back({link, 1});
  }
  return classes;
}

const ClassRoute* RankClasses::route_of(int rep, Traffic kind) const {
  if (routes_.empty()) return nullptr;
  return &routes_[static_cast<std::size_t>(rep)][static_cast<std::size_t>(kind)];
}

int RankClasses::rep_of(Rank rank) const {
  if (rep_of_rank_.empty()) return placement_.coordinates(rank).stage;
  return rep_of_rank_[static_cast<std::size_t>(rank.value)];
}

int RankClasses::sharers(int rep) const {
  const Rank own = reps_[static_cast<std::size_t>(rep)].rank;
  const int reach = placement_.gpus_per_nic();
  int count = 0;
  for (int r = std::max(0, own.value - reach); r <= own.value + reach && r < placement_.ranks();
       ++r)
    if (placement_.nic(Rank{r}) == placement_.nic(own) && rep_of(Rank{r}) == rep) ++count;
  return count;
}

namespace {

// Limits of exact folding. Through other traffic at their neighbours' ports all members of a long
// ring may differ by their distance from an irregular one, which hardly matters on uniform links.
// The position of a straggler matters less, because its own group waits for it wherever it is.
constexpr std::size_t most_exact_classes = 1024;
constexpr std::size_t most_exact_with_stragglers = 48;

bool has_uniform_links(System system) {
  system.gpu_overrides.clear();
  return system.uniform();
}

}  // namespace

RankClasses choose_classes(const System& system, const Placement& placement,
                           const Topology& topology, bool unfolded) {
  if (system.uniform() && unfolded) return RankClasses::unfolded(placement);
  if (system.uniform() && placement.regular()) return RankClasses::folded(placement);
  std::vector<double> speeds;
  for (int r = 0; r < placement.ranks(); ++r) speeds.push_back(topology.gpu_speed(Rank{r}));
  if (unfolded) return RankClasses::unfolded_on(placement, topology, speeds);
  RankClasses exact = RankClasses::folded_on(placement, topology, speeds);
  const std::size_t most =
      system.gpu_overrides.empty() ? most_exact_classes : most_exact_with_stragglers;
  if (exact.reps().size() <= most || !has_uniform_links(system)) return exact;
  return RankClasses::loosely_folded(placement, speeds);
}

namespace {

bool leaves(LinkKind kind) {
  return kind == LinkKind::nvlink_up || kind == LinkKind::pcie_up || kind == LinkKind::nic_up;
}

// A nearby rank that is in the same domain as `rank`, or is not, like the flow's other end.
Rank counterpart(const Placement& placement, Rank rank, bool same_domain) {
  for (int step = 1;; ++step)
    for (int other : {rank.value - step, rank.value + step})
      if (other >= 0 && other < placement.ranks() &&
          placement.same_domain(rank, Rank{other}) == same_domain)
        return Rank{other};
}

// Adds the representative's links on the route to `other` (outward), or from it.
void add_own(const Topology& topology, const RankClasses& classes, int rep, Rank other,
             bool outward, FlowRoute& uses) {
  const Rank own = classes.reps()[static_cast<std::size_t>(rep)].rank;
  for (LinkId id : outward ? topology.route(own, other) : topology.route(other, own)) {
    const Link& link = topology.link(id);
    if (leaves(link.kind) == outward)
      uses.push_back({id, link.is_nic() ? classes.sharers(rep) : 1});
  }
}

Rank rank_of(const RankClasses& classes, int rep) {
  return classes.reps()[static_cast<std::size_t>(rep)].rank;
}

}  // namespace

FlowRoute route_out(const Topology& topology, const RankClasses& classes, int rep,
                    bool same_domain) {
  FlowRoute uses;
  const Rank other = counterpart(classes.placement(), rank_of(classes, rep), same_domain);
  add_own(topology, classes, rep, other, true, uses);
  return uses;
}

FlowRoute route_in(const Topology& topology, const RankClasses& classes, int rep,
                   bool same_domain) {
  FlowRoute uses;
  const Rank other = counterpart(classes.placement(), rank_of(classes, rep), same_domain);
  add_own(topology, classes, rep, other, false, uses);
  return uses;
}

FlowRoute route(const Topology& topology, const RankClasses& classes, int from_rep, int to_rep,
                bool same_domain) {
  const Placement& placement = classes.placement();
  const Rank from = rank_of(classes, from_rep);
  const Rank to = rank_of(classes, to_rep);
  // The two representatives may be in other domains than the ranks that they represent.
  const bool adjacent = from != to && placement.same_domain(from, to) == same_domain;
  FlowRoute uses;
  add_own(topology, classes, from_rep, adjacent ? to : counterpart(placement, from, same_domain),
          true, uses);
  add_own(topology, classes, to_rep, adjacent ? from : counterpart(placement, to, same_domain),
          false, uses);
  return uses;
}

FlowRoute route(const Topology& topology, const RankClasses& classes, int from_rep, Rank to) {
  const Rank from = rank_of(classes, from_rep);
  return route(topology, classes, from_rep, classes.rep_of(to),
               classes.placement().same_domain(from, to));
}

}  // namespace orrery
