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

// A group as each member sees it: its own domain, and all domains. The order inside a domain and
// the order of the domains tell nobody apart.
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

// GPUs on one NIC see each other.
void add_nic_mates(const Placement& placement, Colours& colours) {
  std::unordered_map<int, std::vector<Colour>> mates;
  for (std::size_t r = 0; r < colours.size(); ++r)
    mates[placement.nic(Rank{static_cast<int>(r)})].push_back(colours[r]);
  std::unordered_map<int, Colour> sums;
  for (const auto& [nic, list] : mates) sums[nic] = colour_of_set(list);
  for (std::size_t r = 0; r < colours.size(); ++r)
    colours[r] = mix(colours[r], sums[placement.nic(Rank{static_cast<int>(r)})]);
}

// What a rank does: its stage, and what its expert group is sent.
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

Cast Cast::unfolded(const Placement& placement) {
  Cast cast{placement};
  for (int r = 0; r < placement.ranks(); ++r) {
    cast.roles_.push_back({Rank{r}, placement.coordinates(Rank{r}), 1});
    cast.role_of_rank_.push_back(r);
  }
  return cast;
}

Cast Cast::folded(const Placement& placement) {
  assert(placement.regular());
  Cast cast{placement};
  if (placement.draws() > 1) {  // One a stage and draw of expert groups.
    std::vector<int> roles;
    for (int r = 0; r < placement.ranks(); ++r)
      roles.push_back(placement.coordinates(Rank{r}).stage * placement.draws() +
                      placement.draw(Rank{r}));
    cast.take_roles(roles, std::vector<double>(roles.size(), 1.0));
    return cast;
  }
  for (int stage = 0; stage < placement.pp(); ++stage)
    cast.roles_.push_back(
        {placement.rank({stage, 0, 0}), {stage, 0, 0}, placement.ranks() / placement.pp()});
  return cast;
}

Cast Cast::loosely_folded(const Placement& placement, const std::vector<double>& speeds) {
  std::unordered_map<Colour, int> number;
  std::vector<int> roles;
  for (Colour colour : loose_colours(placement, speeds))
    roles.push_back(number.try_emplace(colour, static_cast<int>(number.size())).first->second);
  Cast cast{placement};
  cast.take_roles(roles, speeds);
  return cast;
}

void Cast::take_roles(const std::vector<int>& role_of_rank, const std::vector<double>& speeds) {
  role_of_rank_ = role_of_rank;
  for (int r = 0; r < placement_.ranks(); ++r) {
    const auto rank = static_cast<std::size_t>(r);
    const auto role = static_cast<std::size_t>(role_of_rank[rank]);
    if (role == roles_.size()) {
      const Coordinates at = placement_.coordinates(Rank{r});
      double pace = speeds[rank];
      // Tensor groups that share sequences wait for each other in every layer.
      for (Rank sharer : placement_.group(GroupKind::context, at))
        for (Rank mate : placement_.group(GroupKind::tensor, sharer))
          pace = std::min(pace, speeds[static_cast<std::size_t>(mate.value)]);
      roles_.push_back({Rank{r}, at, 0, speeds[rank], pace});
    }
    ++roles_[role].ranks;
  }
}

Cast Cast::folded_on(const Placement& placement, const Topology& topology,
                     const std::vector<double>& speeds) {
  Refinement refinement = refine(placement, topology, speeds);
  Cast cast{placement};
  cast.take_roles(refinement.role_of_rank, speeds);
  cast.ways_ = std::move(refinement.ways);
  return cast;
}

Cast Cast::unfolded_on(const Placement& placement, const Topology& topology,
                       const std::vector<double>& speeds) {
  std::vector<int> self(static_cast<std::size_t>(placement.ranks()));
  std::iota(self.begin(), self.end(), 0);
  Cast cast{placement};
  cast.take_roles(self, speeds);
  cast.ways_.resize(self.size());
  int flow_class = 0;
  for (const RankFlow& flow : traffic_of(placement)) {
    RoleWay& way =
        cast.ways_[static_cast<std::size_t>(flow.from.value)][static_cast<std::size_t>(flow.kind)];
    way.flow_class = flow_class++;
    for (LinkId link : topology.route(flow.from, flow.to)) way.links.push_back({link, 1});
  }
  return cast;
}

const RoleWay* Cast::way_of(int role, Traffic kind) const {
  if (ways_.empty()) return nullptr;
  return &ways_[static_cast<std::size_t>(role)][static_cast<std::size_t>(kind)];
}

int Cast::role_of(Rank rank) const {
  if (role_of_rank_.empty()) return placement_.coordinates(rank).stage;
  return role_of_rank_[static_cast<std::size_t>(rank.value)];
}

int Cast::sharers(int role) const {
  const Rank own = roles_[static_cast<std::size_t>(role)].rank;
  const int reach = placement_.gpus_per_nic();
  int count = 0;
  for (int r = std::max(0, own.value - reach); r <= own.value + reach && r < placement_.ranks();
       ++r)
    if (placement_.nic(Rank{r}) == placement_.nic(own) && role_of(Rank{r}) == role) ++count;
  return count;
}

namespace {

// Through the other traffic at their neighbours' ports all members of a long ring may differ by how
// far they are from an odd one. On links that nobody else shares that hardly counts, and beyond so
// many roles it is given up. A straggler is who its own group waits for, wherever it is.
constexpr std::size_t most_exact_roles = 1024;
constexpr std::size_t most_exact_roles_of_stragglers = 48;

bool has_uniform_links(System system) {
  system.gpu_overrides.clear();
  return system.uniform();
}

}  // namespace

Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded) {
  if (system.uniform() && unfolded) return Cast::unfolded(placement);
  if (system.uniform() && placement.regular()) return Cast::folded(placement);
  std::vector<double> speeds;
  for (int r = 0; r < placement.ranks(); ++r) speeds.push_back(topology.gpu_speed(Rank{r}));
  if (unfolded) return Cast::unfolded_on(placement, topology, speeds);
  Cast exact = Cast::folded_on(placement, topology, speeds);
  const std::size_t most =
      system.gpu_overrides.empty() ? most_exact_roles : most_exact_roles_of_stragglers;
  if (exact.roles().size() <= most || !has_uniform_links(system)) return exact;
  return Cast::loosely_folded(placement, speeds);
}

namespace {

bool leaves(LinkKind kind) {
  return kind == LinkKind::nvlink_up || kind == LinkKind::pcie_up || kind == LinkKind::nic_up;
}

// Some rank that lies to `rank` as the other end of the flow does: in its domain, or outside it.
Rank counterpart(const Placement& placement, Rank rank, bool same_domain) {
  for (int step = 1;; ++step)
    for (int other : {rank.value - step, rank.value + step})
      if (other >= 0 && other < placement.ranks() &&
          placement.same_domain(rank, Rank{other}) == same_domain)
        return Rank{other};
}

// The links of a role that lead out, or in, on a way to or from `other`.
void add_own(const Topology& topology, const Cast& cast, int role, Rank other, bool outward,
             Way& uses) {
  const Rank own = cast.roles()[static_cast<std::size_t>(role)].rank;
  for (LinkId id : outward ? topology.route(own, other) : topology.route(other, own)) {
    const Link& link = topology.link(id);
    if (leaves(link.kind) == outward) uses.push_back({id, link.is_nic() ? cast.sharers(role) : 1});
  }
}

Rank rank_of(const Cast& cast, int role) {
  return cast.roles()[static_cast<std::size_t>(role)].rank;
}

}  // namespace

Way way_out(const Topology& topology, const Cast& cast, int role, bool same_domain) {
  Way uses;
  const Rank other = counterpart(cast.placement(), rank_of(cast, role), same_domain);
  add_own(topology, cast, role, other, true, uses);
  return uses;
}

Way way_in(const Topology& topology, const Cast& cast, int role, bool same_domain) {
  Way uses;
  const Rank other = counterpart(cast.placement(), rank_of(cast, role), same_domain);
  add_own(topology, cast, role, other, false, uses);
  return uses;
}

Way way(const Topology& topology, const Cast& cast, int from_role, int to_role, bool same_domain) {
  const Placement& placement = cast.placement();
  const Rank from = rank_of(cast, from_role);
  const Rank to = rank_of(cast, to_role);
  // The two representatives may lie otherwise to each other than the ranks that they stand for.
  const bool adjacent = from != to && placement.same_domain(from, to) == same_domain;
  Way uses;
  add_own(topology, cast, from_role, adjacent ? to : counterpart(placement, from, same_domain),
          true, uses);
  add_own(topology, cast, to_role, adjacent ? from : counterpart(placement, to, same_domain), false,
          uses);
  return uses;
}

Way way(const Topology& topology, const Cast& cast, int from_role, Rank to) {
  const Rank from = rank_of(cast, from_role);
  return way(topology, cast, from_role, cast.role_of(to), cast.placement().same_domain(from, to));
}

}  // namespace orrery
